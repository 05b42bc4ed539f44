import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { newTestContext } from "../../testing/test-context.ts";
import { missingNodes, newPodGarbageCollector, surplusFinished } from "./controller.ts";

const podOf = (minute: number, phase: string) => aPod({ name: `p${minute}`, phase, createdAt: `2022-01-01T00:0${minute}:00Z` });

for (const { name, threshold, want } of [
  { name: "removes the oldest finished pods beyond the threshold", threshold: 1, want: ["p1", "p2"] },
  { name: "removes nothing within it", threshold: 3, want: [] },
  { name: "removes nothing when it is turned off", threshold: 0, want: [] },
]) {
  test(name, () => {
    const all = [podOf(3, "Succeeded"), podOf(1, "Failed"), podOf(2, "Succeeded"), podOf(0, "Running"), podOf(4, "Pending")];
    assert.deepEqual(
      surplusFinished(all, threshold).map(({ metadata }) => metadata.name),
      want,
    );
  });
}

test("a node counts as missing only after a while, and not if it comes back", () => {
  const all = [aPod({ nodeName: "gone" }), aPod({ nodeName: "here" })];
  const since = new Map<string, number>();
  const at = (now: number, ...known: string[]) => missingNodes(all, new Set(known), since, now);
  assert.deepEqual(at(0, "here"), []);
  assert.deepEqual(at(39_999, "here"), []);
  assert.deepEqual(at(40_000, "here"), ["gone"]);
  assert.deepEqual(at(50_000, "here", "gone"), []);
  assert.deepEqual(at(60_000, "here"), []);
});

test("removes pods of nodes that are gone and pods deleted without a node, at once", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(nodes, aNode({ name: "here" }));
  client.put(
    pods,
    aPod({ name: "orphan", nodeName: "gone" }),
    aPod({ name: "stays", nodeName: "here" }),
    aPod({ name: "unbound", deletedAt: "2022-01-01T00:00:00Z" }),
    aPod({ name: "waiting" }),
  );
  await run(newPodGarbageCollector(ctx));
  const names = () => client.objects(pods).map(({ metadata }) => metadata.name);
  assert.deepEqual(names(), ["orphan", "stays", "waiting"]);
  await clock.advance(60_000);
  assert.deepEqual(names(), ["stays", "waiting"]);
  assert.deepEqual(
    client.writes.map(({ sent }) => (sent as { gracePeriodSeconds: number }).gracePeriodSeconds),
    [0, 0],
  );
});

test("pods of one node that is gone do not wait until the server has answered about all others", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(pods, aPod({ name: "a", nodeName: "n1" }), aPod({ name: "b", nodeName: "n2" }));
  client.react("get", "nodes", ({ name }) => (name === "n2" ? new Promise(() => {}) : undefined));
  await run(newPodGarbageCollector(ctx));
  await clock.advance(60_000);
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["b"],
  );
});

test("asks the server before it takes a node for gone", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(pods, aPod({ name: "a", nodeName: "n1" }));
  client.react("get", "nodes", () => aNode({ name: "n1" }));
  await run(newPodGarbageCollector(ctx));
  await clock.advance(120_000);
  assert.equal(client.objects(pods).length, 1);
});

test("pods of a node that cannot be read from the server stay, those of the next one go", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(
    pods,
    aPod({ name: "a", nodeName: "unknown" }),
    aPod({ name: "b", nodeName: "gone" }),
    aPod({ name: "c", nodeName: "gone" }),
  );
  client.react("get", "nodes", ({ name }) => {
    if (name === "unknown") throw serviceUnavailable("etcd is away");
    return undefined;
  });
  client.react("delete", "pods", ({ name }) => {
    if (name === "b") throw serviceUnavailable("etcd is away");
    return undefined;
  });
  await run(newPodGarbageCollector(ctx));
  await clock.advance(60_000);
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["a", "b"],
    "one that cannot be deleted keeps no other",
  );
  const uids = client.writes.map(({ sent }) => (sent as { preconditions?: { uid?: string } }).preconditions?.uid);
  assert.ok(uids.length >= 2 && uids.every((uid) => uid !== undefined), "only this pod, not the next of its name");
});

test("of each phase only an end is finished", () => {
  const all = ["Pending", "Running", "Unknown", "Failed", "Succeeded"].map((phase, minute) => podOf(minute, phase));
  const { status: _, ...bare } = podOf(9, "");
  const surplus = surplusFinished([...all, bare, podOf(8, "Failed")], 1);
  assert.deepEqual(
    surplus.map(({ metadata }) => metadata.name),
    ["p3", "p4"],
  );
});

test("the pods of a node that is gone which could not be deleted wait for another quarantine", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(pods, aPod({ name: "a", nodeName: "gone" }));
  client.react("delete", "pods", () => {
    throw serviceUnavailable("etcd is away");
  });
  await run(newPodGarbageCollector(ctx));
  await clock.advance(40_000);
  assert.equal(client.writes.length, 1);
  await clock.advance(59_000);
  assert.equal(client.writes.length, 1);
  await clock.advance(1_000);
  assert.equal(client.writes.length, 2);
});

test("of finished pods that were created at the same time the first by name go first", () => {
  const all = ["c", "a", "b"].map((name) => aPod({ name, phase: "Failed" }));
  assert.deepEqual(
    surplusFinished(all, 1).map(({ metadata }) => metadata.name),
    ["a", "b"],
  );
});
