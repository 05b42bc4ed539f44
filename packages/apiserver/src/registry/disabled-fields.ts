import { isDeepStrictEqual } from "node:util";
import { appArmorContainer } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Strategy, StrategyContext } from "./generic/strategy.ts";

/**
 * Fields of feature gates. Where the gate is off they are dropped from what is written, unless the stored object uses one of
 * them: turning a gate off must not change objects that were written before.
 */
interface GatedFields {
  readonly gate: string;
  /** `[]` after a name: every element. `*` at the end: every key that begins so. */
  readonly paths: readonly string[];
  /** A value, as that of defaulting, that does not count as use, and replaces others instead of dropping the field. */
  readonly unused?: unknown;
  /** Paths whose use by the stored object keeps the fields. Default: `paths`. */
  readonly usedBy?: readonly string[];
  /** The fields are also dropped from objects that use them. */
  readonly always?: true;
}

const containers = ["spec.containers[]", "spec.initContainers[]", "spec.ephemeralContainers[]"];
const eachContainers = (...names: readonly string[]): string[] =>
  containers.flatMap((at) => names.map((name) => `${at}.${name}`));
const affinityTerms = ["podAffinity", "podAntiAffinity"].flatMap((name) => [
  `spec.affinity.${name}.requiredDuringSchedulingIgnoredDuringExecution[]`,
  `spec.affinity.${name}.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm`,
]);

/** Of pods and pod templates. Source: pkg/api/pod/util.go DropDisabledPodFields, DropDisabledTemplateFields */
const ofPods: readonly GatedFields[] = [
  { gate: "AppArmor", paths: [`metadata.annotations/${appArmorContainer}*`] },
  { gate: "CSIInlineVolume", paths: ["spec.volumes[].csi"] },
  { gate: "EphemeralContainers", paths: ["spec.ephemeralContainers"] },
  { gate: "GRPCContainerProbe", paths: eachContainers("livenessProbe.grpc", "readinessProbe.grpc", "startupProbe.grpc") },
  { gate: "IdentifyPodOS", paths: ["spec.os"] },
  { gate: "LocalStorageCapacityIsolation", paths: ["spec.volumes[].emptyDir.sizeLimit"] },
  {
    gate: "NonPreemptingPriority",
    paths: ["spec.preemptionPolicy"],
    usedBy: ["spec.priority", "spec.priorityClassName"],
  },
  { gate: "PodAffinityNamespaceSelector", paths: affinityTerms.map((term) => `${term}.namespaceSelector`) },
  { gate: "PodOverhead", paths: ["spec.overhead"] },
  {
    gate: "ProbeTerminationGracePeriod",
    // Readiness probes cannot have it.
    paths: eachContainers("livenessProbe.terminationGracePeriodSeconds", "startupProbe.terminationGracePeriodSeconds"),
  },
  // 1.12 set the default, and objects stored by it must not appear changed.
  { gate: "ProcMountType", paths: eachContainers("securityContext.procMount"), unused: "Default" },
];

/** Path of the pod or template in each kind that has one. */
const podCarriers: Readonly<Record<string, string>> = {
  pods: "",
  podtemplates: "template.",
  replicationcontrollers: "spec.template.",
  "daemonsets.apps": "spec.template.",
  "deployments.apps": "spec.template.",
  "replicasets.apps": "spec.template.",
  "statefulsets.apps": "spec.template.",
  "jobs.batch": "spec.template.",
  "cronjobs.batch": "spec.jobTemplate.spec.template.",
};

/** By resource and group. Source: dropDisabledFields and its like in pkg/registry and pkg/api */
const ofKinds: Readonly<Record<string, readonly GatedFields[]>> = {
  nodes: [
    { gate: "DynamicKubeletConfig", paths: ["spec.configSource"] },
    { gate: "DynamicKubeletConfig", paths: ["status.config"] },
  ],
  persistentvolumeclaims: [
    { gate: "AnyVolumeDataSource", paths: ["spec.dataSourceRef"], always: true },
    { gate: "ExpandPersistentVolumes", paths: ["status.conditions"] },
    { gate: "RecoverVolumeExpansionFailure", paths: ["status.allocatedResources"] },
    { gate: "RecoverVolumeExpansionFailure", paths: ["status.resizeStatus"] },
  ],
  persistentvolumes: [{ gate: "ExpandCSIVolumes", paths: ["spec.csi.controllerExpandSecretRef"] }],
  services: [
    { gate: "ServiceInternalTrafficPolicy", paths: ["spec.internalTrafficPolicy"], unused: "Cluster" },
    { gate: "ServiceLBNodePortControl", paths: ["spec.allocateLoadBalancerNodePorts"], unused: true },
    { gate: "ServiceLoadBalancerClass", paths: ["spec.loadBalancerClass"] },
  ],
  "certificatesigningrequests.certificates.k8s.io": [{ gate: "CSRDuration", paths: ["spec.expirationSeconds"] }],
  "csidrivers.storage.k8s.io": [
    { gate: "CSIInlineVolume", paths: ["spec.volumeLifecycleModes"], unused: ["Persistent"] },
    { gate: "CSIStorageCapacity", paths: ["spec.storageCapacity"], unused: false },
  ],
  "daemonsets.apps": [{ gate: "DaemonSetUpdateSurge", paths: ["spec.updateStrategy.rollingUpdate.maxSurge"], unused: 0 }],
  "endpointslices.discovery.k8s.io": [
    {
      gate: "EndpointSliceTerminatingCondition",
      paths: ["endpoints[].conditions.serving", "endpoints[].conditions.terminating"],
    },
    { gate: "TopologyAwareHints", paths: ["endpoints[].hints"] },
  ],
  // The type of the metric stays, and validation reports its source as missing.
  "horizontalpodautoscalers.autoscaling": [{ gate: "HPAContainerMetrics", paths: ["spec.metrics[].containerResource"] }],
  "jobs.batch": [{ gate: "IndexedJob", paths: ["spec.completionMode"], unused: "NonIndexed" }],
  "networkpolicies.networking.k8s.io": [
    { gate: "NetworkPolicyEndPort", paths: ["spec.ingress[].ports[].endPort", "spec.egress[].ports[].endPort"] },
  ],
  "podsecuritypolicies.policy": [
    { gate: "CSIInlineVolume", paths: ["spec.allowedCSIDrivers"], always: true },
    { gate: "ProcMountType", paths: ["spec.allowedProcMountTypes"] },
  ],
  "priorityclasses.scheduling.k8s.io": [
    { gate: "NonPreemptingPriority", paths: ["preemptionPolicy"], unused: "PreemptLowerPriority" },
  ],
  "statefulsets.apps": [
    { gate: "StatefulSetAutoDeletePVC", paths: ["spec.persistentVolumeClaimRetentionPolicy"] },
    { gate: "StatefulSetMinReadySeconds", paths: ["spec.minReadySeconds"] },
  ],
  "storageclasses.storage.k8s.io": [{ gate: "ExpandPersistentVolumes", paths: ["allowVolumeExpansion"] }],
};

/** The strategies of a resource, dropping fields of gates that are off first. Those of a kind without such fields are as given. */
export function droppingDisabledFields<T extends { readonly strategy?: Strategy; readonly statusStrategy?: Strategy }>(
  name: string,
  { strategy, statusStrategy }: T,
): { strategy?: Strategy; statusStrategy?: Strategy } {
  const { all, ofStatus } = fieldsByName.getOrInsertComputed(name, gatedFieldsOf);
  return {
    ...(strategy && { strategy: dropping(strategy, all) }),
    ...(statusStrategy && { statusStrategy: dropping(statusStrategy, ofStatus) }),
  };
}

/** Parsed once in a process, which may contain many servers, one after the other (tests). */
const fieldsByName = new Map<string, FieldsOfKind>();

interface FieldsOfKind {
  readonly all: readonly ParsedFields[];
  /** Those of the status only. */
  readonly ofStatus: readonly ParsedFields[];
}

function gatedFieldsOf(name: string): FieldsOfKind {
  const prefix = podCarriers[name];
  const all = [...(prefix === undefined ? [] : ofPods.map((of) => below(prefix, of))), ...(ofKinds[name] ?? [])].map(parsed);
  return { all, ofStatus: all.filter(({ paths }) => paths.every(([first]) => first === "status")) };
}

function dropping(strategy: Strategy, fields: readonly ParsedFields[]): Strategy {
  if (fields.length === 0) return strategy;
  return {
    ...strategy,
    prepareForCreate(next, ctx) {
      drop(fields, next, undefined, ctx);
      strategy.prepareForCreate?.(next, ctx);
    },
    prepareForUpdate(next, current, ctx) {
      drop(fields, next, current, ctx);
      return strategy.prepareForUpdate?.(next, current, ctx);
    },
  };
}

interface ParsedFields extends Omit<GatedFields, "paths" | "usedBy"> {
  readonly paths: readonly Path[];
  readonly usedBy: readonly Path[];
}

/** Names of the fields from the object to the last one. */
type Path = readonly string[];
type Holder = Record<string, unknown>;

const below = (prefix: string, { paths, usedBy, ...rest }: GatedFields): GatedFields => ({
  ...rest,
  paths: paths.map((path) => prefix + path),
  ...(usedBy && { usedBy: usedBy.map((path) => prefix + path) }),
});

function parsed({ paths, usedBy = paths, ...rest }: GatedFields): ParsedFields {
  return { ...rest, paths: paths.map(namesOf), usedBy: usedBy.map(namesOf) };
}

/** Keys of a map, which have dots themselves, come after a slash. */
function namesOf(path: string): Path {
  const slash = path.indexOf("/");
  return slash < 0 ? path.split(".") : [...path.slice(0, slash).split("."), path.slice(slash + 1)];
}

function drop(fields: readonly ParsedFields[], next: KubeObject, current: KubeObject | undefined, ctx: StrategyContext): void {
  for (const { gate, paths, usedBy, unused, always } of fields) {
    if (ctx.featureEnabled(gate)) continue;
    if (!always && usedBy.some((path) => valuesAt(current, path).some((value) => isUse(value, unused)))) continue;
    for (const path of paths) for (const [holder, key] of placesAt(next, path)) put(holder, key, unused);
  }
}

function isUse(value: unknown, unused: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === 0) return false;
  return !isDeepStrictEqual(value, unused) && (!Array.isArray(value) || value.length > 0);
}

function put(holder: Holder, key: string, value: unknown): void {
  if (value === undefined) delete holder[key];
  else holder[key] = structuredClone(value);
}

const valuesAt = (object: unknown, path: Path): unknown[] => placesAt(object, path).map(([holder, key]) => holder[key]);

/** Holders of the field at the end of the path, with its key; only those that have it. */
function placesAt(object: unknown, path: Path, depth = 0): [Holder, string][] {
  if (object === null || typeof object !== "object") return [];
  const holder = object as Holder; // cast: read by field name
  const name = path[depth]!;
  if (depth === path.length - 1) {
    const keys = name.endsWith("*") ? Object.keys(holder).filter((key) => key.startsWith(name.slice(0, -1))) : [name];
    return keys.filter((key) => holder[key] !== undefined).map((key) => [holder, key]);
  }
  if (!name.endsWith("[]")) return placesAt(holder[name], path, depth + 1);
  const list = holder[name.slice(0, -2)];
  return Array.isArray(list) ? list.flatMap((item) => placesAt(item, path, depth + 1)) : [];
}
