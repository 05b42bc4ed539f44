import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, forbidden, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { newStatusManager, statusPatch } from "./status-manager.ts";

const deleting = (pod: NodePod): NodePod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
});

/** A status manager with an API server that has these Pods; tests can change the agent's cache or hold a patch. */
function writing(...stored: NodePod[]) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  // Stored without deletionTimestamp: the server would complete the deletion on the next write.
  client.put(pods, ...stored.map(({ metadata: { deletionTimestamp: _, ...metadata }, ...pod }) => ({ ...pod, metadata })));
  const heard = new Map<string, Pod | undefined>(stored.map((pod) => [pod.metadata.uid, pod]));
  const failures: Error[] = [];
  let hold: Promise<void> | undefined;
  const patch = client.patch.bind(client);
  client.patch = (async (...args: Parameters<typeof patch>) => {
    await hold;
    const failure = failures.shift();
    if (failure !== undefined) {
      sent.push(`failed ${(args[2].body as { status: PodStatus }).status.phase}`);
      throw failure;
    }
    sent.push(`${args[1].name} ${(args[2].body as { status: PodStatus }).status.phase}`);
    const known = heard.get("uid-1");
    const answer = await patch(...args);
    if (known !== undefined)
      heard.set("uid-1", { ...known, status: { phase: (args[2].body as { status: PodStatus }).status.phase ?? "" } });
    return answer;
  }) as typeof patch;
  const sent: string[] = [];
  const status = newStatusManager({ client, clock, log: discardLogger, apiPodOf: ({ metadata }) => heard.get(metadata.uid) });
  const holdPatch = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    return () => {
      hold = undefined;
      resolve();
    };
  };
  const deleted = (): string[] => client.writes.filter(({ verb }) => verb === "delete").map(({ name }) => name);
  return { clock, client, heard, failures, sent, status, holdPatch, deleted };
}

const away = new Error("connect ECONNREFUSED");
const pending = (name = "web", uid = "uid-1"): NodePod => aNodePod({}, { name, uid }, { phase: "Pending" });

test("a failed status write is repeated after one second, with the status of that time", async () => {
  const { status, failures, sent, clock } = writing(pending());
  failures.push(away);
  status.set(pending(), { phase: "Running" });
  await settle();
  status.set(pending(), { phase: "Failed" });
  await clock.advance(999);
  assert.deepEqual(sent, ["failed Running"]);
  await clock.advance(1);
  await settle();
  assert.deepEqual([sent, clock.waiting], [["failed Running", "web Failed"], 0]);
});

test("a status that changes during a write is written after it", async () => {
  const { status, sent, holdPatch, client } = writing(pending());
  const release = holdPatch();
  status.set(pending(), { phase: "Running" });
  await settle();
  status.set(pending(), { phase: "Unknown" });
  status.set(pending(), { phase: "Succeeded" });
  release();
  await settle();
  assert.deepEqual(sent, ["web Running", "web Succeeded"]);
  assert.equal((await client.get<Pod>(pods, { namespace: "default", name: "web" })).status?.phase, "Succeeded");
});

test("a failing status write does not prevent those of other pods", async () => {
  const { status, failures, sent } = writing(pending("a", "uid-a"), pending("b", "uid-b"));
  failures.push(away);
  status.set(pending("a", "uid-a"), { phase: "Running" });
  await settle();
  status.set(pending("b", "uid-b"), { phase: "Running" });
  await settle();
  assert.deepEqual(sent, ["failed Running", "b Running"]);
  status.stop();
});

test("a pod's last status is written before its object is deleted, and both are awaited", async () => {
  const pod = deleting(pending());
  const { status, sent, holdPatch, deleted } = writing(pod);
  const release = holdPatch();
  status.set(pod, { phase: "Failed" });
  let over = 0;
  for (const _ of [1, 2]) void status.finish(pod).then(() => over++);
  await settle();
  assert.deepEqual([deleted(), over], [[], 0]);
  release();
  await settle();
  assert.deepEqual([sent, deleted(), over, status.get("uid-1")], [["web Failed"], ["web"], 2, undefined]);
});

test("a failed deletion is retried, and the status is kept until then", async () => {
  const pod = deleting(pending());
  const { status, client, clock, deleted } = writing(pod);
  let fails = true;
  client.react("delete", "pods", () => {
    if (fails) throw away;
    return undefined;
  });
  status.set(pod, { phase: "Failed" });
  const finished = status.finish(pod);
  await settle();
  fails = false;
  assert.equal(status.get("uid-1")?.phase, "Failed");
  await clock.advance(1_000);
  await finished;
  assert.deepEqual([deleted(), client.objects(pods)], [["web", "web"], []]);
});

test("the last status of a pod is written before its deletion, also when an older write is in progress", async () => {
  const { status, sent, deleted, holdPatch, heard, client } = writing(deleting(pending()));
  const release = holdPatch();
  status.set(pending(), { phase: "Running" });
  await settle();
  status.set(pending(), { phase: "Failed" });
  const remove = client.delete.bind(client);
  client.delete = (...args: Parameters<typeof remove>) => {
    sent.push("delete");
    return remove(...args);
  };
  void status.finish(pending());
  release();
  await settle();
  assert.ok(heard.has("uid-1"));
  assert.deepEqual([sent, deleted()], [["web Running", "web Failed", "delete"], ["web"]]);
});

test("an object is deleted only if it has the pod's uid and a deletionTimestamp", async () => {
  const other = writing(deleting(pending()));
  other.heard.set("uid-1", { ...deleting(pending()), metadata: { ...deleting(pending()).metadata, uid: "uid-9" } });
  await other.status.finish(deleting(pending()));
  assert.deepEqual(other.deleted(), []);
  const stays = writing(pending());
  await stays.status.finish(pending());
  assert.deepEqual([stays.deleted(), stays.client.objects(pods).length], [[], 1]);
  const renewed = writing({ ...deleting(pending()), metadata: { ...deleting(pending()).metadata, uid: "uid-new" } });
  renewed.heard.set("uid-1", deleting(pending()));
  await renewed.status.finish(deleting(pending()));
  assert.equal(renewed.client.objects(pods).length, 1, "another pod has the name by now");
});

for (const { name, failure, removes } of [
  { name: "that is gone is over", failure: notFound(pods, "web"), removes: [] },
  { name: "whose name another pod has is over", failure: conflict(pods, "web", "uid"), removes: [] },
  { name: "whose status may not be written is deleted all the same", failure: forbidden(pods, "web", "no"), removes: ["web"] },
]) {
  test(`a pod ${name} when it is finished with, without another try`, async () => {
    const pod = deleting(pending());
    const { status, failures, clock, deleted } = writing(pod);
    failures.push(failure);
    await status.finish({ ...pod, status: { phase: "Failed" } });
    assert.deepEqual([deleted(), clock.waiting, status.get("uid-1")], [removes, 0, undefined]);
  });
}

test("a forbidden status write is not repeated, but the next status is written", async () => {
  const { status, failures, sent, clock } = writing(pending());
  failures.push(forbidden(pods, "web", "no"));
  status.set(pending(), { phase: "Running" });
  await settle();
  await clock.advance(60_000);
  assert.deepEqual([sent, clock.waiting], [["failed Running"], 0]);
  status.set(pending(), { phase: "Failed" });
  await settle();
  assert.equal(sent.at(-1), "web Failed");
});

test("a static pod's status is written to its mirror pod once it exists, and to the next one", async () => {
  const { status, heard, sent, client } = writing(pending());
  heard.set("uid-1", undefined);
  status.set(pending(), { phase: "Running" });
  await settle();
  assert.deepEqual(sent, []);
  const mirror = client.objects<Pod>(pods)[0];
  heard.set("uid-1", mirror);
  status.resync("uid-2");
  await settle();
  assert.deepEqual(sent, []);
  status.resync("uid-1");
  await settle();
  assert.deepEqual(sent, ["web Running"]);
  heard.set("uid-1", mirror);
  status.resync();
  await settle();
  assert.deepEqual(sent, ["web Running", "web Running"], "a server that shows the old one has missed it");
});

test("a status forgotten while the server was unreachable is not written", async () => {
  const { status, failures, sent, clock } = writing(pending());
  failures.push(away);
  status.set(pending(), { phase: "Running" });
  await settle();
  status.forget("uid-1");
  await clock.advance(5_000);
  assert.deepEqual([sent, status.get("uid-1")], [["failed Running"], undefined]);
});

test("a patch sets removed fields to null and omits fields that were never set", () => {
  const condition = (type: string) => ({ type, status: "True" });
  const before = {
    phase: "Failed",
    reason: "Evicted",
    podIP: "10.0.0.1",
    podIPs: [{ ip: "10.0.0.1" }],
    conditions: ["Ready", "Initialized", "example.com/gate"].map(condition),
  };
  const patch = statusPatch(before as PodStatus, { phase: "Running", conditions: [condition("Ready")] } as PodStatus);
  assert.deepEqual(patch, {
    phase: "Running",
    reason: null,
    podIP: null,
    podIPs: [{ $patch: "replace" }],
    conditions: [condition("Ready"), { $patch: "delete", type: "Initialized" }],
  });
});

test("a second address replaces the list of addresses", () => {
  const status: PodStatus = { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] };
  assert.deepEqual(statusPatch({ podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }] }, status)["podIPs"], [
    ...(status.podIPs ?? []),
    { $patch: "replace" },
  ]);
  assert.deepEqual(statusPatch({}, status)["podIPs"], status.podIPs);
  assert.equal(statusPatch(status, status)["podIPs"], undefined);
});

test("a comparison with the server during a write causes no second write, and none for other pods", async () => {
  const { status, client, sent, holdPatch } = writing(pending());
  const release = holdPatch();
  status.set(pending(), { phase: "Running" });
  await settle();
  status.resync();
  status.resync("uid-1");
  release();
  await settle();
  assert.deepEqual(sent, ["web Running"]);
  assert.partialDeepStrictEqual(client.writes[0]?.sent, { metadata: { uid: "uid-1" } });
});

test("a pod started while the end of one with its uid is being written keeps its status", async () => {
  const pod = deleting(pending());
  const { status, client, deleted } = writing(pod);
  const { promise, resolve } = Promise.withResolvers<object>();
  client.react("delete", "pods", () => promise);
  const finished = status.finish(pod);
  await settle();
  assert.deepEqual(deleted(), ["web"]);
  status.set(pending(), { phase: "Pending" });
  resolve({});
  await finished;
  await settle();
  assert.equal(status.get("uid-1")?.phase, "Pending");
  status.stop();
});

test("a pod started while the end of one with its uid cannot be written completes that end", async () => {
  const pod = deleting(pending());
  const { status, failures, clock, deleted } = writing(pod);
  failures.push(away);
  let hasFinished = false;
  void status.finish({ ...pod, status: { phase: "Failed" } }).then(() => {
    hasFinished = true;
  });
  await settle();
  status.set(pending(), { phase: "Running" });
  await clock.advance(1_000);
  await settle();
  assert.deepEqual([hasFinished, status.get("uid-1")?.phase, deleted()], [true, "Running", []]);
  status.stop();
});

test("a status manager stopped while the server is unreachable does not retry", async () => {
  const { status, failures, sent, clock } = writing(pending());
  failures.push(away, away, away);
  status.set(pending(), { phase: "Running" });
  await settle();
  status.stop();
  await settle();
  assert.equal(clock.waiting, 0, "nothing waits for a retry");
  await clock.advance(5_000);
  assert.deepEqual(sent, ["failed Running"]);
});

test("only statuses that differ from the server's are written again, regardless of the order of conditions", async () => {
  const names = ["a", "b", "c"];
  const { status, heard, sent } = writing(...names.map((name) => pending(name, `uid-${name}`)));
  const conditions = (...types: string[]) => types.map((type) => ({ type, status: "True" as const }));
  for (const name of names)
    status.set(pending(name, `uid-${name}`), { phase: "Running", conditions: conditions("Initialized", "Ready") });
  await settle();
  sent.length = 0;
  const shown = (name: string, shownStatus: PodStatus) =>
    heard.set(`uid-${name}`, { ...pending(name, `uid-${name}`), status: shownStatus });
  shown("a", { phase: "Running", conditions: conditions("example.com/gate", "Ready", "Initialized") });
  shown("b", { phase: "Pending" });
  shown("c", { phase: "Running", conditions: conditions("Ready") });
  status.resync();
  await settle();
  assert.deepEqual(sent, ["b Running", "c Running"]);
});
