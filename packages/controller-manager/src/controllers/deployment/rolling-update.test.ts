import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { aDeployment, aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { desiredReplicasAnnotation, maxReplicasAnnotation } from "./annotations.ts";
import { planScaling, wasScaled } from "./proportional-scaling.ts";
import { oldPodsRun, planScaleDownAll } from "./recreate.ts";
import {
  activeSets,
  actualReplicasOf,
  availableOf,
  desiredReplicas,
  fenceposts,
  maxSurgeOf,
  maxUnavailableOf,
  readyOf,
  replicasOf,
  specReplicas,
} from "./replica-counts.ts";
import { newSetReplicas, planScaleDown, planScaleUp } from "./rolling-update.ts";

type Bound = number | string;
const deploymentOf = (replicas: number, maxSurge: Bound, maxUnavailable: Bound) =>
  aDeployment({ replicas, spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } } } });

/** A ReplicaSet with these replica counts, created `minute` minutes after the first. */
function set(name: string, replicas: number, available = replicas, minute = 0, annotations?: Record<string, string>): ReplicaSet {
  const createdAt = `2024-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
  const replicaSet = aReplicaSet({ name, replicas, createdAt, ...(annotations === undefined ? {} : { annotations }) });
  replicaSet.status = { replicas, availableReplicas: available };
  return replicaSet;
}

const sizes = (resizes: readonly { replicaSet: ReplicaSet; replicas: number }[]) =>
  Object.fromEntries(resizes.map(({ replicaSet, replicas }) => [replicaSet.metadata.name, replicas]));

for (const { replicas, surge, unavailable, want } of [
  { replicas: 10, surge: "25%", unavailable: "25%", want: { maxSurge: 3, maxUnavailable: 2 } },
  { replicas: 1, surge: "25%", unavailable: "25%", want: { maxSurge: 1, maxUnavailable: 0 } },
  { replicas: 10, surge: 0, unavailable: 0, want: { maxSurge: 0, maxUnavailable: 1 } },
  { replicas: 3, surge: "0%", unavailable: "10%", want: { maxSurge: 0, maxUnavailable: 1 } },
  { replicas: 4, surge: 2, unavailable: "50%", want: { maxSurge: 2, maxUnavailable: 2 } },
] as { replicas: number; surge: Bound; unavailable: Bound; want: object }[]) {
  test(`${replicas} replicas with surge ${surge} and unavailable ${unavailable}`, () => {
    assert.deepEqual(fenceposts(deploymentOf(replicas, surge, unavailable)), want);
  });
}

test("no more pods than there are may be unavailable, but more may be added; Recreate has neither limit", () => {
  const limits = (deployment: ReturnType<typeof deploymentOf>) => [maxSurgeOf(deployment), maxUnavailableOf(deployment)];
  assert.deepEqual(limits(deploymentOf(2, 5, 5)), [5, 2]);
  assert.deepEqual(limits(deploymentOf(0, 5, 5)), [5, 0]);
  assert.deepEqual(limits(deploymentOf(0, 0, 0)), [0, 0], "not the one that lets a rollout proceed");
  assert.deepEqual(limits(aDeployment({ replicas: 2, spec: { strategy: { type: "Recreate" } } })), [0, 0]);
});

for (const { name, replicas, surge, old, current, want } of [
  { name: "all at once when nothing is there", replicas: 5, surge: 1, old: 0, current: 0, want: 5 },
  { name: "the surge beside a full old set", replicas: 10, surge: 2, old: 10, current: 0, want: 2 },
  { name: "the replicas for which an old set has made room", replicas: 10, surge: 2, old: 7, current: 2, want: 5 },
  { name: "no more than desired", replicas: 3, surge: 10, old: 1, current: 0, want: 3 },
  { name: "as many as it has when there is no room", replicas: 10, surge: 0, old: 10, current: 0, want: 0 },
]) {
  test(`a new set gets ${name}`, () => {
    assert.equal(newSetReplicas(deploymentOf(replicas, surge, 0), [set("old", old), set("new", current)], current), want);
  });
}

test("a deployment or set without a number of replicas has one, and a missing set none", () => {
  const { replicas: _, ...spec } = aDeployment({ replicas: 3 }).spec;
  assert.equal(desiredReplicas({ ...aDeployment(), spec }), 1);
  const { replicas: __, ...ofSet } = set("a", 3).spec;
  const without = { ...set("a", 3), spec: ofSet };
  assert.deepEqual([specReplicas(without), replicasOf([undefined, without, set("b", 3)])], [1, 4]);
  assert.deepEqual(activeSets([without, set("none", 0)]), [without]);
  const counted = { ...set("c", 9), status: { replicas: 4, availableReplicas: 2, readyReplicas: 3 } };
  const sets = [undefined, counted, { ...counted }, aReplicaSet({ name: "no status yet" })];
  assert.deepEqual([actualReplicasOf(sets), availableOf(sets), readyOf(sets)], [8, 4, 6]);
});

test("a new set that is larger than desired shrinks at once", () => {
  const newSet = set("new", 8);
  assert.deepEqual(sizes([planScaleUp(deploymentOf(5, 1, 1), newSet, [newSet])].filter((r) => r !== undefined)), { new: 5 });
});

test("a new set of the desired size stays", () => {
  const newSet = set("new", 5);
  assert.equal(planScaleUp(deploymentOf(5, 1, 1), newSet, [newSet]), undefined);
});

for (const { name, deployment, newSet, old, want } of [
  {
    name: "keeps all old ones while the new one is not available",
    deployment: deploymentOf(10, 2, 0),
    newSet: set("new", 2, 0),
    old: [set("a", 10)],
    want: {},
  },
  {
    name: "replaces what has become available",
    deployment: deploymentOf(10, 2, 0),
    newSet: set("new", 2, 2),
    old: [set("a", 10)],
    want: { a: 8 },
  },
  {
    name: "scales down by what may be unavailable",
    deployment: deploymentOf(10, 0, 3),
    newSet: set("new", 0),
    old: [set("a", 10)],
    want: { a: 7 },
  },
  {
    name: "takes what is not available first, of all old sets",
    deployment: deploymentOf(10, 5, 0),
    newSet: set("new", 5, 0),
    old: [set("a", 5, 5, 1), set("b", 5, 3, 2)],
    want: {},
  },
  {
    name: "removes unhealthy old ones before available ones",
    deployment: deploymentOf(10, 0, 4),
    newSet: set("new", 0),
    old: [set("a", 5, 5, 1), set("b", 5, 3, 2)],
    want: { a: 3, b: 3 },
  },
  {
    name: "takes the oldest set first",
    deployment: deploymentOf(10, 0, 4),
    newSet: set("new", 0),
    old: [set("b", 5, 5, 2), set("a", 5, 5, 1)],
    want: { a: 1 },
  },
  {
    name: "waits while an old set has more available than requested",
    deployment: deploymentOf(7, 2, 1),
    newSet: set("new", 5, 3),
    old: [set("a", 4, 5)],
    want: {},
  },
  {
    name: "has nothing to do without old pods",
    deployment: deploymentOf(3, 1, 1),
    newSet: set("new", 3),
    old: [set("a", 0)],
    want: {},
  },
  {
    name: "removes unavailable ones of two old sets, no more than the update may lose",
    deployment: deploymentOf(10, 0, 3),
    newSet: set("new", 0),
    old: [set("a", 5, 3, 1), set("b", 5, 3, 2)],
    want: { a: 3, b: 4 },
  },
  {
    name: "removes the rest at the end",
    deployment: deploymentOf(3, 1, 1),
    newSet: set("new", 3, 3),
    old: [set("a", 1)],
    want: { a: 0 },
  },
]) {
  test(`a rolling update ${name}`, () => assert.deepEqual(sizes(planScaleDown(deployment, newSet, old)), want));
}

test("recreate takes all old sets to nothing", () => {
  assert.deepEqual(sizes(planScaleDownAll([set("a", 3), set("b", 0)])), { a: 0 });
});

for (const { name, old, phase, want } of [
  { name: "an old set that reports pods", old: 1, phase: "Succeeded", want: true },
  { name: "a running old pod", old: 0, phase: "Running", want: true },
  { name: "an old pod in phase Unknown", old: 0, phase: "Unknown", want: true },
  { name: "only finished old pods", old: 0, phase: "Failed", want: false },
]) {
  test(`recreate with ${name} ${want ? "waits" : "continues"}`, () => {
    const oldSet = set("a", old);
    const pods = new Map([
      ["new-uid", [aPod()]],
      [oldSet.metadata.uid ?? "", [aPod({ phase })]],
    ]);
    assert.equal(oldPodsRun(set("new", 0), [oldSet], pods), want);
  });
}

const sized = (desired: number, max: number) => ({
  [desiredReplicasAnnotation]: String(desired),
  [maxReplicasAnnotation]: String(max),
});

for (const { name, deployment, newSet, old, want } of [
  {
    name: "the only active set takes it all",
    deployment: deploymentOf(7, 1, 1),
    newSet: set("new", 5),
    old: [set("a", 0)],
    want: { new: 7 },
  },
  {
    name: "the newest set when none is active",
    deployment: deploymentOf(4, 1, 1),
    newSet: set("new", 0),
    old: [set("a", 0)],
    want: { new: 4 },
  },
  {
    name: "the latest old set when there is no new one",
    deployment: deploymentOf(4, 1, 1),
    newSet: undefined,
    old: [set("a", 0, 0, 1), set("b", 0, 0, 2)],
    want: { b: 4 },
  },
  {
    name: "a complete rollout only loses what is old",
    deployment: deploymentOf(5, 1, 1),
    newSet: set("new", 5, 5, 3, sized(5, 6)),
    old: [set("a", 1)],
    want: { a: 0 },
  },
  {
    name: "old sets without a new one, by share",
    deployment: deploymentOf(20, 0, 1),
    newSet: undefined,
    old: [set("a", 5, 5, 1, sized(10, 10)), set("b", 5, 5, 2, sized(10, 10))],
    want: { a: 10, b: 10 },
  },
  {
    name: "growing in the middle of a rollout, by share",
    deployment: deploymentOf(20, 0, 1),
    newSet: set("new", 5, 5, 3, sized(10, 10)),
    old: [set("a", 3, 3, 2, sized(10, 10)), set("b", 2, 2, 1, sized(10, 10))],
    want: { new: 10, a: 6, b: 4 },
  },
  {
    name: "the biggest takes what rounding leaves",
    deployment: deploymentOf(11, 0, 1),
    newSet: set("new", 5, 5, 3, sized(10, 10)),
    old: [set("a", 5, 5, 2, sized(10, 10))],
    want: { new: 6, a: 5 },
  },
  {
    name: "the newest of the biggest takes what all shares leave",
    deployment: deploymentOf(13, 0, 1),
    newSet: set("new", 4, 4, 3, sized(12, 12)),
    old: [set("a", 4, 4, 2, sized(12, 12)), set("b", 4, 4, 1, sized(12, 12))],
    want: { new: 5, a: 4, b: 4 },
  },
  {
    name: "sets that do not remember their number, or not legibly, are shares of what was observed",
    deployment: { ...deploymentOf(20, 0, 1), status: { replicas: 10 } },
    newSet: set("new", 5, 5, 3),
    old: [set("a", 5, 5, 2, { [maxReplicasAnnotation]: "many" })],
    want: { new: 10, a: 10 },
  },
  {
    name: "each set is a share of the number that it remembers, as far as there is room",
    deployment: deploymentOf(20, 0, 1),
    newSet: set("new", 5, 5, 3, sized(10, 10)),
    old: [set("a", 5, 5, 2, sized(5, 5))],
    want: { new: 10, a: 10 },
  },
  {
    name: "shares are those of the largest number that was allowed, with the surge",
    deployment: deploymentOf(20, 2, 1),
    newSet: set("new", 4, 4, 3, sized(10, 12)),
    old: [set("a", 8, 8, 2, sized(10, 12))],
    want: { a: 15, new: 7 },
  },
  {
    name: "the biggest does not shrink below nothing when others shrink too little",
    deployment: deploymentOf(2, 0, 1),
    newSet: set("new", 3, 3, 3, sized(2, 2)),
    old: [set("a", 5, 5, 2, sized(9, 9))],
    want: { a: 0, new: 3 },
  },
  {
    name: "shrinking in the middle of a rollout",
    deployment: deploymentOf(5, 0, 1),
    newSet: set("new", 4, 4, 3, sized(10, 10)),
    old: [set("a", 6, 6, 2, sized(10, 10))],
    want: { a: 3, new: 2 },
  },
  {
    name: "a new set of the right size that is not available yet does not end the old ones",
    deployment: deploymentOf(5, 1, 1),
    newSet: set("new", 5, 4, 3, sized(5, 6)),
    old: [set("a", 1, 1, 2, sized(5, 6))],
    want: { new: 5, a: 1 },
  },
  {
    name: "a new set that is available but remembers another number does not end the old ones",
    deployment: deploymentOf(5, 1, 1),
    newSet: set("new", 5, 5, 3, sized(4, 5)),
    old: [set("a", 1, 1, 2, sized(4, 5))],
    want: { new: 5, a: 1 },
  },
  {
    name: "shares are rounded, and the last ones get what is left",
    deployment: deploymentOf(15, 0, 1),
    newSet: set("new", 4, 4, 3, sized(10, 10)),
    old: [set("a", 3, 3, 2, sized(10, 10)), set("b", 3, 3, 1, sized(10, 10))],
    want: { new: 6, a: 5, b: 4 },
  },
  {
    name: "of sets of one size the older one shrinks most",
    deployment: deploymentOf(5, 0, 1),
    newSet: set("new", 3, 3, 3, sized(6, 6)),
    old: [set("a", 3, 3, 2, sized(6, 6))],
    want: { a: 2, new: 3 },
  },
  {
    name: "no surge is kept when no replicas are desired",
    deployment: deploymentOf(0, 2, 1),
    newSet: set("new", 4, 4, 3, sized(10, 12)),
    old: [set("a", 6, 6, 2, sized(10, 12))],
    want: { a: 0, new: 0 },
  },
  {
    name: "several sets of a deployment that recreates stay as they are",
    deployment: aDeployment({ replicas: 20, spec: { strategy: { type: "Recreate" } } }),
    newSet: set("new", 5, 5, 3, sized(10, 10)),
    old: [set("a", 5, 5, 2, sized(10, 10))],
    want: {},
  },
  {
    name: "all sets are scaled to zero when no replicas are desired",
    deployment: deploymentOf(0, 0, 1),
    newSet: set("new", 4, 4, 3, sized(10, 10)),
    old: [set("a", 6, 6, 2, sized(10, 10))],
    want: { a: 0, new: 0 },
  },
]) {
  test(`scaling: ${name}`, () => assert.deepEqual(sizes(planScaling(deployment, newSet, old)), want));
}

test("sees that a deployment was scaled by what its sets remember", () => {
  const deployment = deploymentOf(5, 1, 1);
  assert.equal(wasScaled(deployment, [set("a", 5, 5, 0, sized(5, 6))]), false);
  assert.equal(wasScaled(deployment, [set("a", 5, 5, 0, sized(4, 5))]), true);
  assert.equal(wasScaled(deployment, [set("a", 0, 0, 0, sized(4, 5))]), false);
  assert.equal(wasScaled(deployment, [set("a", 5)]), false);
});
