import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";

/**
 * The folder of a resource below the etcd prefix; keys are `<prefix>/<folder>/<namespace>/<name>`, as upstream lays them out.
 * The folder of a built-in resource is its plural name without the group (`/registry/deployments/web/front`). A few older
 * resources have special names. Custom resources, CRDs and API services are prefixed by their group.
 * Source: pkg/kubeapiserver/default_storage_factory_builder.go SpecialDefaultResourcePrefixes;
 * k8s.io/apiserver pkg/server/storage/storage_factory.go ResourcePrefix, pkg/server/options/etcd.go
 */
export function storageFolder(resource: GroupResource & { storageFolder?: string }): string {
  if (resource.storageFolder !== undefined) return resource.storageFolder;
  const special = specialFolders.get(`${resource.resource}.${resource.group}`);
  if (special !== undefined) return special;
  return isBuiltInGroup(resource.group) ? resource.resource.toLowerCase() : `${resource.group}/${resource.resource}`;
}

/** Whether `group` is served by the API server itself; custom resources cannot use it. */
export function isBuiltInGroup(group: string): boolean {
  return builtInGroups.has(group) || group === "apiregistration.k8s.io" || group === "apiextensions.k8s.io";
}

/** Common prefix of the keys of a resource: `/registry/pods/`. */
export function folderPrefix(etcdPrefix: string, folder: string): string {
  return `${cleanPrefix(etcdPrefix)}/${folder}/`;
}

/** Normalizes the prefix: `registry`, `/registry/` and `/registry` are equivalent. */
export function cleanPrefix(etcdPrefix: string): string {
  return "/" + etcdPrefix.split("/").filter(Boolean).join("/");
}

/**
 * Not an upstream key. Written to obtain a watch event at a known revision. It has no folder, so it
 * cannot collide with a resource.
 */
export const barrierKey = "coxswain-barrier";
/** Outside the prefix: the last compacted revision, shared by all API servers. */
export const compactRevisionKey = "compact_rev_key";

const specialFolders = new Map<string, string>([
  ["replicationcontrollers.", "controllers"],
  ["endpoints.", "services/endpoints"],
  ["services.", "services/specs"],
  ["nodes.", "minions"],
  ["ingresses.extensions", "ingress"],
  ["ingresses.networking.k8s.io", "ingress"],
  ["podsecuritypolicies.extensions", "podsecuritypolicy"],
  ["podsecuritypolicies.policy", "podsecuritypolicy"],
  // Upstream stores these through the options of the aggregator and the extension server, which put the group first.
  ["apiservices.apiregistration.k8s.io", "apiregistration.k8s.io/apiservices"],
  ["customresourcedefinitions.apiextensions.k8s.io", "apiextensions.k8s.io/customresourcedefinitions"],
]);

const builtInGroups = new Set([
  "",
  "admissionregistration.k8s.io",
  "apps",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "extensions",
  "flowcontrol.apiserver.k8s.io",
  "internal.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
]);
