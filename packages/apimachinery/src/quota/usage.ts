/**
 * Quota usage of objects, and which quotas they count towards. Used by admission and by the resource quota controller.
 * Source: pkg/quota/v1/evaluator/core, k8s.io/apiserver pkg/quota/v1/generic
 */

import { formatGroupResource, type GroupResource } from "../objects/meta/group-version.ts";
import { Quantity } from "../objects/meta/quantity.ts";
import { parseTime } from "../objects/meta/time.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service } from "../objects/schema/kinds/core/v1.ts";
import { isNativeResource } from "../objects/validation/resource-names.ts";
import type { Clock } from "../process/clock/clock.ts";
import { podResources } from "./pod-resources.ts";
import { addResources, quantityIn, type ResourceList } from "./resource-list.ts";
import { podMatchesScopes } from "./scopes.ts";

/**
 * Computes the usage of objects of one resource; callers pass it no others. TypeScript takes an evaluator of Pods for one of any
 * objects, because these are methods.
 */
export interface QuotaEvaluator<T extends KubeObject = KubeObject> {
  /** True when admission also charges UPDATE; CREATE is always charged. */
  readonly chargesUpdates: boolean;
  /** The subset of quota resource names that objects of this resource consume. */
  matching(names: readonly string[]): string[];
  usage(object: T): ResourceList;
  /** Error text when a container lacks requests or limits that the quota requires; `""` when none is missing. */
  missing(required: readonly string[], object: T): string;
  /** True when an update may have reduced the usage. Source: pkg/quota/v1/install/update_filter.go */
  replenishes(old: T, now: T): boolean;
  /** True when the object matches all scopes of the quota. @param spec never changed afterwards */
  inScope(spec: ResourceQuotaSpec | undefined, object: T): boolean;
}

/** Resources that can also be counted by plain name, without `count/`. */
const legacyCounts = new Set(["configmaps", "resourcequotas", "replicationcontrollers", "secrets"]);

/** @param featureEnabled queried for RecoverVolumeExpansionFailure */
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

/** Only pods support scopes: a quota with scopes matches no other objects. */
function noScopes(spec: ResourceQuotaSpec | undefined): boolean {
  return (spec?.scopes ?? []).length === 0 && (spec?.scopeSelector?.matchExpressions ?? []).length === 0;
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
/** Resources that containers have to specify when a quota limits them. */
const mustBeSaid = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

function podEvaluator(clock: Clock): QuotaEvaluator<Pod> {
  return {
    chargesUpdates: false,
    matching: (names) => names.filter((name) => podNames.has(name) || name.startsWith("hugepages-") || isExtendedRequest(name)),
    usage(pod) {
      if (isOver(pod, clock.now())) return { "count/pods": "1" };
      return { "count/pods": "1", ...computeUsage(podResources(pod, "requests"), podResources(pod, "limits")) };
    },
    missing(required, { spec }) {
      const wanted = mustBeSaid.filter((name) => required.includes(name));
      const missing = new Set<string>();
      for (const { resources } of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
        const said = computeUsage(resources?.requests ?? {}, resources?.limits ?? {});
        for (const name of wanted) if (!Object.hasOwn(said, name)) missing.add(name);
      }
      return missing.size === 0 ? "" : `must specify ${[...missing].sort().join(",")}`;
    },
    replenishes: (old, now) => !isOver(old, clock.now()) && isOver(now, clock.now()),
    inScope: (spec, pod) => podMatchesScopes(pod, spec),
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

/** True for a terminated pod, or one whose deletion is overdue: only its object counts. */
function isOver(pod: Pod, now: number): boolean {
  if (pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (!deletionTimestamp || deletionGracePeriodSeconds === undefined) return false;
  return now > (parseTime(deletionTimestamp) ?? now) + Number(deletionGracePeriodSeconds) * 1000; // may be a bigint
}

const serviceNames = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

const serviceEvaluator: QuotaEvaluator<Service> = {
  chargesUpdates: true,
  matching: (names) => names.filter((name) => serviceNames.includes(name)),
  usage({ spec }) {
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
  // A change of type may release node ports and load balancers.
  replenishes: (old, now) => old.spec?.type !== now.spec?.type,
  inScope: noScopes,
};

const claimNames = ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
const classSuffix = ".storageclass.storage.k8s.io/";

/** @param recovers RecoverVolumeExpansionFailure: requests can shrink, so the larger of request and allocated size counts */
const claimEvaluator = (recovers: boolean): QuotaEvaluator<PersistentVolumeClaim> => ({
  chargesUpdates: true,
  matching: (names) =>
    names.filter(
      (name) =>
        claimNames.includes(name) ||
        name.endsWith(`${classSuffix}requests.storage`) ||
        name.endsWith(`${classSuffix}persistentvolumeclaims`),
    ),
  usage(claim) {
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

/** Rounds up to whole bytes: claims may request fractions of a byte, which are invalid in a quota's status. */
function wholeBytes(size: Quantity): string {
  return Quantity.fromValue(size.scaledValue(0), size.format).toString();
}
