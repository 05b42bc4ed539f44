import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  cronJobs,
  jobs,
  nodes,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  replicaSets,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { newCronJobController } from "./controllers/cronjob/controller.ts";
import { newDisruptionController } from "./controllers/disruption/controller.ts";
import { missingAddresses } from "./controllers/endpoint/missing-addresses.ts";
import { sumOf } from "./controllers/horizontalpodautoscaling/sum.ts";
import { newJobController } from "./controllers/job/controller.ts";
import { obstacles } from "./controllers/namespace/obstacles.ts";
import { newNodeLifecycleController } from "./controllers/nodelifecycle/controller.ts";
import { newPersistentVolumeBinder } from "./controllers/persistentvolume-binder/controller.ts";
import { newPvcProtectionController } from "./controllers/pvc-protection/controller.ts";
import { newReplicaSetController } from "./controllers/replicaset/controller.ts";
import { aCronJob, aJob } from "./testing/jobs.ts";
import { defaultConfig, newTestContext, type TestContext } from "./testing/test-context.ts";
import { aClaim, aStorageClass } from "./testing/volumes.ts";

const of = ({ ctx }: TestContext, { group, resource, kind }: ResourceRef, name: string) =>
  ctx.decisions.of({ group, resource, kind, namespace: "default", name, uid: "" })[0];

function reported({ verdict, reason, description }: Outcome) {
  return {
    verdict,
    reason,
    ...(typeof description === "string"
      ? { summary: description }
      : typeof description === "function"
        ? description()
        : description),
  };
}

test("a refusal is kept with the time of the next attempt, and forgotten after success or deletion", async (t) => {
  const test = newTestContext(t);
  const { client, clock, ctx } = test;
  const quota = "exceeded quota: mem, requested: requests.memory=1Gi, used: requests.memory=4Gi, limited: requests.memory=4Gi";
  let refuses = true;
  client.react("create", "pods", () => {
    if (refuses) throw forbidden(pods, "web-x", quota);
    return undefined;
  });
  client.put(replicaSets, aReplicaSet({ name: "web", replicas: 1 }));
  await test.run(newReplicaSetController(ctx));
  const decision = of(test, replicaSets, "web");
  assert.partialDeepStrictEqual(decision, {
    ...{ component: "kube-controller-manager", source: "replicaset", verdict: "refused", reason: "QuotaExceeded" },
    remedy: "raise the ResourceQuota, or use less in the namespace",
  });
  assert.match(decision?.summary ?? "", /exceeded quota: mem/);
  assert.ok(decision?.nextTryAt);
  refuses = false;
  await clock.advance(10_000);
  await settle(30);
  assert.equal(of(test, replicaSets, "web"), undefined);
  assert.equal(client.objects(pods).length, 1);
});

test("the explanation of a disruption budget says why it allows no eviction, with the numbers", async (t) => {
  const test = newTestContext(t);
  const { client, ctx } = test;
  client.put(podDisruptionBudgets, {
    metadata: { name: "web", namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
  } as object as never);
  const labels = { app: "web" };
  client.put(pods, { ...aPod({ name: "a" }), metadata: { ...aPod({ name: "a" }).metadata, labels } });
  await test.run(newDisruptionController(ctx));
  assert.partialDeepStrictEqual(of(test, podDisruptionBudgets, "web"), {
    ...{ verdict: "done", reason: "NoDisruptionsAllowed" },
    summary: "allows no eviction: 1 of 1 pods are healthy, and 1 have to be",
  });
});

test("a claim reports what it waits for: its class, a provisioner, or a consumer", async (t) => {
  const test = newTestContext(t);
  const { client, ctx } = test;
  const claim = (name: string, storageClassName: string) =>
    client.put(persistentVolumeClaims, {
      metadata: { name, namespace: "default", uid: name },
      spec: { storageClassName, accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    } as object as never);
  const storageClass = (name: string, volumeBindingMode: string) =>
    client.put(storageClasses, { metadata: { name }, provisioner: "example.com/disk", volumeBindingMode } as object as never);
  storageClass("fast", "Immediate");
  storageClass("late", "WaitForFirstConsumer");
  claim("a", "missing");
  claim("b", "fast");
  claim("c", "late");
  await test.run(newPersistentVolumeBinder(ctx));
  const seen = ["a", "b", "c"].map((name) => of(test, persistentVolumeClaims, name)?.summary);
  assert.deepEqual(seen, [
    "its storage class missing does not exist, and no volume matches",
    "waits for a volume from the provisioner example.com/disk",
    "waiting for first consumer to be created before binding",
  ]);
});

test("a claim reports that this cluster provisions no volumes", async (t) => {
  const test = newTestContext(t, { volumes: { ...defaultConfig.volumes, dynamicProvisioning: false } });
  test.client.put(storageClasses, aStorageClass("fast"));
  test.client.put(persistentVolumeClaims, aClaim({ storageClassName: "fast" }));
  await test.run(newPersistentVolumeBinder(test.ctx));
  assert.partialDeepStrictEqual(of(test, persistentVolumeClaims, "data"), {
    ...{ verdict: "waiting", reason: "ProvisioningPending" },
    summary: "no volume matches, and this cluster provisions none",
  });
});

test("a namespace reports the unavailable API group before the finalizers, and these before the rest", () => {
  const none = { estimateSeconds: 0, discoveryFailures: [], failures: [], remaining: new Map(), finalizers: new Map() };
  const remaining = new Map([
    ["widgets.example.com", 2],
    ["pods.", 1],
  ]);
  const left = { ...none, remaining };
  assert.partialDeepStrictEqual(reported(obstacles(left)), {
    reason: "ContentRemaining",
    summary: "waits for its content to end: 2 of widgets.example.com, 1 of pods",
  });
  const held = { ...left, finalizers: new Map([["example.com/keep", 2]]) };
  assert.partialDeepStrictEqual(reported(obstacles(held)), {
    reason: "FinalizerPending",
    summary: "waits for the finalizer example.com/keep of 2 objects; left: 2 of widgets.example.com, 1 of pods",
  });
  const discoveryFailures = [{ groupVersion: "metrics.k8s.io/v1beta1", error: new Error("503") }];
  const away = reported(obstacles({ ...held, discoveryFailures }));
  assert.equal(away.reason, "ApiUnavailable");
  assert.match(away.summary, /metrics\.k8s\.io\/v1beta1 \(503\)/);
  assert.equal(away.related?.[0]?.name, "v1beta1.metrics.k8s.io");
  assert.equal(reported(obstacles({ ...left, failures: [new Error("no")] })).reason, "ContentDeletionFailed");
});

test("the explanation of a Service lists by reason why pods are not endpoints", () => {
  const service = { metadata: { name: "web" }, spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] } };
  const pod = (name: string, more: { ready?: boolean; ip?: string; port?: string; gone?: boolean }) => ({
    metadata: { name, ...(more.gone && { deletionTimestamp: "2026-01-02T03:04:05Z" }) },
    spec: { containers: [{ name: "c", ports: [{ name: more.port ?? "http", containerPort: 80 }] }] },
    status: { podIP: more.ip ?? "10.0.0.1", conditions: [{ type: "Ready", status: more.ready === false ? "False" : "True" }] },
  });
  const look = (...selected: object[]) => missingAddresses(service, selected as never);
  assert.equal(look(pod("a", {})), undefined);
  assert.deepEqual(reported(look() as Outcome).reason, "NoPodsSelected");
  const all = [
    pod("a", {}),
    pod("b", { ready: false }),
    pod("c", { ip: "" }),
    pod("d", { port: "web" }),
    pod("e", { gone: true }),
  ];
  const some = reported(look(...all) as Outcome);
  assert.equal(some.reason, "EndpointsMissing");
  assert.equal(
    some.summary,
    "4 of 5 selected pods are not endpoints: 1 not ready, 1 without an address yet, 1 without a port named http, 1 being deleted",
  );
  assert.equal(reported(look(pod("b", { ready: false })) as Outcome).reason, "NoEndpoints");
  const many = reported(look(...Array.from({ length: 60 }, (_, i) => pod(`p${i}`, { ready: false }))) as Outcome);
  assert.match(many.summary, /^60 of 60 selected pods are not endpoints: 60 not ready$/);
  assert.deepEqual([many.related?.length, Object.keys(many.details?.["pods"] ?? {}).length], [50, 50]);
});

test("an autoscaler reports its calculation", () => {
  const spec = {
    minReplicas: 1,
    maxReplicas: 4,
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }],
  };
  const status = {
    currentReplicas: 3,
    desiredReplicas: 4,
    currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 90 } } }],
    conditions: [{ type: "ScalingLimited", status: "True", reason: "TooManyReplicas", message: "more than the maximum" }],
  };
  assert.partialDeepStrictEqual(reported(sumOf({ spec } as never, status as never)), {
    ...{ verdict: "done", reason: "TooManyReplicas" },
    summary: "has 3 replicas and wants 4, of 1 to 4; cpu 90% of the requests, target 50% of the requests; more than the maximum",
  });
});

const used = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] };
const held = { deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["kubernetes.io/pvc-protection"] };
const { metadata: claimMetadata, ...claim } = aClaim();
for (const { what, make, objects, ref, name, want } of [
  {
    what: "a replica set with one pod that is available and one that is only ready",
    make: newReplicaSetController,
    objects: [
      [replicaSets, aReplicaSet({ name: "web", replicas: 2, minReadySeconds: 30 })],
      ...["2021-12-31T23:00:00Z", "2022-01-01T00:00:00Z"].map((readySince, i): [ResourceRef, KubeObject] => [
        pods,
        aPod({ name: `web-${i}`, labels: { app: "web" }, readySince }),
      ]),
    ],
    ...{ ref: replicaSets, name: "web" },
    want: { summary: "1 ready pods do not count as available before minReadySeconds (30 s) have passed" },
  },
  {
    what: "a suspended job",
    make: newJobController,
    objects: [[jobs, aJob({ spec: { suspend: true } })]],
    ...{ ref: jobs, name: "work" },
    want: { verdict: "waiting", reason: "Suspended", summary: "is suspended: its pods are not created" },
  },
  {
    what: "a suspended cron job",
    make: newCronJobController,
    objects: [[cronJobs, aCronJob({ spec: { suspend: true } })]],
    ...{ ref: cronJobs, name: "tick" },
    want: { verdict: "waiting", reason: "Suspended", summary: "is suspended: no jobs are started" },
  },
  {
    what: "a cron job with several warnings, the last of them,",
    make: newCronJobController,
    objects: [
      [
        cronJobs,
        aCronJob({
          spec: { schedule: "TZ=UTC * * * * *", concurrencyPolicy: "Forbid" },
          status: { lastScheduleTime: "2021-12-31T00:00:00Z", active: [{ namespace: "default", name: "run", uid: "run-uid" }] },
        }),
      ],
      [
        jobs,
        aJob({
          name: "run",
          owner: { apiVersion: "batch/v1", kind: "CronJob", name: "tick", uid: "tick-uid", controller: true },
        }),
      ],
    ],
    ...{ ref: cronJobs, name: "tick" },
    want: { verdict: "refused", reason: "JobAlreadyActive" },
  },
  {
    what: "a deleted claim that a pod uses",
    make: newPvcProtectionController,
    objects: [
      [persistentVolumeClaims, { ...claim, metadata: { ...claimMetadata, ...held } }],
      [pods, aPod({ name: "web", nodeName: "n", spec: used })],
    ],
    ...{ ref: persistentVolumeClaims, name: "data" },
    want: {
      ...{ verdict: "waiting", reason: "InUse" },
      summary: "is in use, and keeps its finalizer kubernetes.io/pvc-protection until it is not",
    },
  },
  {
    what: "a pod that tolerates a taint for a while",
    make: newNodeLifecycleController,
    objects: [
      [nodes, aNode({ name: "n", taints: [{ key: "k", effect: "NoExecute" }] })],
      [pods, aPod({ name: "web", nodeName: "n", spec: { tolerations: [{ operator: "Exists", tolerationSeconds: 30 }] } })],
    ],
    ...{ ref: pods, name: "web" },
    want: {
      ...{ verdict: "waiting", reason: "TaintEviction" },
      summary: "its node has a taint that it tolerates for 30 s only, then it is deleted",
    },
  },
  {
    what: "a claim that has lost its volume",
    make: newPersistentVolumeBinder,
    objects: [[persistentVolumeClaims, aClaim({ volumeName: "gone" }, { "pv.kubernetes.io/bind-completed": "yes" })]],
    ...{ ref: persistentVolumeClaims, name: "data" },
    want: {
      ...{ verdict: "failed", reason: "ClaimLost" },
      summary: "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
    },
  },
  {
    what: "a claim that names a missing volume",
    make: newPersistentVolumeBinder,
    objects: [[persistentVolumeClaims, aClaim({ volumeName: "missing" })]],
    ...{ ref: persistentVolumeClaims, name: "data" },
    want: {
      ...{ verdict: "waiting", reason: "VolumeMissing" },
      summary: "the volume that it names, missing, does not exist",
    },
  },
] as {
  what: string;
  make: (ctx: ControllerContext) => Runnable;
  objects: [ResourceRef, KubeObject][];
  ref: ResourceRef;
  name: string;
  want: object;
}[]) {
  test(`${what} is explained`, async (t) => {
    const world = newTestContext(t);
    for (const [resource, object] of objects) world.client.put(resource, object);
    await world.run(make(world.ctx));
    assert.partialDeepStrictEqual(of(world, ref, name), want);
  });
}

test("a replica set with a pod that is not ready does not say that only minReadySeconds are missing", async (t) => {
  const world = newTestContext(t);
  world.client.put(replicaSets, aReplicaSet({ name: "web", replicas: 2, minReadySeconds: 30 }));
  const labels = { app: "web" };
  world.client.put(
    pods,
    aPod({ name: "a", labels, readySince: "2022-01-01T00:00:00Z" }),
    aPod({ name: "b", labels, ready: false }),
  );
  await world.run(newReplicaSetController(world.ctx));
  assert.equal(of(world, replicaSets, "web"), undefined);
});
