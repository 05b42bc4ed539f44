/** Namespaces: what blocks the deletion of one, and unhealthy objects in the others. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { conditionOf, oneLine, plural, type Reader, type Rule, rulesFor, sinceTime } from "../rule.ts";

interface Remaining {
  readonly ref: ObjectRef;
  readonly finalizers: readonly string[];
}

interface NamespaceFacts {
  /** Objects that remain in a namespace that is being deleted. */
  readonly remaining: readonly Remaining[];
  readonly unavailableServices: readonly ObjectRef[];
  /** Workloads of a namespace that is not being deleted. */
  readonly workloads: readonly ObjectRef[];
}

const namespaceController = "namespace-controller";

/** Resources in the order in which they are checked. */
const looked: readonly (readonly [resource: string, group: string])[] = [
  ["resourcequotas", ""],
  ["deployments", "apps"],
  ["statefulsets", "apps"],
  ["daemonsets", "apps"],
  ["jobs", "batch"],
  ["replicasets", "apps"],
  ["replicationcontrollers", ""],
  ["pods", ""],
  ["persistentvolumeclaims", ""],
  ["services", ""],
  ["ingresses", "networking.k8s.io"],
  ["horizontalpodautoscalers", "autoscaling"],
];
const mostWorkloads = 60;

async function gather(object: Namespace, reader: Reader): Promise<NamespaceFacts> {
  const name = object.metadata.name ?? "";
  if (!object.metadata.deletionTimestamp)
    return { remaining: [], unavailableServices: [], workloads: await workloadsIn(name, reader) };
  const remaining: Remaining[] = [];
  for (const { resource, group } of reader.namespacedResources()) {
    for (const found of (await reader.list(resource, group, name)) ?? []) {
      remaining.push({ ref: reader.refOf(found, resource, group), finalizers: found.metadata.finalizers ?? [] });
    }
  }
  const services = (await reader.list<APIService>("apiservices", "apiregistration.k8s.io", "")) ?? [];
  const unavailable = services.filter(({ status }) => conditionOf(status?.conditions, "Available")?.status === "False");
  return {
    remaining,
    unavailableServices: unavailable.map((service) => reader.refOf(service, "apiservices", "apiregistration.k8s.io")),
    workloads: [],
  };
}

async function workloadsIn(namespace: string, reader: Reader): Promise<ObjectRef[]> {
  const refs: ObjectRef[] = [];
  for (const [resource, group] of looked) {
    for (const object of (await reader.list(resource, group, namespace)) ?? []) {
      if (isTop(object)) refs.push(reader.refOf(object, resource, group));
    }
  }
  return refs.slice(0, mostWorkloads);
}

const isTop = ({ metadata }: KubeObject): boolean => !metadata.ownerReferences?.some(({ controller }) => controller);

const deletion: Rule<Namespace, NamespaceFacts>[] = [
  ({ object, related: { unavailableServices } }) => {
    const failure = conditionOf(object.status?.conditions, "NamespaceDeletionDiscoveryFailure");
    if (failure?.status !== "True") return undefined;
    return {
      by: namespaceController,
      reason: "DiscoveryFailed",
      summary: `is being deleted, but the resources of an API service cannot be listed: ${oneLine(failure.message, 240)}`,
      remedy: "Repair the server of the API service, or delete the APIService if it is not needed any more.",
      follow: unavailableServices,
      ...sinceTime(failure.lastTransitionTime),
    };
  },
  ({ object, related: { remaining } }) => {
    const kept = remaining.filter(({ finalizers, ref }) => finalizers.length > 0 || ref.resource === "pods");
    const [first] = kept;
    if (first === undefined) return undefined;
    const kinds = new Set(kept.map(({ ref }) => ref.resource));
    return {
      by: namespaceController,
      reason: "ContentRemaining",
      summary: `is being deleted and still contains ${plural(kept.length, "object")} that ${kept.length === 1 ? "is" : "are"} kept (${[...kinds].slice(0, 6).join(", ")})`,
      follow: kept.toSorted((a, b) => b.finalizers.length - a.finalizers.length).map(({ ref }) => ref),
      ...sinceTime(object.metadata.deletionTimestamp),
    };
  },
  ({ object }) => {
    const failure = ["NamespaceDeletionContentFailure", "NamespaceDeletionGroupVersionParsingFailure"]
      .map((type) => conditionOf(object.status?.conditions, type))
      .find((condition) => condition?.status === "True");
    if (failure === undefined) return undefined;
    return {
      by: namespaceController,
      reason: failure.reason ?? "ContentDeletionFailed",
      summary: `is being deleted, but its content cannot be deleted: ${oneLine(failure.message)}`,
      remedy: "Fix the cause in the message; a common one is an admission webhook that rejects deletions.",
      ...sinceTime(failure.lastTransitionTime),
    };
  },
  ({ object, related: { remaining } }) => {
    const finalizers = (object.spec?.finalizers ?? []).filter((finalizer) => finalizer !== "kubernetes");
    const since = sinceTime(object.metadata.deletionTimestamp);
    if (finalizers.length > 0) {
      return {
        by: "explain",
        reason: "NamespaceFinalizer",
        summary: `is being deleted; finalizer ${finalizers.join(", ")} in its spec keeps it`,
        remedy:
          "Start the controller that removes the finalizer; if it is gone for good, remove it through the subresource finalize.",
        ...since,
      };
    }
    return {
      by: namespaceController,
      reason: "NamespaceTerminating",
      summary: `is being deleted: ${plural(remaining.length, "object")} left`,
      ...since,
    };
  },
];

export const namespaceKind = rulesFor<Namespace, NamespaceFacts>({
  gather,
  deletion,
  rules: [
    ({ related: { workloads } }) => ({
      by: "explain",
      reason: "ContentNotWell",
      summary: "an object in it is not healthy",
      follow: workloads,
      onlyIfFollowed: true,
    }),
  ],
});
