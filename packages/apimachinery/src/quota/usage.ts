/**
 * What one object takes of a quota, and which quotas it counts for. Admission charges with it, the resource quota
 * controller counts with it.
 * Source: pkg/quota/v1/evaluator/core, k8s.io/apiserver pkg/quota/v1/generic
 */
import type { Clock } from "../clock/clock.ts";
import { formatGroupResource, type GroupResource } from "../meta/group-version.ts";
import { Quantity } from "../meta/quantity.ts";
import { parseTime } from "../meta/time.ts";
import type { KubeObject } from "../meta/types.ts";
import type { PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service } from "../schema/kinds/core/v1.ts";
import { isNativeResource } from "../validation/resource-names.ts";
import { podResources } from "./pod-resources.ts";
import { addResources, quantityIn, type ResourceList } from "./resource-list.ts";
import { podMatchesScope, scopesOf } from "./scopes.ts";

/** How objects of one resource are counted. */
export interface QuotaEvaluator {
  /** Whether admission charges on UPDATE too; CREATE is always charged. */
  readonly chargesUpdates: boolean;
  /** Those of the names that this resource can use up. */
  matching(names: readonly string[]): string[];
  usage(object: KubeObject): ResourceList;
  /** What a container must say because the quota bounds it; `""` when nothing is missing. */
  missing(required: readonly string[], object: KubeObject): string;
  /** Whether this change gave something back without a deletion. Source: pkg/quota/v1/install/update_filter.go */
  replenishes(old: KubeObject, now: KubeObject): boolean;
  /** Are all scopes of the quota those of the object? */
  inScope(spec: ResourceQuotaSpec | undefined, object: KubeObject): boolean;
}

/** Resources whose count had a name of its own before `count/…`. */
const legacyCounts = new Set(["configmaps", "resourcequotas", "replicationcontrollers", "secrets"]);

/** @param featureEnabled of RecoverVolumeExpansionFailure */
export function quotaEvaluator(resource: GroupResource, clock: Clock, featureEnabled: (gate: string) => boolean): QuotaEvaluator {
  if (resource.group === "") {
    switch (resource.resource) {
      case "pods":
        return podEvaluator(clock);
      case "services":
        return serviceEvaluator;
      case "persistentvolumeclaims":
        return claimEvaluator(featureEnabled("RecoverVolumeExpansionFailure"));
    }
    if (legacyCounts.has(resource.resource)) return countEvaluator(resource, resource.resource);
  }
  return countEvaluator(resource);
}

function countEvaluator(resource: GroupResource, legacyName?: string): QuotaEvaluator {
  const names = [`count/${formatGroupResource(resource)}`, ...(legacyName === undefined ? [] : [legacyName])];
  const one = Object.fromEntries(names.map((name) => [name, "1"]));
  return {
    chargesUpdates: false,
    matching: (wanted) => wanted.filter((name) => names.includes(name)),
    usage: () => one,
    missing: () => "",
    replenishes: () => false,
    inScope: noScopes,
  };
}

/** Only pods have scopes: a quota that asks for one takes in nothing else. */
function noScopes(spec: ResourceQuotaSpec | undefined): boolean {
  return scopesOf(spec).length === 0;
}

const podNames = new Set([
  "count/pods",
  "pods",
  "cpu",
  "memory",
  "ephemeral-storage",
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
]);
/** What a quota bounds, a container has to say. */
const mustBeSaid = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

function podEvaluator(clock: Clock): QuotaEvaluator {
  return {
    chargesUpdates: false,
    matching: (names) => names.filter((name) => podNames.has(name) || name.startsWith("hugepages-") || isExtendedRequest(name)),
    usage(object) {
      const pod = object as Pod & KubeObject;
      if (isOver(pod, clock.now())) return { "count/pods": "1" };
      return { "count/pods": "1", ...computeUsage(podResources(pod, "requests"), podResources(pod, "limits")) };
    },
    missing(required, object) {
      const { spec } = object as Pod & KubeObject;
      const wanted = mustBeSaid.filter((name) => required.includes(name));
      const missing = new Set<string>();
      for (const { resources } of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
        const said = computeUsage(resources?.requests ?? {}, resources?.limits ?? {});
        for (const name of wanted) if (!Object.hasOwn(said, name)) missing.add(name);
      }
      return missing.size === 0 ? "" : `must specify ${[...missing].sort().join(",")}`;
    },
    replenishes: (old, now) => !isOver(old as Pod & KubeObject, clock.now()) && isOver(now as Pod & KubeObject, clock.now()),
    inScope: (spec, object) => scopesOf(spec).every((scope) => podMatchesScope(object as Pod, scope)),
  };
}

/** Source: pkg/quota/v1/evaluator/core/pods.go isExtendedResourceNameForQuota, podResourcePrefixes */
const isExtendedRequest = (name: string): boolean =>
  name.startsWith("requests.hugepages-") || (name.startsWith("requests.") && !isNativeResource(name));

function computeUsage(requests: ResourceList, limits: ResourceList): ResourceList {
  const usage = new Map<string, string>([["pods", "1"]]);
  for (const [name, amount] of Object.entries(requests)) {
    if (name === "cpu" || name === "memory" || name === "ephemeral-storage" || name.startsWith("hugepages-"))
      usage.set(name, amount);
    usage.set(`requests.${name}`, amount);
  }
  for (const name of ["cpu", "memory", "ephemeral-storage"]) {
    const amount = Object.hasOwn(limits, name) ? limits[name] : undefined;
    if (amount !== undefined) usage.set(`limits.${name}`, amount);
  }
  return Object.fromEntries(usage);
}

/** A pod that ended, or whose deletion is overdue, uses nothing but its place in the store. */
function isOver(pod: Pod & KubeObject, now: number): boolean {
  if (pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (!deletionTimestamp || deletionGracePeriodSeconds === undefined) return false;
  return now > (parseTime(deletionTimestamp) ?? now) + Number(deletionGracePeriodSeconds) * 1000; // of 64 bits
}

const serviceNames = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

const serviceEvaluator: QuotaEvaluator = {
  chargesUpdates: true,
  matching: (names) => names.filter((name) => serviceNames.includes(name)),
  usage(object) {
    const { spec } = object as Service & KubeObject;
    const ports = spec?.ports?.length ?? 0;
    let nodePorts = 0;
    let balancers = 0;
    if (spec?.type === "NodePort") nodePorts = ports;
    if (spec?.type === "LoadBalancer") {
      balancers = 1;
      const allocates = spec.allocateLoadBalancerNodePorts ?? true;
      nodePorts = allocates
        ? ports
        : (spec.ports ?? []).filter(({ nodePort }) => nodePort !== undefined && nodePort !== 0).length;
    }
    return {
      "count/services": "1",
      services: "1",
      "services.nodeports": String(nodePorts),
      "services.loadbalancers": String(balancers),
    };
  },
  missing: () => "",
  // Another type uses other node ports and balancers.
  replenishes: (old, now) => (old as Service & KubeObject).spec?.type !== (now as Service & KubeObject).spec?.type,
  inScope: noScopes,
};

const claimNames = ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
const classSuffix = ".storageclass.storage.k8s.io/";

/** @param recovers claims may ask for less again: what has been set aside for them counts, until it is given back */
const claimEvaluator = (recovers: boolean): QuotaEvaluator => ({
  chargesUpdates: true,
  matching: (names) =>
    names.filter(
      (name) =>
        claimNames.includes(name) ||
        name.endsWith(`${classSuffix}requests.storage`) ||
        name.endsWith(`${classSuffix}persistentvolumeclaims`),
    ),
  usage(object) {
    const claim = object as PersistentVolumeClaim & KubeObject;
    const className = claim.metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? claim.spec?.storageClassName;
    const requested = quantityIn(claim.spec?.resources?.requests ?? {}, "storage");
    const allocated = recovers ? quantityIn(claim.status?.allocatedResources ?? {}, "storage") : undefined;
    let usage: ResourceList = { "count/persistentvolumeclaims": "1", persistentvolumeclaims: "1" };
    if (className) usage = addResources(usage, { [`${className}${classSuffix}persistentvolumeclaims`]: "1" });
    if (requested === undefined) return usage;
    const storage = wholeBytes(allocated !== undefined && allocated.cmp(requested) > 0 ? allocated : requested);
    usage = addResources(usage, { "requests.storage": storage });
    return className ? addResources(usage, { [`${className}${classSuffix}requests.storage`]: storage }) : usage;
  },
  missing: () => "",
  replenishes: () => false,
  inScope: noScopes,
});

/** A claim may ask for parts of a byte, and no quota may say that so much is used. */
function wholeBytes(size: Quantity): string {
  return Quantity.fromValue(size.scaledValue(0), size.format).toString();
}
