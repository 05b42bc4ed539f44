import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nameOf } from "./explanation.ts";
import { assertFindings, earlier, eventAbout, explained, stored } from "./testing.ts";
import { explanationText } from "./text.ts";

const unschedulable = (message: string): object => ({
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime: earlier }],
});
const owner = (kind: string, name: string, apiVersion = "apps/v1"): object => ({
  ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true, blockOwnerDeletion: true }],
});
const pod = (name: string, status: object, spec: object = {}, metadata: object = {}): Unstructured =>
  stored("v1", "Pod", name, { metadata, spec: { containers: [{ name: "main", image: "img" }], ...spec }, status });
const node = (name: string, spec: object = {}, ready = "True", more: object[] = []): Unstructured =>
  stored("v1", "Node", name, {
    spec,
    status: {
      allocatable: { cpu: "2", memory: "4Gi", pods: "110" },
      conditions: [
        { type: "Ready", status: ready, reason: "X", message: "why", lastHeartbeatTime: earlier, lastTransitionTime: earlier },
        ...more,
      ],
    },
  });
/** The status of a pod on n1 whose only container is in that state. */
const inState = (state: object, more: object = {}): object => ({
  phase: "Running",
  startTime: earlier,
  conditions: [{ type: "Ready", status: "False", lastTransitionTime: earlier }],
  containerStatuses: [{ name: "main", image: "img", imageID: "", ready: false, restartCount: 0, state, ...more }],
});
const onNode = { nodeName: "n1" };
const deleted = { deletionTimestamp: "2026-03-01T11:55:00Z" };
const claimVolume = { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] };
const claim = (spec: object = {}, phase = "Pending", metadata: object = {}): Unstructured =>
  stored("v1", "PersistentVolumeClaim", "data", {
    metadata,
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } }, ...spec },
    status: { phase },
  });
const volume = (name: string, spec: object = {}, phase = "Available", metadata: object = {}): Unstructured =>
  stored("v1", "PersistentVolume", name, {
    metadata,
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Retain", ...spec },
    status: { phase },
  });
const selector = { matchLabels: { app: "web" } };
const replicaSet = (status: object, replicas = 1, metadata: object = {}): Unstructured =>
  stored("apps/v1", "ReplicaSet", "web-1", {
    metadata: { generation: 1, labels: { app: "web" }, ...owner("Deployment", "web"), ...metadata },
    spec: { replicas, selector },
    status: { observedGeneration: 1, ...status },
  });
const deployment = (spec: object = {}, status: object = {}, metadata: object = {}): Unstructured =>
  stored("apps/v1", "Deployment", "web", {
    metadata: { generation: 1, ...metadata },
    spec: { replicas: 1, selector, ...spec },
    status: { observedGeneration: 1, ...status },
  });
const refusedCreate = (message: string): object => ({
  conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message, lastTransitionTime: earlier }],
});
const webPod = (status: object, metadata: object = {}): Unstructured =>
  pod("web-1-x", status, onNode, { labels: { app: "web" }, ...owner("ReplicaSet", "web-1"), ...metadata });
const service = (spec: object, name = "web"): Unstructured => stored("v1", "Service", name, { spec, status: {} });
const running: object = {
  phase: "Running",
  conditions: [{ type: "Ready", status: "True" }],
  containerStatuses: [{ name: "main", ready: true, restartCount: 0, state: { running: {} } }],
};
const condition = (type: string, status: string, reason: string, message = "why"): object => ({
  conditions: [{ type, status, reason, message, lastTransitionTime: earlier }],
});
const scaler = (status: object, target = "web"): Unstructured =>
  stored("autoscaling/v2", "HorizontalPodAutoscaler", "web", {
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: target }, maxReplicas: 3 },
    status,
  });
const budget = (status: object): Unstructured =>
  stored("policy/v1", "PodDisruptionBudget", "web", { spec: { minAvailable: 1, selector }, status });

interface Row {
  readonly name: string;
  /** The first one is the explained object. */
  readonly objects: readonly Unstructured[];
  readonly events?: readonly Event[];
  readonly hidden?: readonly string[];
  /** The chain of findings as `kind/name`; empty: the object is healthy. */
  readonly chain: readonly string[];
  readonly reason?: string;
  readonly says?: RegExp;
}

const rows: readonly Row[] = [
  { name: "a ready pod is healthy", objects: [pod("p", running, onNode), node("n1")], chain: [] },
  { name: "a pod that has succeeded is healthy", objects: [pod("p", { phase: "Succeeded" }, onNode)], chain: [] },
  {
    name: "a pod that is too large for every node",
    objects: [
      pod("p", unschedulable("0/1 nodes are available: 1 Insufficient cpu."), {
        containers: [{ name: "main", resources: { requests: { cpu: "100" } } }],
      }),
      node("n1"),
    ],
    chain: ["pod/p"],
    reason: "InsufficientResources",
    says: /^not enough cpu on 1 node: it requests 100; the largest node has 2 in all, for all pods$/,
  },
  {
    name: "the most frequent refusal of the scheduler comes first, the others behind it",
    objects: [
      pod(
        "p",
        unschedulable(
          "0/3 nodes are available: 1 Insufficient memory, 2 node(s) had taint {a: b}, that the pod didn't tolerate.",
        ),
      ),
    ],
    chain: ["pod/p"],
    reason: "TaintNotTolerated",
    says: /^taint a=b of 2 nodes is not tolerated; 1 node: Insufficient memory$/,
  },
  {
    name: "a cordoned node",
    objects: [
      pod("p", unschedulable("0/1 nodes are available: 1 node(s) were unschedulable.")),
      node("n1", { unschedulable: true }),
    ],
    chain: ["pod/p", "node/n1"],
    reason: "NodeCordoned",
  },
  {
    name: "an unknown scheduler",
    objects: [pod("p", { phase: "Pending" }, { schedulerName: "nobody" })],
    chain: ["pod/p"],
    says: /^no scheduler named nobody/,
  },
  {
    name: "no scheduler",
    objects: [pod("p", { phase: "Pending" }, { schedulerName: "default-scheduler" })],
    chain: ["pod/p"],
    reason: "SchedulerAway",
  },
  {
    name: "a claim that does not exist",
    objects: [pod("p", unschedulable('0/1 nodes are available: 1 persistentvolumeclaim "data" not found.'), claimVolume)],
    chain: ["pod/p"],
    says: /^persistent volume claim data does not exist$/,
  },
  {
    name: "a claim that may not be read is no cause",
    objects: [pod("p", unschedulable("0/1 nodes are available: 1 Too many pods."), claimVolume), claim()],
    hidden: ["persistentvolumeclaims"],
    chain: ["pod/p"],
    reason: "TooManyPods",
  },
  {
    name: "a pod that no scheduler has looked at leads to its claim, too",
    objects: [pod("p", { phase: "Pending" }, claimVolume), claim({ storageClassName: "fast" })],
    chain: ["pod/p", "persistentvolumeclaim/data"],
  },
  {
    name: "a pod leads to its claim, and the claim to its class",
    objects: [
      pod("p", unschedulable("pod has unbound immediate PersistentVolumeClaims"), claimVolume),
      claim({ storageClassName: "fast" }),
    ],
    chain: ["pod/p", "persistentvolumeclaim/data"],
    says: /^storage class fast does not exist/,
  },
  {
    name: "an image that cannot be pulled, with the runtime's last words",
    objects: [pod("p", inState({ waiting: { reason: "ImagePullBackOff", message: 'Back-off pulling image "img"' } }), onNode)],
    events: [
      eventAbout(
        "Pod",
        "p",
        "Failed",
        'Failed to pull image "img": rpc error: code = NotFound desc = failed to pull and unpack image "img": not found',
      ),
    ],
    chain: ["pod/p"],
    reason: "ImagePullFailed",
    says: /^container main: image img cannot be pulled: not found$/,
  },
  {
    name: "a container that runs out of memory",
    objects: [
      pod(
        "p",
        inState(
          { waiting: { reason: "CrashLoopBackOff" } },
          { restartCount: 3, lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } },
        ),
        {
          ...onNode,
          containers: [{ name: "main", resources: { limits: { memory: "16Mi" } } }],
        },
      ),
    ],
    chain: ["pod/p"],
    reason: "OOMKilled",
    says: /its limit is 16Mi; restarted 3 times$/,
  },
  {
    name: "a container that its liveness probe kills",
    objects: [
      pod(
        "p",
        inState({ waiting: { reason: "CrashLoopBackOff" } }, { restartCount: 1, lastState: { terminated: { exitCode: 137 } } }),
        onNode,
      ),
    ],
    events: [
      eventAbout("Pod", "p", "Unhealthy", "Liveness probe failed: dial tcp"),
      eventAbout("Pod", "p", "Killing", "Container main failed liveness probe, will be restarted"),
    ],
    chain: ["pod/p"],
    reason: "LivenessProbeFailed",
  },
  {
    name: "a program that ends with 0 once is not wrong while it runs again",
    objects: [
      pod(
        "p",
        {
          ...running,
          containerStatuses: [
            { name: "main", ready: true, restartCount: 1, state: { running: {} }, lastState: { terminated: { exitCode: 0 } } },
          ],
        },
        onNode,
      ),
    ],
    chain: [],
  },
  {
    name: "a readiness probe that fails",
    objects: [pod("p", inState({ running: {} }), onNode)],
    events: [eventAbout("Pod", "p", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")],
    chain: ["pod/p"],
    says: /statuscode: 500$/,
  },
  {
    name: "a secret that a volume needs",
    objects: [
      pod(
        "p",
        {
          phase: "Pending",
          startTime: earlier,
          containerStatuses: [{ name: "main", state: { waiting: { reason: "ContainerCreating" } } }],
        },
        { ...onNode, volumes: [{ name: "s", secret: { secretName: "keys" } }] },
      ),
    ],
    events: [eventAbout("Pod", "p", "FailedMount", 'MountVolume.SetUp failed for volume "s" : secret "keys" not found')],
    chain: ["pod/p"],
    says: /secret keys does not exist/,
  },
  {
    name: "a pod on a node that does not answer",
    objects: [pod("p", running, onNode), node("n1", {}, "Unknown")],
    chain: ["pod/p", "node/n1"],
    says: /^its kubelet stopped reporting at 2026/,
  },
  {
    name: "a deleted pod on a node that does not answer",
    objects: [pod("p", running, onNode, deleted), node("n1", {}, "Unknown")],
    chain: ["pod/p", "node/n1"],
  },
  {
    name: "a finalizer",
    objects: [stored("v1", "ConfigMap", "c", { metadata: { ...deleted, finalizers: ["example.com/keep"] } })],
    chain: ["configmap/c"],
    says: /finalizer example.com\/keep keeps it/,
  },
  {
    name: "a deletion in the foreground",
    objects: [
      deployment({}, {}, { ...deleted, finalizers: ["foregroundDeletion"] }),
      replicaSet({}, 1, { ...deleted, finalizers: ["example.com/keep"] }),
    ],
    chain: ["deployment/web", "replicaset/web-1"],
    reason: "FinalizerPending",
  },
  {
    name: "a namespace whose content has a finalizer",
    objects: [
      stored("v1", "Namespace", "default", { metadata: deleted, spec: { finalizers: ["kubernetes"] } }),
      stored("v1", "ConfigMap", "plain"),
      stored("v1", "ConfigMap", "c", { metadata: { ...deleted, finalizers: ["example.com/keep"] } }),
    ],
    chain: ["namespace/default", "configmap/c"],
  },
  {
    name: "a namespace whose resources cannot be discovered",
    objects: [
      stored("v1", "Namespace", "default", {
        metadata: deleted,
        status: condition("NamespaceDeletionDiscoveryFailure", "True", "DiscoveryFailed"),
      }),
      stored("apiregistration.k8s.io/v1", "APIService", "v1.x", {
        spec: { service: { namespace: "default", name: "gone" } },
        status: condition("Available", "False", "ServiceNotFound"),
      }),
    ],
    chain: ["namespace/default", "apiservice/v1.x"],
    says: /^its service default\/gone does not exist$/,
  },
  {
    name: "an unhealthy object in a namespace",
    objects: [stored("v1", "Namespace", "default"), claim({ storageClassName: "fast" })],
    chain: ["namespace/default", "persistentvolumeclaim/data"],
  },
  {
    name: "a claim in use",
    objects: [
      claim({}, "Bound", { ...deleted, finalizers: ["kubernetes.io/pvc-protection"] }),
      pod("p", running, { ...onNode, ...claimVolume }),
    ],
    chain: ["persistentvolumeclaim/data"],
    says: /no pod uses it any more: p does$/,
  },
  {
    name: "a claim that waits for its first consumer",
    objects: [
      claim({ storageClassName: "late" }),
      stored("storage.k8s.io/v1", "StorageClass", "late", { provisioner: "x", volumeBindingMode: "WaitForFirstConsumer" }),
    ],
    chain: ["persistentvolumeclaim/data"],
    reason: "WaitsForFirstConsumer",
  },
  {
    name: "a claim larger than every volume",
    objects: [claim({ storageClassName: "" }), volume("v1")],
    chain: ["persistentvolumeclaim/data"],
    says: /it requests 5Gi, the largest available has 1Gi$/,
  },
  {
    name: "a claim whose volume is gone",
    objects: [claim({ volumeName: "v" }, "Lost")],
    chain: ["persistentvolumeclaim/data"],
    reason: "VolumeLost",
  },
  {
    name: "a released volume",
    objects: [volume("v", { claimRef: { namespace: "default", name: "old" } }, "Released")],
    chain: ["persistentvolume/v"],
    says: /claim default\/old was deleted/,
  },
  {
    name: "a deployment down to the quota of its namespace",
    objects: [
      deployment({}, condition("Available", "False", "MinimumReplicasUnavailable")),
      replicaSet(
        refusedCreate(
          'pods "web-1-x" is forbidden: exceeded quota: mem, requested: memory=1Gi, used: memory=4Gi, limited: memory=4Gi',
        ),
      ),
    ],
    chain: ["deployment/web", "replicaset/web-1"],
    reason: "QuotaExceeded",
    says: /quota mem does not allow it: requested memory=1Gi, used memory=4Gi, limited to memory=4Gi$/,
  },
  {
    name: "a deployment whose webhook is away",
    objects: [
      deployment({}, {}),
      replicaSet(
        refusedCreate('Internal error occurred: failed calling webhook "w.example.com": Post "https://x": service "x" not found'),
      ),
    ],
    chain: ["deployment/web", "replicaset/web-1"],
    reason: "WebhookFailed",
  },
  {
    name: "a deployment down to the container of a pod",
    objects: [
      deployment({}, { updatedReplicas: 1 }),
      replicaSet({ replicas: 1 }),
      webPod(inState({ waiting: { reason: "InvalidImageName" } })),
    ],
    chain: ["deployment/web", "replicaset/web-1", "pod/web-1-x"],
    reason: "InvalidImageName",
  },
  { name: "a complete rollout", objects: [deployment({}, { updatedReplicas: 1, availableReplicas: 1, replicas: 1 })], chain: [] },
  { name: "a paused rollout", objects: [deployment({ paused: true })], chain: ["deployment/web"], reason: "RolloutPaused" },
  {
    name: "a controller that does not look",
    objects: [deployment({}, { observedGeneration: 0 })],
    chain: ["deployment/web"],
    reason: "ControllerAway",
  },
  {
    name: "a daemon set that no node is for",
    objects: [
      stored("apps/v1", "DaemonSet", "d", {
        spec: { selector, template: { spec: { nodeSelector: { disk: "ssd" } } } },
        status: {},
      }),
      node("n1"),
    ],
    chain: ["daemonset/d"],
    says: /node selector disk=ssd matches none of 1 node$/,
  },
  {
    name: "a job that has failed, down to its pod",
    objects: [
      stored("batch/v1", "Job", "j", {
        spec: { selector, backoffLimit: 0 },
        status: condition("Failed", "True", "BackoffLimitExceeded"),
      }),
      pod(
        "j-1",
        { phase: "Failed", ...inState({ terminated: { exitCode: 3, reason: "Error" } }) },
        { ...onNode, restartPolicy: "Never" },
        { labels: { app: "web" }, ...owner("Job", "j", "batch/v1") },
      ),
    ],
    chain: ["job/j", "pod/j-1"],
    says: /exits with code 3$/,
  },
  {
    name: "a suspended cron job",
    objects: [stored("batch/v1", "CronJob", "c", { spec: { suspend: true, schedule: "* * * * *" } })],
    chain: ["cronjob/c"],
    reason: "CronJobSuspended",
  },
  {
    name: "a service that selects nothing, and the pod it nearly selects",
    objects: [
      service({ selector: { app: "web", tier: "front" }, ports: [{ port: 80 }] }),
      pod("p", running, onNode, { labels: { app: "web", tier: "back" } }),
    ],
    chain: ["service/web"],
    says: /app=web,tier=front matches no pod of the namespace; pod p has tier=back$/,
  },
  {
    name: "a service whose pods may not be listed is not called empty",
    objects: [service({ selector: { app: "web" }, ports: [{ port: 80 }] })],
    hidden: ["pods"],
    chain: [],
  },
  {
    name: "a target port by a name that no container has",
    objects: [
      service({ selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] }),
      pod(
        "p",
        running,
        { containers: [{ name: "main", ports: [{ name: "web", containerPort: 80 }] }] },
        { labels: { app: "web" } },
      ),
    ],
    chain: ["service/web"],
    reason: "TargetPortMissing",
    says: /they have web/,
  },
  {
    name: "a load balancer without a provider",
    objects: [
      service({ type: "LoadBalancer", selector: { app: "web" }, ports: [{ port: 80 }] }),
      pod("p", running, onNode, { labels: { app: "web" } }),
      stored("v1", "Endpoints", "web", { subsets: [{ addresses: [{ ip: "192.0.2.1" }] }] }),
    ],
    chain: ["service/web"],
    reason: "NoLoadBalancer",
  },
  {
    name: "an ingress without its class",
    objects: [stored("networking.k8s.io/v1", "Ingress", "i", { spec: { ingressClassName: "none" } })],
    chain: ["ingress/i"],
    reason: "IngressClassMissing",
  },
  {
    name: "an ingress without its backend",
    objects: [
      stored("networking.k8s.io/v1", "Ingress", "i", {
        spec: { ingressClassName: "c", defaultBackend: { service: { name: "web", port: { number: 80 } } } },
      }),
      stored("networking.k8s.io/v1", "IngressClass", "c"),
    ],
    chain: ["ingress/i"],
    reason: "BackendMissing",
  },
  {
    name: "a cordoned node by itself",
    objects: [node("n1", { unschedulable: true })],
    chain: ["node/n1"],
    reason: "NodeCordoned",
  },
  {
    name: "a node short of disk",
    objects: [node("n1", {}, "True", [{ type: "DiskPressure", status: "True" }])],
    chain: ["node/n1"],
    reason: "DiskPressure",
  },
  {
    name: "the taint of a role is meant to be there",
    objects: [node("n1", { taints: [{ key: "node-role.kubernetes.io/master", effect: "NoSchedule" }] })],
    chain: [],
  },
  {
    name: "an autoscaler without its target",
    objects: [scaler({}, "gone")],
    chain: ["horizontalpodautoscaler/web"],
    reason: "TargetMissing",
  },
  {
    name: "an autoscaler whose pods request nothing",
    objects: [
      scaler(
        condition("ScalingActive", "False", "FailedGetResourceMetric", "failed to get cpu utilization: missing request for cpu"),
      ),
      deployment({}, { updatedReplicas: 1, availableReplicas: 1 }),
    ],
    chain: ["horizontalpodautoscaler/web"],
    says: /has no cpu request/,
  },
  {
    name: "a budget that allows no eviction",
    objects: [
      budget({ disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }),
      pod("p", running, onNode, { labels: { app: "web" } }),
    ],
    chain: ["poddisruptionbudget/web"],
    says: /minAvailable 1 needs all 1 pod, and 1 are healthy$/,
  },
  {
    name: "a quota that is used up",
    objects: [stored("v1", "ResourceQuota", "q", { status: { hard: { pods: "2" }, used: { pods: "2" } } })],
    chain: ["resourcequota/q"],
    says: /pods \(2 of 2\)$/,
  },
  {
    name: "a certificate signing request that is not approved",
    objects: [stored("certificates.k8s.io/v1", "CertificateSigningRequest", "r", { spec: { signerName: "example.com/s" } })],
    chain: ["certificatesigningrequest/r"],
    reason: "RequestNotApproved",
  },
  {
    name: "a webhook whose service does not exist",
    objects: [
      stored("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w", {
        webhooks: [
          { name: "w.example.com", failurePolicy: "Fail", clientConfig: { service: { namespace: "default", name: "gone" } } },
        ],
      }),
    ],
    chain: ["validatingwebhookconfiguration/w"],
    says: /every request that it matches is refused/,
  },
  {
    name: "an object whose owner is gone",
    objects: [
      stored("v1", "ConfigMap", "c", {
        metadata: { ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "gone", uid: "u" }] },
      }),
    ],
    chain: ["configmap/c"],
    reason: "OwnerGone",
  },
];

for (const { name, objects, events = [], hidden = [], chain, reason, says } of rows) {
  test(name, async () => {
    const explanation = await explained({ objects, events, hidden });
    assert.deepEqual(
      explanation.chain.map(({ object }) => nameOf(object)),
      chain,
      JSON.stringify(explanation.chain),
    );
    assert.equal(explanation.healthy, chain.length === 0);
    assertFindings(name, explanation.chain);
    if (reason !== undefined) assert.equal(explanation.cause?.reason, reason);
    if (says !== undefined) assert.match(explanation.cause?.summary ?? "", says);
    assert.match(
      explanationText(explanation, Date.parse("2026-03-01T12:00:00Z")),
      chain.length === 0 ? /^Healthy: / : /^Cause: .*\n\n(?: {2}.*\n)+\nWhat to do:\n {2}\S/,
    );
  });
}
