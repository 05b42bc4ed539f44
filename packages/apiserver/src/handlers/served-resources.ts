import { compareKubeVersions, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { FieldManager } from "@coxswain/apimachinery/objects/patch/apply/field-manager";
import type { RegistryStore, ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import type { RequestInfo } from "../request/request-info.ts";
import type { Framer } from "./watch-framer.ts";

/** One resource in one served version, as verb handlers use it. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersionDefinition;
  /** undefined for virtual resources (reviews), which store nothing. */
  readonly store: RegistryStore | undefined;
  /** The kind that clients of this version send and receive. */
  readonly kind: GroupVersionKind;
  /** The kind in the store and its entries. */
  readonly hubKind: GroupVersionKind;
  /** Whether the entry's own JSON is in this version. */
  readonly isHub: boolean;
  /** The field managers of its endpoints by subresource, `""` for its own; each is made for the first write. */
  readonly fieldManagers: Map<string, FieldManager>;
  /** Stores of its subresources, by name: its own store with another strategy. */
  readonly subresourceStores: Map<string, RegistryStore>;
  /** Encoders of watch events, by media type and form; shared by the watches of this version. */
  readonly watchFramers: Map<string, Framer>;
}

/**
 * The served resources: (group, version, resource) to definition and store. Filled at startup from the catalogue; custom
 * resources are added and removed at runtime.
 */
export interface ServedResources {
  /** Serves `definition` in one of its versions; replaces an existing registration. */
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
  /** Changes with every `add` and `remove`; invalidates data derived from the list. */
  readonly generation: number;
}

/** An empty registry. */
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
        fieldManagers: new Map(),
        subresourceStores: new Map(),
        watchFramers: new Map(),
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

/** @returns a lookup of the resource that a request names; undefined when it, or its subresource, is not served here */
export function servedLookup(resources: ServedResources): (info: RequestInfo) => ServedResource | undefined {
  return ({ group, version, resource, subresource }) => {
    const served = resources.find(group, version, resource);
    return served === undefined || subresource === "" || servesSubresource(served, subresource) ? served : undefined;
  };
}

/** Whether the definition lists the subresource, or its status strategy or scale paths imply it. */
export function servesSubresource({ definition, version }: ServedResource, name: string): boolean {
  const { subresources = {}, scale } = definition;
  if (Object.hasOwn(subresources, name)) return subresources[name]?.handler.type !== "scale" || scale !== undefined;
  if (name === "status") return definition.statusStrategy !== undefined && version.statusServed !== false;
  return name === "scale" && scale !== undefined;
}

/** autoscaling lists its two beta versions in ascending order; all other groups use the general order. */
function compareVersionsOf(group: string, a: string, b: string): number {
  if (group === "autoscaling" && a.startsWith("v2beta") && b.startsWith("v2beta")) return a < b ? -1 : 1;
  return compareKubeVersions(a, b);
}
