import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aPod, aReplicaSet, aService } from "@coxswain/apimachinery/testing/builders";
import { aCronJob, aJob } from "./jobs.ts";
import { aClaim, aVolume } from "./volumes.ts";

/** Objects by resource. */
export type Objects = readonly (readonly [ResourceRef, ...object[]])[];

/** Metadata of a namespaced object. */
export const meta = (name: string, more: object = {}): object => ({ name, namespace: "default", uid: `${name}-uid`, ...more });
const largest = 2n ** 63n - 1n;
const garbage = [
  "",
  "{",
  "null",
  "[]",
  "9".repeat(400),
  "-1",
  "NaN",
  "1e309",
  "\u0000\ud800",
  "2022-13-45T99:99:99Z",
  "__proto__",
];
const annotated = (key: string): { name: string; metadata: { annotations: Record<string, string> } }[] =>
  garbage.map((value, i) => ({ name: `g${i}`, metadata: { annotations: { [key]: value } } }));
const leader = "control-plane.alpha.kubernetes.io/leader";
const ref = (kind: string, name: string, more: object = {}): object => ({
  apiVersion: kind === "ReplicaSet" ? "apps/v1" : "v1",
  kind,
  name,
  uid: `${name}-uid`,
  ...more,
});

/** Objects with extreme or malformed content that the API accepts, or accepts from clients that may write status. */
export const hostile: Readonly<Record<string, Objects>> = {
  "nodes with ranges, addresses and taints of no sense": [
    [
      resources.nodes,
      ...[["1.2.3.0/24"], ["::/0"], ["10.244.1.0/24", "10.244.1.0/24", "fd00::/64"], [""], ["10.244.0.0/33"]].map(
        (podCIDRs, i) => ({ metadata: { name: `odd${i}`, uid: `odd${i}` }, spec: { podCIDR: podCIDRs[0], podCIDRs } }),
      ),
      {
        metadata: { name: "taints", uid: "t", labels: { "topology.kubernetes.io/zone": "" } },
        spec: {
          taints: ["NoExecute", "NoSchedule", "Nonsense", ""].map((effect) => ({
            key: "",
            value: "\u0000",
            effect,
            timeAdded: "never",
          })),
        },
        status: {
          addresses: [
            { type: "", address: "" },
            { type: "InternalIP", address: "999.1.1.1" },
            { type: "InternalIP", address: "fe80::1%eth0" },
          ],
          capacity: { cpu: "-1", memory: "1e400", pods: "NaN" },
          allocatable: { cpu: "", memory: "Ki" },
          conditions: [
            { type: "Ready", status: "Perhaps", lastHeartbeatTime: "yesterday", lastTransitionTime: null },
            { type: "Ready", status: "True" },
          ],
          images: [{ names: null, sizeBytes: largest }],
          volumesAttached: [
            { name: "", devicePath: "" },
            { name: "kubernetes.io/csi/^", devicePath: "x" },
          ],
          volumesInUse: ["", "^^^", "kubernetes.io/csi/a"],
        },
      },
    ],
    [
      resources.leases,
      { metadata: { ...meta("odd0"), namespace: "kube-node-lease" }, spec: { renewTime: "never", leaseDurationSeconds: -1 } },
      { metadata: { ...meta("taints"), namespace: "kube-node-lease" } },
    ],
    [
      resources.pods,
      aPod({
        name: "long",
        nodeName: "taints",
        spec: { containers: [], tolerations: [{ operator: "Exists", tolerationSeconds: largest }] } as never,
      }),
      aPod({
        name: "never",
        nodeName: "taints",
        spec: { containers: [], tolerations: [{ operator: "Exists", tolerationSeconds: -largest }] } as never,
      }),
    ],
  ],
  "owners that own each other, themselves, and what cannot be": [
    [
      resources.configMaps,
      { metadata: meta("self", { ownerReferences: [ref("ConfigMap", "self", { blockOwnerDeletion: true, controller: true })] }) },
      { metadata: meta("a", { ownerReferences: [ref("ConfigMap", "b")] }) },
      { metadata: meta("b", { ownerReferences: [ref("ConfigMap", "c"), ref("ConfigMap", "a"), ref("ConfigMap", "b")] }) },
      {
        metadata: meta("c", {
          ownerReferences: [ref("ConfigMap", "a")],
          deletionTimestamp: "2022-01-01T00:00:00Z",
          finalizers: ["foregroundDeletion"],
        }),
      },
      {
        metadata: meta("kinds", {
          ownerReferences: [{ apiVersion: "no/such/version", kind: "", name: "", uid: "" }, ref("__proto__", "x")],
        }),
      },
      { metadata: meta("node", { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "good", uid: "other" }] }) },
    ],
    [
      resources.replicaSets,
      {
        ...aReplicaSet({ name: "ouroboros", replicas: 1 }),
        metadata: meta("ouroboros", { ownerReferences: [ref("ReplicaSet", "ouroboros", { controller: true })] }),
      },
    ],
    [
      resources.pods,
      aPod({ name: "twice", ownerReferences: ["x", "y"].map((name) => ref("ReplicaSet", name, { controller: true })) as never }),
    ],
  ],
  "annotations that controllers parse": [
    [
      resources.endpoints,
      ...annotated(leader).map(({ name, metadata }) => ({
        metadata: meta(name, metadata),
        subsets: [{ ports: null, addresses: [{ ip: "not an ip" }] }],
      })),
    ],
    [resources.configMaps, ...annotated(leader).map(({ name, metadata }) => ({ metadata: meta(name, metadata) }))],
    [
      resources.services,
      ...annotated("service.kubernetes.io/topology-aware-hints").map(({ name, metadata }) => ({
        ...aService({ name }),
        metadata: meta(name, metadata),
      })),
    ],
    [
      resources.endpoints,
      ...annotated("endpoints.kubernetes.io/last-change-trigger-time").map(({ name, metadata }) => ({
        metadata: meta(`t${name}`, metadata),
      })),
    ],
    [
      resources.pods,
      ...annotated("controller.kubernetes.io/pod-deletion-cost").map(({ name, metadata: { annotations } }) =>
        aPod({ name, annotations, labels: { app: "costly" }, owner: aReplicaSet({ name: "costly" }) }),
      ),
    ],
    [
      resources.replicaSets,
      { ...aReplicaSet({ name: "costly", replicas: 1 }), spec: { replicas: 1, selector: { matchLabels: { app: "costly" } } } },
    ],
    [
      resources.replicaSets,
      ...[
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/revision-history",
      ].flatMap((key, i) =>
        annotated(key).map(({ name, metadata: { annotations } }) => ({
          ...aReplicaSet({ name: `r${i}${name}`, replicas: 0, annotations }),
          metadata: meta(`r${i}${name}`, { annotations, labels: { app: "web" } }),
        })),
      ),
    ],
    [
      resources.deployments,
      ...annotated("deprecated.deployment.rollback.to").map(({ name, metadata: { annotations } }) => ({
        ...aDeployment({ name: `d${name}`, replicas: 0 }),
        metadata: meta(`d${name}`, {
          annotations: { ...annotations, "deployment.kubernetes.io/revision": annotations["deprecated.deployment.rollback.to"] },
        }),
      })),
    ],
    [
      resources.persistentVolumeClaims,
      ...[
        "pv.kubernetes.io/bind-completed",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "volume.beta.kubernetes.io/storage-class",
      ].flatMap((key, i) =>
        annotated(key).map(({ name, metadata }) => ({
          ...aClaim({ volumeName: i === 0 ? "nowhere" : "" }),
          metadata: meta(`c${i}${name}`, metadata),
        })),
      ),
    ],
    [
      resources.persistentVolumes,
      ...[
        "pv.kubernetes.io/provisioned-by",
        "pv.kubernetes.io/bound-by-controller",
        "volume.beta.kubernetes.io/mount-options",
      ].flatMap((key, i) =>
        annotated(key).map(({ name, metadata: { annotations } }) =>
          aVolume(`v${i}${name}`, { persistentVolumeReclaimPolicy: "Delete" }, annotations),
        ),
      ),
    ],
    [
      resources.horizontalPodAutoscalers,
      ...annotated("autoscaling.alpha.kubernetes.io/metrics").map(({ name, metadata }) => ({
        metadata: meta(name, metadata),
        spec: { scaleTargetRef: { apiVersion: "", kind: "Nope", name: "" }, maxReplicas: 0 },
      })),
    ],
    [
      resources.nodes,
      ...annotated("node.alpha.kubernetes.io/ttl").map(({ name, metadata: { annotations } }) => ({
        metadata: {
          name: `n${name}`,
          uid: name,
          annotations: { ...annotations, "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
        },
      })),
    ],
  ],
  "volumes and quotas of odd sizes": [
    [
      resources.persistentVolumeClaims,
      ...["-1", "1e400", "0.0000000001", "", "Ki"].map((storage, i) => ({
        ...aClaim({ resources: { requests: { storage } } }),
        metadata: meta(`s${i}`),
      })),
      { ...aClaim({ accessModes: [] }), metadata: meta("bare"), spec: {} },
      { ...aClaim({ volumeName: "lost" }), metadata: meta("lost"), status: { phase: "Bound", capacity: { storage: "x" } } },
    ],
    [
      resources.persistentVolumes,
      ...["-1", "1e400", "", "Ki"].map((storage, i) =>
        aVolume(`odd${i}`, { capacity: { storage }, persistentVolumeReclaimPolicy: "Recycle" }),
      ),
      aVolume("nobody", {
        claimRef: { kind: "Pod", name: "", namespace: "" },
        persistentVolumeReclaimPolicy: "Recycle",
      }),
      aVolume("claimed", {
        claimRef: { kind: "PersistentVolumeClaim", name: "gone", namespace: "default", uid: "x" },
        persistentVolumeReclaimPolicy: "Nonsense",
      }),
      { metadata: { name: "bare", uid: "bare" }, spec: {} },
    ],
    [
      resources.resourceQuotas,
      {
        metadata: meta("odd"),
        spec: {
          hard: { cpu: "-1", "count/": "1", "count/no.such": "5", "requests.": "1e400", "": "1", __proto__: "1" },
          scopes: ["Nonsense"],
        },
      },
      {
        metadata: meta("scoped"),
        spec: {
          hard: { pods: "x" },
          scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: [] }] },
        },
      },
      { metadata: meta("empty") },
    ],
    [
      resources.volumeAttachments,
      {
        metadata: { name: "odd", uid: "odd" },
        spec: { attacher: "", nodeName: "", source: {} },
        status: { attached: true, attachmentMetadata: null },
      },
      {
        metadata: { name: "inline", uid: "i" },
        spec: { attacher: "x", nodeName: "taints", source: { inlineVolumeSpec: {} } },
        status: { attachError: {} },
      },
    ],
    [
      resources.pods,
      aPod({
        name: "volumes",
        nodeName: "good",
        spec: {
          containers: [],
          volumes: [
            { name: "" },
            { name: "e", ephemeral: {} },
            { name: "p", persistentVolumeClaim: { claimName: "" } },
            { name: "c", csi: { driver: "" } },
            { name: "f", flexVolume: { driver: "../../x" } },
          ],
        },
      }),
    ],
  ],
  "schedules, numbers and selectors at their ends": [
    [
      resources.cronJobs,
      ...[
        "* * * * *",
        "0 0 30 2 *",
        "@every 1ns",
        "@every -1h",
        "TZ=No/Where * * * * *",
        "",
        "a b c d e",
        "60 * * * *",
        "0 0 1 1 0-99999",
      ].map((schedule, i) => ({
        ...aCronJob({ spec: { schedule } }),
        metadata: meta(`cron${i}`, { creationTimestamp: "1970-01-01T00:00:00Z" }),
      })),
      {
        ...aCronJob({
          spec: {
            schedule: "* * * * *",
            startingDeadlineSeconds: largest as never,
            successfulJobsHistoryLimit: -1,
            concurrencyPolicy: "Nonsense" as never,
          },
        }),
        metadata: meta("ends", { creationTimestamp: "0001-01-01T00:00:00Z" }),
        status: { lastScheduleTime: "9999-12-31T23:59:59Z", active: [{}, { kind: "", name: "", uid: "" }] },
      },
    ],
    [
      resources.jobs,
      {
        ...aJob({
          name: "deadline",
          spec: { activeDeadlineSeconds: largest as never, backoffLimit: 0, ttlSecondsAfterFinished: 2_147_483_647 },
          status: { startTime: "0001-01-01T00:00:00Z" },
        }),
      },
      { ...aJob({ name: "none", spec: { completions: 0, parallelism: 0 } }) },
      {
        ...aJob({
          name: "indexes",
          spec: { completions: 3, completionMode: "Indexed" },
          status: { completedIndexes: "0-99999999999,x,-,5-1" },
        }),
      },
      {
        ...aJob({
          name: "ttl",
          spec: { ttlSecondsAfterFinished: 1 },
          status: { conditions: [{ type: "Complete", status: "True", lastTransitionTime: "never" }] },
        }),
      },
      { ...aJob({ name: "tracked", status: { uncountedTerminatedPods: { succeeded: ["", "x"], failed: ["x"] } } }) },
    ],
    [
      resources.deployments,
      {
        ...aDeployment({ name: "percent", replicas: 2 }),
        spec: {
          ...aDeployment({ name: "percent", replicas: 2 }).spec,
          selector: { matchLabels: { app: "percent" } },
          strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "-5%", maxUnavailable: "x%" } },
        },
      },
      {
        ...aDeployment({ name: "wide", replicas: 1 }),
        spec: { replicas: 1, selector: { matchExpressions: [{ key: "a", operator: "Nonsense" }] }, template: { metadata: {} } },
      },
      { metadata: meta("bare", { generation: largest }), spec: { selector: {}, template: {} } },
    ],
    [
      resources.statefulSets,
      {
        metadata: meta("ordinals"),
        spec: {
          serviceName: "",
          replicas: 1,
          selector: { matchLabels: { set: "x" } },
          updateStrategy: { rollingUpdate: { partition: 2_147_483_647 } },
          template: { metadata: { labels: { set: "x" } }, spec: { containers: [] } },
        },
      },
    ],
    [
      resources.pods,
      aPod({ name: "ordinals-99999999999999999999", labels: { set: "x" } }),
      aPod({ name: "ordinals--1", labels: { set: "x" } }),
    ],
    [
      resources.daemonSets,
      {
        metadata: meta("ds"),
        spec: {
          selector: { matchLabels: { ds: "x" } },
          template: {
            metadata: { labels: { ds: "x" } },
            spec: {
              containers: [],
              affinity: {
                nodeAffinity: {
                  requiredDuringSchedulingIgnoredDuringExecution: {
                    nodeSelectorTerms: [{ matchExpressions: [{ key: "x", operator: "Gt", values: ["many"] }] }, {}],
                  },
                },
              },
            },
          },
        },
      },
    ],
    [
      resources.podDisruptionBudgets,
      {
        metadata: meta("odd"),
        spec: { minAvailable: "200%", selector: { matchExpressions: [{ key: "", operator: "In", values: [] }] } },
        status: { disruptedPods: { x: "never", __proto__: "2022" } },
      },
      { metadata: meta("all"), spec: { maxUnavailable: "x", selector: {} } },
    ],
    [
      resources.horizontalPodAutoscalers,
      {
        metadata: meta("hpa"),
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "percent" },
          minReplicas: 0,
          maxReplicas: 2_147_483_647,
          metrics: [
            { type: "Resource" },
            { type: "Nonsense" },
            { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 0 } } },
          ],
          behavior: {
            scaleUp: { stabilizationWindowSeconds: 3600, policies: [{ type: "Percent", value: 0, periodSeconds: 0 }] },
          },
        },
      },
    ],
    [
      resources.clusterRoles,
      {
        metadata: { name: "agg", uid: "agg" },
        aggregationRule: { clusterRoleSelectors: [{ matchExpressions: [{ key: "x", operator: "Nonsense" }] }] },
      },
    ],
    [
      resources.certificateSigningRequests,
      {
        metadata: { name: "csr", uid: "csr", creationTimestamp: "2022-01-01T00:00:00Z" },
        spec: { request: "bm90aGluZw==", signerName: "kubernetes.io/kubelet-serving", usages: null, username: "" },
        status: { certificate: "bm90aGluZw==", conditions: [{ type: "Approved", status: "True" }] },
      },
    ],
    [
      resources.secrets,
      {
        metadata: { ...meta("bootstrap-token-x"), namespace: "kube-system" },
        type: "bootstrap.kubernetes.io/token",
        data: { expiration: "bm90aGluZw==", "token-id": "" },
      },
      {
        metadata: meta("orphan", { annotations: { "kubernetes.io/service-account.name": "\u0000" } }),
        type: "kubernetes.io/service-account-token",
        data: null,
      },
    ],
    [
      resources.endpointSlices,
      {
        metadata: meta("slice", { labels: { "kubernetes.io/service-name": "web" } }),
        addressType: "Nonsense",
        endpoints: [{ addresses: [], targetRef: {} }, {}],
        ports: null,
      },
    ],
    [
      resources.services,
      {
        ...aService({ name: "ports" }),
        metadata: meta("ports"),
        spec: {
          selector: { app: "web" },
          ports: [
            { port: 0, targetPort: "no-such" },
            { port: 99_999, targetPort: -1 },
          ],
          ipFamilies: ["IPv9"],
          clusterIP: "x",
        },
      },
    ],
  ],
};
