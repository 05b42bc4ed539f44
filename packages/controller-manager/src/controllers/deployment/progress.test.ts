import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { aDeployment, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { conditionOf, newCondition, withCondition } from "./conditions.ts";
import { nextProgressCheckMs, pausedCondition, withProgress } from "./progress.ts";
import { calculateStatus, storedForm } from "./status.ts";

const start = Date.parse("2024-01-01T00:00:00Z");
const minutes = (n: number): number => start + n * 60_000;

function set(name: string, replicas: number, available: number): ReplicaSet {
  const replicaSet = aReplicaSet({ name, replicas });
  replicaSet.status = { replicas, readyReplicas: available, availableReplicas: available };
  return replicaSet;
}

/** The status after another reconciliation with these ReplicaSets. */
function after(deployment: Deployment, newSet: ReplicaSet, old: ReplicaSet[], now: number) {
  const all = [...old, newSet];
  return withProgress(deployment, calculateStatus(deployment, newSet, all, now), newSet, all, now);
}

const progressing = (reason: string, at = start, status: "True" | "Unknown" = "True") =>
  newCondition("Progressing", status, reason, "", at);

test("counts over all sets and says whether enough is available", () => {
  const deployment = aDeployment({ replicas: 4, generation: 3 });
  const status = calculateStatus(deployment, set("new", 2, 1), [set("new", 2, 1), set("old", 3, 3)], start);
  assert.partialDeepStrictEqual(status, {
    observedGeneration: 3,
    replicas: 5,
    updatedReplicas: 2,
    readyReplicas: 4,
    availableReplicas: 4,
    unavailableReplicas: 1,
  });
  assert.deepEqual(status.conditions, [
    newCondition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", start),
  ]);
});

test("counts the pods that there are, not those that are wanted", () => {
  const newSet = { ...set("new", 2, 1), spec: { ...set("new", 2, 1).spec, replicas: 5 } };
  const { replicas, updatedReplicas, unavailableReplicas } = calculateStatus(
    aDeployment({ replicas: 5 }),
    newSet,
    [newSet],
    start,
  );
  assert.deepEqual(
    { replicas, updatedReplicas, unavailableReplicas },
    { replicas: 2, updatedReplicas: 2, unavailableReplicas: 4 },
  );
});

test("is not available below desired - maxUnavailable", () => {
  const status = calculateStatus(aDeployment({ replicas: 4 }), set("new", 4, 2), [set("new", 4, 2)], start);
  assert.equal(conditionOf(status.conditions, "Available")?.reason, "MinimumReplicasUnavailable");
});

test("stored, it leaves out counts of nothing", () => {
  const status = calculateStatus(aDeployment({ replicas: 0 }), set("new", 0, 0), [], start);
  assert.deepEqual(Object.keys(storedForm(status)), ["observedGeneration", "conditions"]);
});

for (const { name, deployment, newSet, old, now, want } of [
  {
    name: "complete",
    deployment: aDeployment({ replicas: 2 }),
    newSet: set("new", 2, 2),
    old: [],
    now: minutes(1),
    want: { status: "True", reason: "NewReplicaSetAvailable", message: 'ReplicaSet "new" has successfully progressed.' },
  },
  {
    name: "getting on",
    deployment: aDeployment({ replicas: 2 }),
    newSet: set("new", 1, 0),
    old: [set("old", 2, 2)],
    now: minutes(1),
    want: { status: "True", reason: "ReplicaSetUpdated", message: 'ReplicaSet "new" is progressing.' },
  },
  {
    name: "all updated and available beside an old pod",
    deployment: aDeployment({ replicas: 2 }),
    newSet: set("new", 2, 2),
    old: [set("old", 1, 0)],
    now: minutes(1),
    want: { status: "True", reason: "ReplicaSetUpdated" },
  },
]) {
  test(`a rollout that is ${name}`, () => {
    assert.partialDeepStrictEqual(conditionOf(after(deployment, newSet, old, now).conditions, "Progressing"), want);
  });
}

function standingStill(reason: string, since: number): Deployment {
  const deployment = aDeployment({ replicas: 2 });
  const { conditions: _, ...counts } = calculateStatus(deployment, set("new", 1, 0), [set("new", 1, 0)], since);
  deployment.status = { ...counts, conditions: [progressing(reason, since)] };
  return deployment;
}

test("a rollout that stands still times out after its deadline, not before", () => {
  const deployment = standingStill("ReplicaSetUpdated", start);
  const before = after(deployment, set("new", 1, 0), [], minutes(10));
  assert.equal(conditionOf(before.conditions, "Progressing")?.reason, "ReplicaSetUpdated");
  const late = after(deployment, set("new", 1, 0), [], minutes(10) + 1000);
  assert.partialDeepStrictEqual(conditionOf(late.conditions, "Progressing"), {
    status: "False",
    reason: "ProgressDeadlineExceeded",
    message: 'ReplicaSet "new" has timed out progressing.',
  });
});

const shape = (name: string, replicas: number, readyReplicas: number, availableReplicas: number): ReplicaSet => ({
  ...aReplicaSet({ name, replicas }),
  status: { replicas, readyReplicas, availableReplicas },
});
for (const { name, newSet, old, want } of [
  { name: "an old pod that is gone", newSet: shape("new", 1, 0, 0), old: [shape("old", 1, 1, 1)], want: true },
  { name: "a pod that became ready", newSet: shape("new", 1, 1, 0), old: [shape("old", 2, 2, 2)], want: true },
  { name: "a ready pod that became available", newSet: shape("new", 1, 1, 1), old: [shape("old", 2, 1, 2)], want: true },
  { name: "an old pod that stopped being ready", newSet: shape("new", 1, 0, 0), old: [shape("old", 2, 1, 1)], want: false },
]) {
  test(`${name} is ${want ? "" : "no "}progress`, () => {
    const deployment = aDeployment({ replicas: 3 });
    const before = calculateStatus(deployment, shape("new", 1, 0, 0), [shape("new", 1, 0, 0), shape("old", 2, 2, 2)], start);
    deployment.status = { ...before, conditions: [progressing("ReplicaSetUpdated")] };
    const condition = conditionOf(after(deployment, newSet, old, minutes(5)).conditions, "Progressing");
    assert.equal(condition?.lastUpdateTime === "2024-01-01T00:05:00Z", want);
  });
}

test("a deployment that was complete and goes on to another template progresses again", () => {
  const deployment = aDeployment({ replicas: 2 });
  const { conditions: _, ...counts } = calculateStatus(deployment, set("old", 2, 2), [set("old", 2, 2)], start);
  deployment.status = { ...counts, conditions: [progressing("NewReplicaSetAvailable")] };
  const status = after(deployment, set("new", 1, 1), [set("old", 2, 2)], minutes(1));
  assert.equal(conditionOf(status.conditions, "Progressing")?.reason, "ReplicaSetUpdated");
});

test("a deployment that was complete and has another template whose first pod is not there yet has not timed out", () => {
  const deployment = aDeployment({ replicas: 2 });
  const sets = [set("new", 0, 0), set("old", 2, 2)] as const;
  const { conditions: _, ...counts } = calculateStatus(deployment, sets[0], sets, start);
  deployment.status = { ...counts, conditions: [progressing("NewReplicaSetAvailable")] };
  const status = after(deployment, sets[0], [sets[1]], minutes(60));
  assert.equal(conditionOf(status.conditions, "Progressing")?.reason, "NewReplicaSetAvailable");
});

test("progress after a timeout is a transition", () => {
  const deployment = standingStill("ReplicaSetUpdated", start);
  const timedOut = newCondition("Progressing", "False", "ProgressDeadlineExceeded", "", start);
  deployment.status = { ...deployment.status, conditions: [timedOut] };
  const condition = conditionOf(after(deployment, set("new", 2, 1), [], minutes(20)).conditions, "Progressing");
  assert.partialDeepStrictEqual(condition, { status: "True", lastTransitionTime: "2024-01-01T00:20:00Z" });
});

test("more available replicas than a shrinking set should have are not counted as unavailable below zero", () => {
  const deployment = { ...aDeployment({ replicas: 1 }), status: { collisionCount: 3 } };
  const status = calculateStatus(deployment, set("new", 1, 3), [set("new", 1, 3)], start);
  assert.deepEqual([status.unavailableReplicas, status.collisionCount], [0, 3]);
});

test("a complete rollout never times out", () => {
  const late = after(standingStill("NewReplicaSetAvailable", start), set("new", 1, 0), [], minutes(60));
  assert.equal(conditionOf(late.conditions, "Progressing")?.reason, "NewReplicaSetAvailable");
});

test("progress moves the update time but not the transition time", () => {
  const deployment = standingStill("ReplicaSetUpdated", start);
  const condition = conditionOf(after(deployment, set("new", 2, 1), [], minutes(5)).conditions, "Progressing");
  assert.deepEqual([condition?.lastUpdateTime, condition?.lastTransitionTime], ["2024-01-01T00:05:00Z", "2024-01-01T00:00:00Z"]);
});

test("without a deadline nothing is said about progress", () => {
  const deployment = aDeployment({ replicas: 2, spec: { progressDeadlineSeconds: 2147483647 } });
  deployment.status = { conditions: [progressing("ReplicaSetUpdated")] };
  assert.equal(conditionOf(after(deployment, set("new", 1, 1), [], start).conditions, "Progressing"), undefined);
});

test("the longest deadline is one second less than the number that means none", () => {
  const deployment = aDeployment({ replicas: 2, spec: { progressDeadlineSeconds: 2147483646 } });
  deployment.status = { conditions: [progressing("ReplicaSetUpdated")] };
  assert.ok(conditionOf(after(deployment, set("new", 1, 1), [], start).conditions, "Progressing"));
});

test("a set's failure is the deployment's", () => {
  const failing = set("new", 1, 0);
  const failure = { type: "ReplicaFailure", status: "True" as const, reason: "FailedCreate", message: "exceeded quota" };
  failing.status = { replicas: 0, conditions: [{ ...failure, lastTransitionTime: "2024-01-01T00:00:00Z" }] };
  const status = after(aDeployment(), failing, [], start);
  assert.partialDeepStrictEqual(conditionOf(status.conditions, "ReplicaFailure"), failure);
  const mended = { ...aDeployment(), status: storedForm(status) };
  assert.equal(conditionOf(after(mended, set("new", 1, 1), [], start).conditions, "ReplicaFailure"), undefined);
});

for (const { name, reason, at, want } of [
  { name: "when its deadline has passed", reason: "ReplicaSetUpdated", at: minutes(4), want: 361_000 },
  { name: "soon when it has passed already", reason: "ReplicaSetUpdated", at: minutes(11), want: 1000 },
  { name: "never when it timed out", reason: "ProgressDeadlineExceeded", at: minutes(4), want: undefined },
]) {
  test(`looks again at a rollout that stands still ${name}`, () => {
    const deployment = standingStill(reason, start);
    assert.equal(nextProgressCheckMs(deployment, after(deployment, set("new", 1, 0), [], at), at), want);
  });
}

test("does not look again at a rollout that is complete", () => {
  const deployment = standingStill("ReplicaSetUpdated", start);
  assert.equal(nextProgressCheckMs(deployment, after(deployment, set("new", 2, 2), [], start), start), undefined);
});

for (const { name, paused, current, want } of [
  { name: "pausing", paused: true, current: "ReplicaSetUpdated", want: "DeploymentPaused" },
  { name: "being paused", paused: true, current: "DeploymentPaused", want: undefined },
  { name: "resuming", paused: false, current: "DeploymentPaused", want: "DeploymentResumed" },
  { name: "running", paused: false, current: "ReplicaSetUpdated", want: undefined },
  { name: "pausing after a timeout", paused: true, current: "ProgressDeadlineExceeded", want: undefined },
]) {
  test(`${name} ${want === undefined ? "says nothing new" : `says ${want}`}`, () => {
    const deployment = aDeployment({ spec: { paused } });
    deployment.status = { conditions: [progressing(current)] };
    assert.equal(pausedCondition(deployment, start)?.reason, want);
  });
}

for (const { paused, before } of [
  { paused: true, before: "ReplicaSetUpdated" },
  { paused: false, before: "DeploymentPaused" },
]) {
  test(`the deadline counts from when the deployment was ${paused ? "paused" : "resumed"}`, () => {
    const deployment = aDeployment({ spec: { paused, progressDeadlineSeconds: 600 } });
    deployment.status = { conditions: [progressing(before)] };
    assert.partialDeepStrictEqual(pausedCondition(deployment, minutes(20)), {
      status: "Unknown",
      lastUpdateTime: "2024-01-01T00:20:00Z",
      lastTransitionTime: "2024-01-01T00:20:00Z",
    });
  });
}

test("a condition keeps its transition time while its status is the same", () => {
  const first = newCondition("Available", "True", "A", "a", start);
  const [second] = withCondition([first], newCondition("Available", "True", "B", "b", minutes(1)));
  assert.partialDeepStrictEqual(second, {
    reason: "B",
    lastUpdateTime: "2024-01-01T00:01:00Z",
    lastTransitionTime: "2024-01-01T00:00:00Z",
  });
  for (const reason of ["A", "B"]) {
    const [third] = withCondition([first], newCondition("Available", "False", reason, "b", minutes(1)));
    assert.deepEqual([third?.status, third?.lastTransitionTime], ["False", "2024-01-01T00:01:00Z"], reason);
  }
});

test("the failure of an old set is shown when the new one has none", () => {
  const failure = { type: "ReplicaFailure", status: "True" as const, reason: "FailedDelete", message: "forbidden" };
  const old = set("old", 2, 2);
  old.status = { replicas: 2, conditions: [failure] };
  const status = after(aDeployment({ replicas: 2 }), set("new", 1, 1), [set("older", 1, 1), old], start);
  assert.partialDeepStrictEqual(conditionOf(status.conditions, "ReplicaFailure"), failure);
  const failing = set("new", 1, 1);
  failing.status = { replicas: 1, conditions: [{ ...failure, message: "of the new one" }] };
  const both = after(aDeployment({ replicas: 2 }), failing, [old], start);
  assert.equal(conditionOf(both.conditions, "ReplicaFailure")?.message, "of the new one", "it comes first");
});

test("without a new set the conditions name the deployment", () => {
  const deployment = { ...aDeployment({ replicas: 2 }), status: { conditions: [progressing("ReplicaSetUpdated")] } };
  const sets = [set("old", 1, 1)];
  const status = calculateStatus(deployment, undefined, sets, start);
  const { conditions } = withProgress(deployment, status, undefined, sets, minutes(1));
  assert.equal(conditionOf(conditions, "Progressing")?.message, 'Deployment "web" is progressing.');
});
