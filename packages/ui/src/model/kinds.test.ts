import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { kindOf } from "./kinds.ts";
import type { NodeRow, PodRow, WorkloadRow } from "./row.ts";

const rowOf = <R>(resource: string, object: object): R =>
  kindOf(resource)?.rowOf({
    metadata: { name: "x", uid: "u", ...(object as KubeObject).metadata },
    ...object,
  } as KubeObject) as R;

const meta = { name: "x", uid: "u", creationTimestamp: "2026-01-01T00:00:00Z" };
const containers = [{ name: "a" }, { name: "b" }];
const status = (name: string, more: object) => ({ name, ready: false, restartCount: 0, ...more });
const waiting = (reason: string) => ({ waiting: { reason } });

for (const { name, pod, want } of [
  { name: "waits for a node", pod: { status: { phase: "Pending" } }, want: ["moving", "Pending"] },
  {
    name: "fits no node",
    pod: { status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] } },
    want: ["bad", "Unschedulable"],
  },
  {
    name: "starts",
    pod: { status: { phase: "Pending", containerStatuses: [status("a", { state: waiting("ContainerCreating") })] } },
    want: ["moving", "ContainerCreating"],
  },
  {
    name: "has no image",
    pod: { status: { phase: "Pending", containerStatuses: [status("a", { state: waiting("ImagePullBackOff") })] } },
    want: ["bad", "ImagePullBackOff"],
  },
  {
    name: "runs, and one container is not ready",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: [status("a", { ready: true, state: { running: {} } }), status("b", { state: { running: {} } })],
      },
    },
    want: ["moving", "Running"],
  },
  {
    name: "runs",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: ["a", "b"].map((one) => status(one, { ready: true, state: { running: {} } })),
      },
    },
    want: ["good", "Running"],
  },
  {
    name: "is at its second init container",
    pod: {
      spec: { containers, initContainers: containers },
      status: {
        phase: "Pending",
        initContainerStatuses: [status("a", { state: { terminated: { exitCode: 0 } } }), status("b", { state: { running: {} } })],
      },
    },
    want: ["moving", "Init:1/2"],
  },
  {
    name: "failed in an init container",
    pod: { status: { phase: "Pending", initContainerStatuses: [status("a", { state: waiting("CrashLoopBackOff") })] } },
    want: ["bad", "Init:CrashLoopBackOff"],
  },
  { name: "is done", pod: { status: { phase: "Succeeded" } }, want: ["idle", "Succeeded"] },
  { name: "was evicted", pod: { status: { phase: "Failed", reason: "Evicted" } }, want: ["bad", "Evicted"] },
  {
    name: "is deleted",
    pod: { metadata: { ...meta, deletionTimestamp: meta.creationTimestamp }, status: { phase: "Running" } },
    want: ["moving", "Terminating"],
  },
]) {
  test(`a pod that ${name} is ${want.join(", ")}`, () => {
    const row = rowOf<PodRow>("pods", { spec: { containers }, ...pod });
    assert.deepEqual([row.health, row.status], want);
  });
}

test("a pod requests what its containers do together, or its largest init container, and the overhead", () => {
  const requests = (cpu: string) => ({ resources: { requests: { cpu } } });
  const spec = (init: string) => ({
    containers: [requests("100m"), requests("0.2")],
    initContainers: [requests(init)],
    overhead: { cpu: "10m" },
  });
  assert.equal(rowOf<PodRow>("pods", { spec: spec("50m"), status: {} }).cpuMilli, 310);
  assert.equal(rowOf<PodRow>("pods", { spec: spec("2"), status: {} }).cpuMilli, 2010);
});

for (const { name, conditions, unschedulable = false, want } of [
  { name: "ready", conditions: [{ type: "Ready", status: "True" }], want: ["good", "Ready"] },
  { name: "away", conditions: [{ type: "Ready", status: "Unknown" }], want: ["bad", "NotReady"] },
  { name: "without a status", conditions: [], want: ["bad", "NotReady"] },
  {
    name: "short of memory",
    conditions: [
      { type: "MemoryPressure", status: "True" },
      { type: "Ready", status: "True" },
    ],
    want: ["bad", "Ready, MemoryPressure"],
  },
  {
    name: "cordoned",
    conditions: [{ type: "Ready", status: "True" }],
    unschedulable: true,
    want: ["moving", "Ready, SchedulingDisabled"],
  },
]) {
  test(`a node that is ${name} is ${want.join(", ")}`, () => {
    const row = rowOf<NodeRow>("nodes", { spec: { unschedulable }, status: { conditions } });
    assert.deepEqual([row.health, row.status], want);
  });
}

const rollout = ({ desired, ready, updatedReady, updated, health }: WorkloadRow) => [
  health,
  desired,
  ready,
  updatedReady,
  updated,
];
for (const { name, replicas = 3, counts, more = {}, want } of [
  { name: "as desired", counts: { replicas: 3, updatedReplicas: 3, availableReplicas: 3 }, want: ["good", 3, 3, 3, 3] },
  { name: "with old pods left", counts: { replicas: 4, updatedReplicas: 3, availableReplicas: 4 }, want: ["moving", 3, 4, 2, 2] },
  {
    name: "whose new pods do not start",
    counts: { replicas: 4, updatedReplicas: 1, availableReplicas: 3 },
    want: ["moving", 3, 3, 0, 1],
  },
  {
    name: "that makes no progress",
    counts: { replicas: 4, updatedReplicas: 1, availableReplicas: 3 },
    more: { conditions: [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }] },
    want: ["bad", 3, 3, 0, 1],
  },
  { name: "scaled to 0", replicas: 0, counts: {}, want: ["idle", 0, 0, 0, 0] },
]) {
  test(`a Deployment ${name}`, () => {
    const deployment = {
      metadata: { ...meta, generation: 1 },
      spec: { replicas },
      status: { observedGeneration: 1, ...counts, ...more },
    };
    assert.deepEqual(rollout(rowOf<WorkloadRow>("deployments.apps", deployment)), want);
  });
}

test("objects without a status, and with empty fields, become rows", () => {
  for (const resource of ["pods", "nodes", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"]) {
    const row = rowOf<PodRow>(resource, { spec: { containers: [] } });
    assert.deepEqual([row.uid, row.name, row.namespace], ["u", "x", ""]);
  }
  for (const resource of [
    "jobs.batch",
    "namespaces",
    "persistentvolumeclaims",
    "services",
    "horizontalpodautoscalers.autoscaling",
  ]) {
    assert.equal(rowOf<PodRow>(resource, {}).uid, "u");
  }
  assert.equal(rowOf<PodRow>("events", { involvedObject: {} }).uid, "u");
});
