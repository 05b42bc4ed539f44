import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { replicaStatus } from "./status.ts";

const now = Date.parse("2024-01-02T00:00:00Z");

test("counts pods by labels, readiness and availability", () => {
  const replicaSet = aReplicaSet({ generation: 4, minReadySeconds: 60 });
  const labels = { app: "web" };
  const status = replicaStatus(
    replicaSet,
    [
      aPod({ labels }),
      aPod({ labels, readySince: "2024-01-01T23:59:30Z" }),
      aPod({ labels, ready: false }),
      aPod({ labels: { app: "api" } }),
    ],
    undefined,
    now,
  );
  assert.deepEqual(status, {
    replicas: 4,
    fullyLabeledReplicas: 3,
    readyReplicas: 3,
    availableReplicas: 2,
    observedGeneration: 4,
  });
});

test("says why pods could not be created, once, and forgets it when they can", () => {
  const replicaSet = aReplicaSet();
  const failure = { reason: "FailedCreate", message: "exceeded quota" } as const;
  replicaSet.status = replicaStatus(replicaSet, [], failure, now);
  const want = { type: "ReplicaFailure", status: "True", lastTransitionTime: "2024-01-02T00:00:00Z", ...failure };
  assert.deepEqual(replicaSet.status.conditions, [want]);
  assert.deepEqual(replicaStatus(replicaSet, [], failure, now + 60_000).conditions, [want]);
  assert.equal(replicaStatus(replicaSet, [], undefined, now).conditions, undefined);
});

test("ReplicaFailure is added beside other conditions, which stay when it is removed", () => {
  const replicaSet = aReplicaSet();
  const other = { type: "Other", status: "True" as const };
  replicaSet.status = { replicas: 0, conditions: [other] };
  const failure = { reason: "FailedCreate", message: "exceeded quota" } as const;
  const failed = replicaStatus(replicaSet, [], failure, now);
  assert.deepEqual(
    failed.conditions?.map(({ type }) => type),
    ["Other", "ReplicaFailure"],
  );
  assert.deepEqual(replicaStatus({ ...replicaSet, status: failed }, [], undefined, now).conditions, [other]);
});

test("without a template every pod counts as fully labeled", () => {
  const { template: _, ...spec } = aReplicaSet({ generation: 1 }).spec;
  const status = replicaStatus({ metadata: { generation: 1 }, spec }, [aPod({ labels: { app: "web" } }), aPod()], undefined, now);
  assert.deepEqual([status.replicas, status.fullyLabeledReplicas], [2, 2]);
});
