import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { expectedPods, NoControllerError } from "./plan.ts";
import { countHealthy, desiredStatus, disruptionsOf, failedStatus } from "./status.ts";

const now = Date.parse("2022-01-01T01:00:00Z");
const before = (seconds: number): string => new Date(now - seconds * 1000).toISOString().replace(".000", "");
const budget = (status?: object): PodDisruptionBudget =>
  ({
    metadata: { name: "pdb", namespace: "default", generation: 3 },
    spec: {},
    ...(status && { status }),
  }) as PodDisruptionBudget;
const pods = ["a", "b", "c", "d"].map((name) => aPod({ name }));

test("the first evicted pod to become overdue decides when to check again; pods that are being deleted are not waited for", () => {
  const disruptedPods = { a: before(30), b: before(100), c: before(120), gone: before(10), d: before(121) };
  const { pending, overdue, recheckAt } = disruptionsOf(budget({ disruptedPods }), pods, now);
  assert.deepEqual(Object.keys(pending), ["a", "b", "c"]);
  assert.deepEqual(
    overdue.map(({ metadata }) => metadata.name),
    ["d"],
  );
  assert.equal(recheckAt, now);
  assert.equal(disruptionsOf(budget({ disruptedPods }), pods.toReversed(), now).recheckAt, now);
  const going = aPod({ name: "c", deletedAt: before(1) });
  assert.equal(disruptionsOf(budget({ disruptedPods }), [...pods.slice(0, 2), going], now).recheckAt, now + 20_000);
  assert.deepEqual(disruptionsOf(budget(), pods, now), { pending: {}, overdue: [], recheckAt: undefined });
});

test("healthy is who is ready, not going, and not evicted within two minutes", () => {
  const some = [
    aPod({ name: "a" }),
    aPod({ name: "b", ready: false }),
    aPod({ name: "c", deletedAt: before(1) }),
    aPod({ name: "d" }),
  ];
  assert.equal(countHealthy(some, {}, now), 2);
  assert.equal(countHealthy(some, { a: before(119) }, now), 1);
  assert.equal(countHealthy(some, { a: before(120) }, now), 2);
  assert.equal(countHealthy(some, { toString: before(1) }, now), 2);
});

test("a status that says the same is not written; one of another generation, count or eviction is", () => {
  const expected = { expectedPods: 3, desiredHealthy: 2, unmanaged: [] };
  const first = desiredStatus(budget(), expected, 3, {}, now);
  assert.equal(first?.disruptionsAllowed, 1);
  assert.equal(desiredStatus(budget(first), expected, 3, {}, now + 60_000), undefined);
  assert.ok(desiredStatus(budget({ ...first, observedGeneration: 2 }), expected, 3, {}, now));
  assert.ok(desiredStatus(budget(first), expected, 3, { a: before(1) }, now));
  const short = desiredStatus(budget(first), expected, 2, {}, now + 60_000);
  assert.deepEqual([short?.disruptionsAllowed, short?.conditions?.[0]?.reason], [0, "InsufficientPods"]);
  assert.notEqual(short?.conditions?.[0]?.lastTransitionTime, first?.conditions?.[0]?.lastTransitionTime);
  const shorter = desiredStatus(budget(short), expected, 1, {}, now + 120_000);
  assert.equal(shorter?.disruptionsAllowed, 0, "never less than none");
  assert.equal(shorter?.conditions?.[0]?.lastTransitionTime, short?.conditions?.[0]?.lastTransitionTime);
  assert.equal(desiredStatus(budget(), { ...expected, expectedPods: 0 }, 9, {}, now)?.disruptionsAllowed, 0);
});

test("a failed computation allows no disruption, and keeps the counts, foreign conditions and the transition time", () => {
  const other = { type: "Other", status: "True", reason: "x", message: "", lastTransitionTime: before(99) };
  const known = { ...desiredStatus(budget(), { expectedPods: 3, desiredHealthy: 2, unmanaged: [] }, 3, {}, now) };
  const failed = failedStatus(budget({ ...known, conditions: [other, ...(known.conditions ?? [])] }), "no scale", now + 5_000);
  assert.partialDeepStrictEqual(failed, { disruptionsAllowed: 0, currentHealthy: 3, expectedPods: 3, observedGeneration: 3 });
  assert.deepEqual(
    failed.conditions?.map(({ type, reason }) => [type, reason]),
    [
      ["Other", "x"],
      ["DisruptionAllowed", "SyncFailed"],
    ],
  );
  const again = failedStatus(budget(failed), "no scale", now + 60_000);
  assert.deepEqual(again.conditions, failed.conditions);
});

test("each controller counts once, also behind a pod that has none; one that is gone is a failure", async () => {
  const [one, two] = [aReplicaSet({ name: "one" }), aReplicaSet({ name: "two" })];
  const owned = [
    aPod({ name: "free" }),
    aPod({ name: "x", owner: one }),
    aPod({ name: "y", owner: one }),
    aPod({ name: "z", owner: two }),
  ];
  const requests: string[] = [];
  const scaleOf = async ({ name, uid }: { name: string; uid: string }) => {
    requests.push(name);
    return { uid, replicas: name === "one" ? 4 : 6 };
  };
  const counted = await expectedPods({ minAvailable: "50%" }, owned, scaleOf);
  assert.deepEqual(counted, { expectedPods: 10, desiredHealthy: 5, unmanaged: ["free"] });
  assert.deepEqual(requests, ["one", "two"]);
  await assert.rejects(
    expectedPods({ minAvailable: "50%" }, owned, async () => undefined),
    NoControllerError,
  );
});

test("conditions of others stay when the first own one is added", () => {
  const other = { type: "Other", status: "True", reason: "x", message: "", lastTransitionTime: before(99) };
  const status = desiredStatus(
    budget({ conditions: [other] }),
    { expectedPods: 3, desiredHealthy: 2, unmanaged: [] },
    3,
    {},
    now,
  );
  assert.deepEqual(
    status?.conditions?.map(({ type, reason }) => [type, reason]),
    [
      ["Other", "x"],
      ["DisruptionAllowed", "SufficientPods"],
    ],
  );
});
