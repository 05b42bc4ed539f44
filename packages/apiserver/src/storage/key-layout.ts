import type { GroupResource } from "@coxswain/apimachinery/meta/group-version";

/**
 * Where things are in etcd, as upstream lays them out: `<prefix>/<folder>/<namespace>/<name>`.
 * The folder of a built-in resource is its plural name without the group (`/registry/deployments/web/front`); a few
 * older ones have names of their own, and custom resources, CRDs and API services have their group before them.
 * Source: pkg/kubeapiserver/default_storage_factory_builder.go SpecialDefaultResourcePrefixes;
 * k8s.io/apiserver pkg/server/storage/storage_factory.go ResourcePrefix, pkg/server/options/etcd.go
 */
export function storageFolder(resource: GroupResource & { storageFolder?: string }): string {
  if (resource.storageFolder !== undefined) return resource.storageFolder;
  const special = specialFolders.get(`${resource.resource}.${resource.group}`);
  if (special !== undefined) return special;
  return isBuiltInGroup(resource.group) ? resource.resource.toLowerCase() : `${resource.group}/${resource.resource}`;
}

/** Custom resources cannot have one of these groups. */
export function isBuiltInGroup(group: string): boolean {
  return builtInGroups.has(group) || group === "apiregistration.k8s.io" || group === "apiextensions.k8s.io";
}

/** Key of the resource's first object, without a name: `/registry/pods/`. */
export function folderPrefix(etcdPrefix: string, folder: string): string {
  return `${cleanPrefix(etcdPrefix)}/${folder}/`;
}

/** `registry`, `/registry/` and `/registry` mean the same. */
export function cleanPrefix(etcdPrefix: string): string {
  return "/" + etcdPrefix.split("/").filter(Boolean).join("/");
}

/** Ours: written to make the watch say how far it is. No folder, so no resource can have it. */
export const barrierKey = "coxswain-barrier";
/** Outside of the prefix: which revision was compacted last, shared by all API servers. */
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
  // Served through the aggregator's and the extension server's own options, which put the group first.
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
