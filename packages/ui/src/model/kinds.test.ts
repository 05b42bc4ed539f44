import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { kindOf } from "./kinds.ts";
import type { EventRow, NodeRow, PodRow, WorkloadRow } from "./row.ts";

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
  {
    name: "waits for its init containers, of which none has a reason",
    pod: {
      spec: { containers, initContainers: containers },
      status: { phase: "Pending", initContainerStatuses: [status("a", { state: waiting("PodInitializing") }), status("b", {})] },
    },
    want: ["moving", "Init:0/2"],
  },
  {
    name: "was stopped in an init container",
    pod: {
      status: { phase: "Pending", initContainerStatuses: [status("a", { state: { terminated: { exitCode: 137, signal: 9 } } })] },
    },
    want: ["moving", "Init:Signal:9"],
  },
  {
    name: "failed again in an init container",
    pod: {
      status: {
        phase: "Pending",
        initContainerStatuses: [status("a", { restartCount: 1, state: { terminated: { exitCode: 3 } } })],
      },
    },
    want: ["bad", "Init:ExitCode:3"],
  },
  {
    name: "crashes, whatever its second container does",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: [
          status("a", { state: waiting("CrashLoopBackOff") }),
          status("b", { state: waiting("ContainerCreating") }),
        ],
      },
    },
    want: ["bad", "CrashLoopBackOff"],
  },
  ...([true, false] as const).flatMap((isReady) =>
    [
      ["a", "b"],
      ["b", "a"],
    ].map((order) => ({
      name: `has a container that is complete and another that runs (${order.join(" first, then ")}), and is ${isReady ? "" : "not "}ready`,
      pod: {
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
          containerStatuses: order.map((one) =>
            one === "a"
              ? status("a", { state: { terminated: { exitCode: 0, reason: "Completed" } } })
              : status("b", { ready: true, state: { running: {} } }),
          ),
        },
      },
      want: ["moving", isReady ? "Running" : "NotReady"],
    })),
  ),
  {
    name: "has containers that are complete",
    pod: {
      status: {
        phase: "Succeeded",
        containerStatuses: ["a", "b"].map((one) => status(one, { state: { terminated: { exitCode: 0, reason: "Completed" } } })),
      },
    },
    want: ["idle", "Completed"],
  },
  {
    name: "was stopped by a signal",
    pod: {
      status: { phase: "Failed", containerStatuses: [status("a", { state: { terminated: { exitCode: 143, signal: 15 } } })] },
    },
    want: ["bad", "Signal:15"],
  },
  {
    name: "ended with an exit code",
    pod: { status: { phase: "Failed", containerStatuses: [status("a", { state: { terminated: { exitCode: 2 } } })] } },
    want: ["bad", "ExitCode:2"],
  },
  {
    name: "is deleted on a node that is lost",
    pod: { metadata: { ...meta, deletionTimestamp: meta.creationTimestamp }, status: { phase: "Running", reason: "NodeLost" } },
    want: ["moving", "Unknown"],
  },
  { name: "is on a node that is away", pod: { status: { phase: "Unknown" } }, want: ["bad", "Unknown"] },
  { name: "has no status", pod: {}, want: ["moving", "Pending"] },
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

for (const { resource, object, want } of [
  {
    resource: "jobs.batch",
    object: { spec: { completions: 3, parallelism: 2 }, status: { succeeded: 1 } },
    want: ["moving", "Running", 3, 1],
  },
  { resource: "jobs.batch", object: { spec: { parallelism: 2 } }, want: ["moving", "Running", 2, 0] },
  { resource: "jobs.batch", object: { spec: { suspend: true } }, want: ["idle", "Suspended", 1, 0] },
  {
    resource: "jobs.batch",
    object: { status: { conditions: [{ type: "Failed", status: "True", reason: "BackoffLimitExceeded" }] } },
    want: ["bad", "BackoffLimitExceeded", 1, 0],
  },
  {
    resource: "jobs.batch",
    object: { status: { succeeded: 1, conditions: [{ type: "Complete", status: "True" }] } },
    want: ["idle", "Complete", 1, 1],
  },
  { resource: "cronjobs.batch", object: { spec: { schedule: "@daily", jobTemplate: {} } }, want: ["idle", "@daily", 0, 0] },
  {
    resource: "cronjobs.batch",
    object: { spec: { schedule: "@daily", suspend: true, jobTemplate: {} }, status: { active: [{}] } },
    want: ["moving", "Suspended", 0, 1],
  },
  { resource: "deployments.apps", object: { spec: { replicas: 2, paused: true } }, want: ["idle", "Paused", 2, 0] },
  {
    resource: "deployments.apps",
    object: {
      metadata: { ...meta, generation: 2 },
      spec: {},
      status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
    },
    want: ["moving", "Updating", 1, 1],
  },
  {
    resource: "deployments.apps",
    object: { spec: {}, status: { conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate" }] } },
    want: ["bad", "FailedCreate", 1, 0],
  },
  { resource: "replicasets.apps", object: { spec: {}, status: { readyReplicas: 1 } }, want: ["good", "Available", 1, 1] },
  { resource: "replicasets.apps", object: { spec: { replicas: 0 } }, want: ["idle", "Scaled to 0", 0, 0] },
  {
    resource: "statefulsets.apps",
    object: { spec: { replicas: 2 }, status: { readyReplicas: 1 } },
    want: ["moving", "Starting", 2, 1],
  },
  {
    resource: "statefulsets.apps",
    object: {
      spec: { replicas: 2 },
      status: { replicas: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
    },
    want: ["moving", "Updating", 2, 2],
  },
  {
    resource: "daemonsets.apps",
    object: { status: { desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 1 } },
    want: ["moving", "Updating", 2, 2],
  },
] as { resource: string; object: object; want: unknown[] }[]) {
  test(`${resource} ${JSON.stringify(object)}: ${want.join(", ")}`, () => {
    const row = rowOf<WorkloadRow>(resource, object);
    assert.deepEqual([row.health, row.status, row.desired, row.ready], want);
  });
}

test("claims, namespaces and autoscalers show what they wait for, and since when", () => {
  const shown = (resource: string, object: object) => {
    const { health, status: word, sinceMs } = rowOf<PodRow>(resource, { metadata: meta, ...object });
    return [health, word, sinceMs];
  };
  const createdMs = Date.parse(meta.creationTimestamp);
  assert.deepEqual(shown("persistentvolumeclaims", { status: { phase: "Bound" } }), ["good", "Bound", createdMs]);
  assert.deepEqual(shown("persistentvolumeclaims", { status: { phase: "Lost" } }), ["bad", "Lost", createdMs]);
  assert.deepEqual(shown("persistentvolumeclaims", {}), ["moving", "Pending", createdMs]);
  const ending = { metadata: { ...meta, deletionTimestamp: "2026-01-02T00:00:00Z" }, status: { phase: "Terminating" } };
  assert.deepEqual(shown("namespaces", ending), ["moving", "Terminating", Date.parse("2026-01-02T00:00:00Z")]);
  assert.deepEqual(shown("namespaces", { status: { phase: "Active" } }), ["good", "Active", 0]);
  const scaling = { status: { currentReplicas: 1, desiredReplicas: 2 } };
  assert.deepEqual(shown("horizontalpodautoscalers.autoscaling", scaling), ["moving", "1 of 2 replicas", 0]);
});

test("a row has the name, the times and the controlling owner of its object", () => {
  const ownerReferences = [{ uid: "other" }, { uid: "boss", controller: true }, { uid: "third", controller: false }];
  const metadata = { name: "n", namespace: "ns", uid: "id", creationTimestamp: "2026-01-01T00:00:01Z", ownerReferences };
  assert.deepEqual(rowOf("services", { metadata }), {
    ...{ resource: "services", uid: "id", namespace: "ns", name: "n", createdMs: Date.parse("2026-01-01T00:00:01Z") },
    ...{ owner: "boss", sinceMs: 0, health: "good", status: "" },
  });
  assert.partialDeepStrictEqual(kindOf("services")?.rowOf({ metadata: {} }), {
    ...{ uid: "", namespace: "", name: "", createdMs: 0, owner: "" },
  });
  assert.partialDeepStrictEqual(rowOf("services", { metadata: { ownerReferences: ownerReferences.slice(0, 1) } }), { owner: "" });
});

test("a workload has the images of its template, and wants one pod when it does not say how many", () => {
  const template = { spec: { containers: [{ image: "a:1" }, {}, { image: "b:2" }] } };
  for (const resource of ["deployments.apps", "replicasets.apps", "statefulsets.apps"]) {
    const { images, desired, ready } = rowOf<WorkloadRow>(resource, { spec: { template } });
    assert.deepEqual([images, desired, ready], ["a:1, , b:2", 1, 0], resource);
  }
  const ofJobs = rowOf<WorkloadRow>("cronjobs.batch", { spec: { schedule: "* * * * *", jobTemplate: { spec: { template } } } });
  assert.deepEqual([ofJobs.images, ofJobs.status, ofJobs.health], ["a:1, , b:2", "* * * * *", "idle"]);
  assert.deepEqual(rowOf<WorkloadRow>("jobs.batch", { spec: { parallelism: 3, template } }).desired, 3);
  assert.deepEqual(rowOf<WorkloadRow>("jobs.batch", { spec: { parallelism: 3, completions: 2 } }).desired, 2);
  assert.deepEqual(rowOf<WorkloadRow>("jobs.batch", { spec: {} }).images, "");
});

test("an autoscaler is at rest when it has what it wants", () => {
  const scaler = (status?: object) => {
    const { health, status: text } = rowOf<WorkloadRow>("horizontalpodautoscalers.autoscaling", { ...(status && { status }) });
    return [health, text];
  };
  assert.deepEqual(scaler({ currentReplicas: 2, desiredReplicas: 3 }), ["moving", "2 of 3 replicas"]);
  assert.deepEqual(scaler({ currentReplicas: 3, desiredReplicas: 3 }), ["good", "3 of 3 replicas"]);
  assert.deepEqual(scaler(), ["good", "0 of 0 replicas"]);
});

test("an event is as old as its last occurrence, and from whoever reported it", () => {
  const event = (more: object) =>
    rowOf<EventRow>("events", { metadata: meta, involvedObject: { kind: "Pod", name: "p", namespace: "n", uid: "v" }, ...more });
  const at = (hour: number): string => `2026-01-01T0${hour}:00:00Z`;
  const times = { firstTimestamp: at(1), eventTime: at(2), lastTimestamp: at(3) };
  const repeated = event({
    ...times,
    type: "Warning",
    reason: "Failed",
    message: "x".repeat(1_001),
    count: 2,
    series: { count: 7, lastObservedTime: at(4) },
    source: { component: "kubelet" },
  });
  assert.partialDeepStrictEqual(repeated, {
    ...{ health: "bad", status: "Warning", isWarning: true, reason: "Failed", message: "x".repeat(1_000), count: 7 },
    ...{ lastMs: Date.parse(at(4)), source: "kubelet", about: "v", aboutKind: "Pod", aboutName: "p", aboutNamespace: "n" },
  });
  const lastMs = (more: object): number => event(more).lastMs;
  assert.deepEqual(
    [lastMs(times), lastMs({ ...times, lastTimestamp: null }), lastMs({ firstTimestamp: at(1) }), lastMs({})],
    [3, 2, 1, 0].map((hour) => Date.parse(at(hour))),
  );
  assert.partialDeepStrictEqual(event({ type: "Normal", count: 2, reportingComponent: "r", source: { component: "s" } }), {
    ...{ health: "good", isWarning: false, count: 2, source: "r" },
  });
  assert.equal(event({}).count, 1);
});

test("a node has the roles of its labels, its internal address and what pods may use", () => {
  const node = rowOf<NodeRow>("nodes", {
    metadata: { ...meta, labels: { "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/etcd": "", other: "" } },
    status: {
      nodeInfo: { kubeletVersion: "v1.23.0" },
      addresses: [
        { type: "ExternalIP", address: "203.0.113.1" },
        { type: "InternalIP", address: "192.0.2.1" },
      ],
      allocatable: { cpu: "1500m", memory: "1Ki", pods: "110" },
      capacity: { cpu: "2", memory: "2Ki", pods: "111" },
    },
  });
  assert.partialDeepStrictEqual(node, {
    ...{ roles: "control-plane, etcd", version: "v1.23.0", address: "192.0.2.1" },
    ...{ cpuMilli: 1500, memoryBytes: 1024, pods: 110 },
  });
});

test("a pod is in transition since its readiness changed, since its creation, or since its time to end was over", () => {
  const since = (more: object): number => rowOf<PodRow>("pods", { metadata: meta, spec: { containers }, ...more }).sinceMs;
  const ready = { type: "Ready", status: "False", lastTransitionTime: "2026-01-02T00:00:00Z" };
  assert.equal(
    since({ status: { conditions: [{ type: "PodScheduled", lastTransitionTime: "2026-01-05T00:00:00Z" }, ready] } }),
    Date.parse(ready.lastTransitionTime),
  );
  assert.equal(since({ status: {} }), Date.parse(meta.creationTimestamp));
  const deleted = { ...meta, deletionTimestamp: "2026-01-03T00:00:00Z" };
  assert.equal(since({ metadata: deleted, status: { conditions: [ready] } }), Date.parse(deleted.deletionTimestamp));
});
