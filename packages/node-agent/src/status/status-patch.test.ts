import assert from "node:assert/strict";
import { test } from "node:test";
import { applyStrategicMerge } from "@coxswain/apimachinery/objects/patch/strategic-merge";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { statusPatch } from "./status-manager.ts";

const descriptor = scheme.kind(pods);
const addresses = (...ips: string[]) => ({ podIP: ips[0] ?? "", podIPs: ips.map((ip) => ({ ip })) });

for (const { name, present, next } of [
  { name: "the first addresses", present: { phase: "Pending" }, next: { phase: "Running", ...addresses("10.0.0.1") } },
  { name: "other addresses", present: addresses("10.0.0.1", "fd00::1"), next: addresses("10.0.0.2") },
  { name: "no addresses any more", present: addresses("10.0.0.1"), next: {} },
  { name: "no reason any more", present: { reason: "Evicted", message: "gone" }, next: { phase: "Failed" } },
] as { name: string; present: PodStatus; next: PodStatus }[]) {
  test(`applying a status patch gives the new status: ${name}`, () => {
    assert.ok(descriptor);
    const patched = applyStrategicMerge({ status: present }, { status: statusPatch(present, next) }, descriptor);
    const { podIPs = [], ...rest } = (patched as { status: PodStatus }).status;
    const { podIPs: wanted = [], ...others } = next;
    assert.deepEqual(podIPs, wanted);
    assert.partialDeepStrictEqual(rest, others);
    assert.equal(Object.hasOwn(rest, "reason"), false);
  });
}

test("the agent's fields that are no longer set are removed, those of other writers are not", () => {
  const had = { reason: "r", message: "m", podIP: "10.0.0.1", hostIP: "10.0.0.2", qosClass: "Burstable", nominatedNodeName: "n" };
  const lists = { containerStatuses: [], initContainerStatuses: [], ephemeralContainerStatuses: [] };
  const gone = Object.keys({ ...had, ...lists }).filter((field) => field !== "nominatedNodeName");
  assert.deepEqual(statusPatch({ ...had, ...lists }, {}), Object.fromEntries(gone.map((field) => [field, null])));
});

test("a rejected pod loses the agent's conditions and container statuses, and keeps those of other writers", () => {
  assert.ok(descriptor);
  const condition = (type: string) => ({ type, status: "True" as const });
  const present: PodStatus = {
    phase: "Pending",
    qosClass: "Guaranteed",
    conditions: [condition("PodScheduled"), condition("example.com/gate")],
    containerStatuses: [{ name: "main", image: "", imageID: "", ready: true, restartCount: 0 }],
  };
  const next: PodStatus = { phase: "Failed", reason: "OutOfcpu", startTime: "2026-01-01T00:00:00Z" };
  const patched = applyStrategicMerge({ status: present }, { status: statusPatch(present, next) }, descriptor);
  assert.deepEqual((patched as { status: PodStatus }).status, { ...next, conditions: [condition("example.com/gate")] });
});

test("conditions that become true lose reason and message; those of other writers keep them", () => {
  assert.ok(descriptor);
  const unready = { reason: "ContainersNotReady", message: "containers with unready status: [main]" };
  const condition = (type: string, status: "True" | "False", more: object = {}) => ({ type, status, ...more });
  const gate = condition("example.com/gate", "False", { reason: "Waiting", message: "for a load balancer" });
  const present = {
    conditions: [condition("Ready", "False", unready), gate, condition("ContainersReady", "False", unready)],
  } as unknown as PodStatus;
  const next = { conditions: [condition("Ready", "True"), condition("ContainersReady", "True")] } as unknown as PodStatus;
  const patched = applyStrategicMerge({ status: present }, { status: statusPatch(present, next) }, descriptor);
  assert.deepEqual((patched as { status: object }).status, {
    conditions: [condition("Ready", "True"), gate, condition("ContainersReady", "True")],
  });
});
