import { compareKubeVersions, type GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import type { ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import type { RegistryStore } from "../registry/generic/store.ts";

/** One resource as it is served in one version; what every verb handler is given. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersionDefinition;
  /** undefined for virtual resources (reviews), which store nothing. */
  readonly store: RegistryStore | undefined;
  /** What clients of this version send and get. */
  readonly kind: GroupVersionKind;
  /** What the store and its entries hold. */
  readonly hubKind: GroupVersionKind;
  /** True when an entry's own JSON is already in this version. */
  readonly isHub: boolean;
}

/**
 * The resources this server answers for: (group, version, resource) → definition and store. Filled at start from the
 * catalogue; custom resources are added and removed while it runs.
 */
export interface ServedResources {
  /** Serves `definition` in one of its versions; replaces what was served there. */
  add(definition: ResourceDefinition, version: ResourceVersionDefinition, store: RegistryStore | undefined): void;
  remove(group: string, version: string, resource: string): void;
  find(group: string, version: string, resource: string): ServedResource | undefined;
  hasGroupVersion(group: string, version: string): boolean;
  /** Group names without the core group, unordered. */
  groups(): string[];
  /** Versions of a group, preferred first. */
  versions(group: string): string[];
  /** Resources of a group version, by name. */
  resources(group: string, version: string): ServedResource[];
  all(): ServedResource[];
  /** Changes with every `add` and `remove`; whoever derives something from the list compares it. */
  readonly generation: number;
}

export function newServedResources(): ServedResources {
  const groups = new Map<string, Map<string, Map<string, ServedResource>>>();
  let generation = 0;
  return {
    add(definition, version, store) {
      const versions = groups.getOrInsertComputed(definition.group, () => new Map<string, Map<string, ServedResource>>());
      const resources = versions.getOrInsertComputed(version.version, () => new Map<string, ServedResource>());
      const hubGroup = definition.hubGroup ?? definition.group;
      resources.set(definition.resource, {
        definition,
        version,
        store,
        kind: { group: definition.group, version: version.version, kind: definition.kind },
        hubKind: { group: hubGroup, version: definition.hub, kind: definition.kind },
        isHub: hubGroup === definition.group && definition.hub === version.version,
      });
      generation++;
    },
    remove(group, version, resource) {
      const versions = groups.get(group);
      const resources = versions?.get(version);
      if (versions === undefined || resources?.delete(resource) !== true) return;
      if (resources.size === 0) versions.delete(version);
      if (versions.size === 0) groups.delete(group);
      generation++;
    },
    find: (group, version, resource) => groups.get(group)?.get(version)?.get(resource),
    hasGroupVersion: (group, version) => groups.get(group)?.has(version) === true,
    groups: () => [...groups.keys()].filter((group) => group !== ""),
    versions: (group) => [...(groups.get(group)?.keys() ?? [])].sort((a, b) => compareVersionsOf(group, a, b)),
    resources: (group, version) =>
      [...(groups.get(group)?.get(version)?.values() ?? [])].sort((a, b) =>
        a.definition.resource < b.definition.resource ? -1 : 1,
      ),
    all: () => [...groups.values()].flatMap((versions) => [...versions.values()].flatMap((resources) => [...resources.values()])),
    get generation() {
      return generation;
    },
  };
}

/** autoscaling announces its two beta versions oldest first; every other group goes by the general order. */
function compareVersionsOf(group: string, a: string, b: string): number {
  if (group === "autoscaling" && a.startsWith("v2beta") && b.startsWith("v2beta")) return a < b ? -1 : 1;
  return compareKubeVersions(a, b);
}
