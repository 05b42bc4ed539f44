import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodePod } from "../pod/pod.ts";
import type { Rejection } from "../pod/pod-verdict.ts";
import { type AdmissionOptions, newAdmission } from "./admission.ts";

const no = (reason: string): Rejection => ({ reason, message: "" });
const pod = (light?: string): NodePod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "default", uid: "p" },
  spec: { containers: [{ name: "c", image: "i", ...(light && { resources: { requests: { "example.com/light": light } } }) }] },
});

function admission(parts: Partial<AdmissionOptions>) {
  return newAdmission({
    config: { allowedUnsafeSysctls: [] },
    nodeName: "node1",
    node: {
      known: () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "node1" }, spec: {} }),
      pressure: () => ({ memory: false, disk: false, pid: false }),
    },
    allocatable: () => ({ cpu: "1", memory: "1Gi", pods: "10" }),
    managers: { concerns: () => false, admit: async () => undefined },
    devices: { inUse: () => ({}) },
    shutdown: undefined,
    preempt: async () => no("Preempted"),
    ...parts,
  });
}

const full = { allocatable: () => ({ cpu: "1", memory: "1Gi", pods: "0" }) };
const down = { shutdown: { refusal: () => no("NodeShutdown") } };
const taken = { managers: { concerns: () => true, admit: async () => no("TopologyAffinityError") } };
const pressed = {
  node: {
    known: () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "node1" }, spec: {} }),
    pressure: () => ({ memory: false, disk: true, pid: false }),
  },
};

for (const { name, parts, want } of [
  { name: "a pod that no handler refuses is admitted", parts: {}, want: undefined },
  { name: "a machine that shuts down refuses pods that it could run", parts: down, want: "NodeShutdown" },
  { name: "a full node refuses before the shutdown does", parts: { ...down, ...full }, want: "OutOfpods" },
  { name: "managers refuse before the node is full", parts: { ...down, ...full, ...taken }, want: "TopologyAffinityError" },
  { name: "pressure refuses before other handlers run", parts: { ...down, ...full, ...taken, ...pressed }, want: "Evicted" },
]) {
  test(name, async () => {
    assert.equal((await admission(parts)(pod(), []))?.reason, want);
  });
}

for (const { name, parts, spec = {}, want } of [
  { name: "gets room on a full node", parts: full, want: "Preempted" },
  {
    name: "that got its room is refused by the shutdown",
    parts: { ...full, ...down, preempt: async () => undefined },
    want: "NodeShutdown",
  },
  { name: "that fits evicts no pod", parts: {}, want: undefined },
  { name: "that cannot run here for another reason evicts no pod", parts: full, spec: { nodeName: "n2" }, want: "NodeName" },
  {
    name: "of another operating system evicts no pod",
    parts: full,
    spec: { os: { name: "windows" } },
    want: "PodOSNotSupported",
  },
]) {
  test(`a critical pod ${name}`, async () => {
    const critical = pod();
    critical.spec = { ...critical.spec, priority: 2_000_000_000, ...spec };
    assert.equal((await admission(parts)(critical, []))?.reason, want);
  });
}

test("allocated devices still count while their plugin is not connected", async () => {
  const gone = () => ({ cpu: "1", memory: "1Gi", pods: "10", "example.com/light": "0" });
  assert.equal((await admission({ allocatable: gone })(pod("1"), []))?.reason, "OutOfexample.com/light");
  const devices = { inUse: () => ({ "example.com/light": "1" }) };
  assert.equal(await admission({ allocatable: gone, devices })(pod("1"), []), undefined);
});

test("a pod that needs no exclusive resources is admitted immediately", () => {
  assert.ok(!(admission(down)(pod(), []) instanceof Promise));
  assert.ok(admission(taken)(pod(), []) instanceof Promise);
});
