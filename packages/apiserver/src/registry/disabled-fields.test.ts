import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { contextOf, resourcesForTests } from "../testing/kind-rules.ts";
import { prepareUpdate } from "../testing/run-strategy.ts";

const gates = Object.fromEntries(
  [
    "AppArmor",
    "CSIInlineVolume",
    "EphemeralContainers",
    "GRPCContainerProbe",
    "IdentifyPodOS",
    "LocalStorageCapacityIsolation",
    "NonPreemptingPriority",
    "PodAffinityNamespaceSelector",
    "PodOverhead",
    "ProbeTerminationGracePeriod",
    "ProcMountType",
  ].map((gate) => [gate, false]),
);
const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "unconfined", other: "x" };
const term = (fields: object) => ({ topologyKey: "zone", ...fields });
const affinity = (fields: object) => ({
  podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term({}), term(fields)] },
  podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term(fields) }] },
});
const gated = (): PodSpec => ({
  os: { name: "linux" },
  overhead: { cpu: "1" },
  preemptionPolicy: "Never",
  affinity: affinity({ namespaceSelector: {} }),
  volumes: [
    { name: "a", emptyDir: { sizeLimit: "1Gi" } },
    { name: "b", csi: { driver: "d" } },
  ],
  containers: [
    { name: "b", image: "i" },
    {
      name: "c",
      image: "i",
      securityContext: { procMount: "Unmasked" },
      livenessProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 },
      // Not dropped: validation refuses it.
      readinessProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 },
    },
  ],
  initContainers: [{ name: "d", image: "i", startupProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 } }],
  ephemeralContainers: [{ name: "e" }],
});
const plain = {
  affinity: affinity({}),
  volumes: [{ name: "a", emptyDir: {} }, { name: "b" }],
  containers: [
    { name: "b", image: "i" },
    {
      name: "c",
      image: "i",
      securityContext: { procMount: "Default" },
      livenessProbe: {},
      readinessProbe: { terminationGracePeriodSeconds: 5 },
    },
  ],
  initContainers: [{ name: "d", image: "i", startupProbe: {} }],
};

/** Path of the pod spec in each kind with a pod template. */
for (const { resource, path } of [
  { resource: "pods", path: ["spec"] },
  { resource: "podtemplates", path: ["template", "spec"] },
  ...["deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers", "jobs"].map((name) => ({
    resource: name,
    path: ["spec", "template", "spec"],
  })),
  { resource: "cronjobs", path: ["spec", "jobTemplate", "spec", "template", "spec"] },
]) {
  const definition = resourcesForTests.find((d) => d.resource === resource);
  const strategy = definition?.strategy;
  assert.ok(strategy);
  const ctx = contextOf(definition as never, definition?.hub ?? "", gates);
  const holding = (spec: object): KubeObject => ({
    metadata: { name: "x" },
    ...(path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), spec) as object),
  });
  const held = (object: unknown): unknown => path.reduce((outer, name) => (outer as Record<string, unknown>)[name], object);
  /** The object with the spec: the pod, or the template. */
  const carrierOf = (object: unknown): KubeObject =>
    path.slice(0, -1).reduce((outer, name) => (outer as Record<string, unknown>)[name], object) as KubeObject;
  const profiled = (): KubeObject => {
    const object = holding(structuredClone(plain));
    const carrier = carrierOf(object);
    carrier.metadata = { ...carrier.metadata, annotations: { ...annotations } };
    return object;
  };

  test(`${resource}: AppArmor profiles are dropped where the gate is off, unless there were some`, () => {
    const made = profiled();
    strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual(carrierOf(made).metadata.annotations, { other: "x" });
    const added = profiled();
    prepareUpdate(strategy, added, holding(structuredClone(plain)), ctx);
    assert.deepEqual(carrierOf(added).metadata.annotations, { other: "x" });
    const kept = profiled();
    prepareUpdate(strategy, kept, profiled(), ctx);
    assert.deepEqual(carrierOf(kept).metadata.annotations, annotations);
  });

  test(`${resource}: what belongs to gates that are off is dropped, unless it was there`, () => {
    const made = holding(gated());
    strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual(held(made), plain);
    const added = holding(gated());
    prepareUpdate(strategy, added, holding(structuredClone(plain)), ctx);
    assert.deepEqual(held(added), plain);
    // The priority counts as use of the policy of preemption.
    const used = (): PodSpec => ({ ...gated(), priority: 1 });
    const kept = holding(used());
    prepareUpdate(strategy, kept, holding(used()), ctx);
    assert.deepEqual(held(kept), used());
  });
}

interface GatedField {
  readonly resource: string;
  readonly gate: string;
  /** An object of the resource with this value in the field, and what it has there. */
  readonly of: (value: unknown) => object;
  readonly field: (object: never) => unknown;
  readonly used: unknown;
  /** What remains of a use that is dropped. */
  readonly dropped?: unknown;
  /** Stored values that are no use. */
  readonly unused?: readonly unknown[];
  readonly always?: true;
  readonly status?: true;
}

const rows: readonly GatedField[] = [
  ...(
    [
      {
        name: "internalTrafficPolicy",
        gate: "ServiceInternalTrafficPolicy",
        used: "Local",
        dropped: "Cluster",
        unused: ["Cluster", ""],
      },
      { name: "allocateLoadBalancerNodePorts", gate: "ServiceLBNodePortControl", used: false, dropped: true, unused: [true] },
      { name: "loadBalancerClass", gate: "ServiceLoadBalancerClass", used: "a.b/c", unused: [undefined, ""] },
    ] as const
  ).map(({ name, ...row }) => ({
    ...row,
    resource: "services",
    of: (value: unknown) => ({
      spec: { type: "LoadBalancer", clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"], [name]: value },
    }),
    field: ({ spec }: { spec: Record<string, unknown> }) => spec[name],
  })),
  {
    resource: "persistentvolumes",
    gate: "ExpandCSIVolumes",
    of: (value) => ({ spec: { csi: { driver: "d", volumeHandle: "h", controllerExpandSecretRef: value } } }),
    field: ({ spec }: { spec: { csi: { controllerExpandSecretRef?: unknown } } }) => spec.csi.controllerExpandSecretRef,
    used: { name: "s", namespace: "n" },
  },
  {
    resource: "persistentvolumeclaims",
    gate: "AnyVolumeDataSource",
    of: (value) => ({ spec: { dataSourceRef: value } }),
    field: ({ spec }: { spec: { dataSourceRef?: unknown } }) => spec.dataSourceRef,
    used: { kind: "PersistentVolumeClaim", name: "c" },
    always: true,
  },
  {
    resource: "nodes",
    gate: "DynamicKubeletConfig",
    of: (value) => ({ spec: { configSource: value } }),
    field: ({ spec }: { spec: { configSource?: unknown } }) => spec.configSource,
    used: { configMap: { name: "a" } },
  },
  ...[
    { gate: "DynamicKubeletConfig", resource: "nodes", name: "config", used: { error: "e" } },
    {
      gate: "ExpandPersistentVolumes",
      resource: "persistentvolumeclaims",
      name: "conditions",
      used: [{ type: "a" }],
      unused: [[]],
    },
    {
      ...{ gate: "RecoverVolumeExpansionFailure", resource: "persistentvolumeclaims", name: "allocatedResources" },
      used: { storage: "1" },
    },
    {
      ...{ gate: "RecoverVolumeExpansionFailure", resource: "persistentvolumeclaims", name: "resizeStatus" },
      ...{ used: "NodeExpansionPending", unused: [""] },
    },
  ].map(({ name, ...row }) => ({
    ...row,
    of: (value: unknown) => ({ spec: {}, status: { [name]: value } }),
    field: ({ status }: { status: Record<string, unknown> }) => status[name],
    status: true as const,
  })),
  ...["priority", "priorityClassName"].map((name) => ({
    resource: "pods",
    gate: "NonPreemptingPriority",
    of: (value: unknown) => ({
      spec: { containers: [], ...(value === "Never" ? { preemptionPolicy: value, [name]: 1 } : (value ?? {})) },
    }),
    field: ({ spec }: { spec: { preemptionPolicy?: unknown } }) => spec.preemptionPolicy,
    used: "Never",
    // The policy itself is no use of it.
    unused: [{ preemptionPolicy: "Never" }, { [name]: 0 }, { [name]: "" }],
  })),
  {
    resource: "pods",
    gate: "EphemeralContainers",
    of: (value) => ({ spec: { containers: [], ephemeralContainers: value } }),
    field: ({ spec }: { spec: { ephemeralContainers?: unknown } }) => spec.ephemeralContainers,
    used: [{ name: "d" }],
    unused: [undefined, null, []],
  },
  ...[
    {
      ...{ resource: "csidrivers.storage.k8s.io", gate: "CSIInlineVolume", name: "volumeLifecycleModes" },
      ...{ used: ["Ephemeral"], dropped: ["Persistent"], unused: [["Persistent"], [], undefined] },
    },
    {
      ...{ resource: "csidrivers.storage.k8s.io", gate: "CSIStorageCapacity", name: "storageCapacity" },
      ...{ used: true, dropped: false, unused: [false, undefined] },
    },
    {
      resource: "jobs.batch",
      gate: "IndexedJob",
      name: "completionMode",
      used: "Indexed",
      dropped: "NonIndexed",
      unused: ["NonIndexed"],
    },
    {
      resource: "podsecuritypolicies.policy",
      gate: "CSIInlineVolume",
      name: "allowedCSIDrivers",
      used: [{ name: "d" }],
      always: true as const,
    },
    {
      resource: "podsecuritypolicies.policy",
      gate: "ProcMountType",
      name: "allowedProcMountTypes",
      used: ["Unmasked"],
      unused: [undefined, []],
    },
    {
      ...{ resource: "statefulsets.apps", gate: "StatefulSetAutoDeletePVC", name: "persistentVolumeClaimRetentionPolicy" },
      used: { whenDeleted: "Delete", whenScaled: "Retain" },
    },
    {
      resource: "statefulsets.apps",
      gate: "StatefulSetMinReadySeconds",
      name: "minReadySeconds",
      used: 1,
      unused: [0, undefined],
    },
  ].map(({ name, ...row }) => ({
    ...row,
    of: (value: unknown) => ({ spec: { [name]: value } }),
    field: ({ spec }: { spec: Record<string, unknown> }) => spec[name],
  })),
  {
    ...{ resource: "daemonsets.apps", gate: "DaemonSetUpdateSurge", used: 1, dropped: 0, unused: [0, undefined] },
    of: (maxSurge) => ({ spec: { updateStrategy: { rollingUpdate: { maxSurge } } } }),
    field: ({ spec }: { spec: { updateStrategy: { rollingUpdate: { maxSurge?: unknown } } } }) =>
      spec.updateStrategy.rollingUpdate.maxSurge,
  },
  ...["serving", "terminating"].map((name) => ({
    ...{ resource: "endpointslices.discovery.k8s.io", gate: "EndpointSliceTerminatingCondition", used: true },
    of: (value: unknown) => ({ endpoints: [{ addresses: [] }, { addresses: [], conditions: { [name]: value } }] }),
    field: ({ endpoints }: { endpoints: { conditions?: Record<string, unknown> }[] }) => endpoints[1]?.conditions?.[name],
  })),
  {
    ...{ resource: "endpointslices.discovery.k8s.io", gate: "TopologyAwareHints", used: { forZones: [{ name: "z" }] } },
    of: (hints) => ({ endpoints: [{ addresses: [] }, { addresses: [], hints }] }),
    field: ({ endpoints }: { endpoints: { hints?: unknown }[] }) => endpoints[1]?.hints,
  },
  {
    ...{ resource: "horizontalpodautoscalers.autoscaling", gate: "HPAContainerMetrics", used: { name: "cpu", container: "c" } },
    of: (containerResource) => ({ spec: { metrics: [{ type: "Pods" }, { type: "ContainerResource", containerResource }] } }),
    field: ({ spec }: { spec: { metrics: { containerResource?: unknown }[] } }) => spec.metrics[1]?.containerResource,
  },
  ...["ingress", "egress"].map((direction) => ({
    ...{ resource: "networkpolicies.networking.k8s.io", gate: "NetworkPolicyEndPort", used: 90 },
    of: (endPort: unknown) => ({ spec: { [direction]: [{}, { ports: [{ port: 80 }, { port: 80, endPort }] }] } }),
    field: ({ spec }: { spec: Record<string, { ports?: { endPort?: unknown }[] }[]> }) =>
      spec[direction]?.[1]?.ports?.[1]?.endPort,
  })),
  ...[
    {
      ...{ resource: "priorityclasses.scheduling.k8s.io", gate: "NonPreemptingPriority", name: "preemptionPolicy" },
      ...{ used: "Never", dropped: "PreemptLowerPriority", unused: ["PreemptLowerPriority", undefined] },
    },
    { resource: "storageclasses.storage.k8s.io", gate: "ExpandPersistentVolumes", name: "allowVolumeExpansion", used: true },
  ].map(({ name, ...row }) => ({
    ...row,
    of: (value: unknown) => ({ [name]: value }),
    field: (object: Record<string, unknown>) => object[name],
  })),
  ...["initContainers", "containers", "ephemeralContainers"].flatMap((list) =>
    ["livenessProbe", "readinessProbe", "startupProbe"].map((probe) => ({
      resource: "pods",
      gate: "GRPCContainerProbe",
      of: (value: unknown) => ({ spec: { containers: [], [list]: [{ name: "b" }, { name: "c", [probe]: { grpc: value } }] } }),
      field: ({ spec }: { spec: Record<string, Record<string, { grpc?: unknown }>[]> }) => spec[list]?.[1]?.[probe]?.grpc,
      used: { port: 1 },
    })),
  ),
];

for (const { resource, gate, of, field, used, dropped, unused = [undefined], always, status } of rows) {
  const definition = resourcesForTests.find(
    (one) => resource === (one.group === "" ? one.resource : `${one.resource}.${one.group}`),
  );
  const strategy = status ? definition?.statusStrategy : definition?.strategy;
  assert.ok(definition && strategy);
  const made = (value: unknown): KubeObject => ({ metadata: { name: "x" }, ...structuredClone(of(value)) }) as KubeObject;
  const after = (stored: unknown, enabled: boolean): unknown => {
    const next = made(used);
    prepareUpdate(strategy, next, made(stored), contextOf(definition, definition.hub, { [gate]: enabled }));
    return field(next as never);
  };
  const shown = JSON.stringify(of(used)).slice(0, 100);

  test(`${resource}: without ${gate}, ${shown} is dropped unless the stored object uses it`, () => {
    for (const stored of unused) assert.deepEqual(after(stored, false), dropped, JSON.stringify(stored));
    assert.deepEqual(after(used, false), always ? dropped : used);
    for (const stored of [used, ...unused]) assert.deepEqual(after(stored, true), used, JSON.stringify(stored));
  });
}

test("what remains of a dropped field is not shared by the objects", () => {
  const definition = resourcesForTests.find((one) => one.resource === "csidrivers");
  assert.ok(definition?.strategy);
  const modesOf = (): string[] => {
    const made = { metadata: { name: "d" }, spec: { volumeLifecycleModes: ["Ephemeral"] } };
    definition.strategy?.prepareForCreate?.(
      made as KubeObject,
      contextOf(definition, definition.hub, { CSIInlineVolume: false }),
    );
    return made.spec.volumeLifecycleModes;
  };
  modesOf().push("Other");
  assert.deepEqual(modesOf(), ["Persistent"]);
});
