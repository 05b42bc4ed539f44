import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { formatGroupVersion, type GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { ResourceDefinition, ResourceVersionDefinition } from "./generic/resource.ts";

/** Conversion between the versions of built-in resources. */
interface Conversions {
  /**
   * @param object in any current or former version, in canonical form; owned by the conversion from now on
   * @returns the object in version `to`, in canonical form, without defaults
   * @throws Error for an unknown kind, and for a version that the kind does not have
   */
  convert(object: KubeObject, to: GroupVersion): KubeObject;
}

interface Version {
  readonly apiVersion: string;
  readonly definition: ResourceVersionDefinition;
  /** Versions with the same hub belong to the same kind, even in different groups. */
  readonly hub: string;
}

/** Conversions between all current and former versions of these resources, also across groups that share a hub. */
export function conversionsOf(resources: readonly ResourceDefinition[]): Conversions {
  const versions = new Map<string, Version>();
  for (const resource of resources) {
    const { group, kind } = resource;
    const hub = formatGroupVersion({ group: resource.hubGroup ?? group, version: resource.hub });
    for (const definition of [...resource.versions, ...(resource.formerVersions ?? [])]) {
      const apiVersion = formatGroupVersion({ group, ...definition });
      const key = `${apiVersion} ${kind}`;
      if (!versions.has(key)) versions.set(key, { apiVersion, definition, hub: `${hub} ${kind}` });
    }
  }
  const find = (apiVersion: string, kind: string): Version | undefined => versions.get(`${apiVersion} ${kind}`);
  const alike = (hub: string): string[] => [...versions.values()].filter((v) => v.hub === hub).map((v) => v.apiVersion);

  return {
    convert(object, to) {
      const { apiVersion = "", kind = "" } = object;
      const wanted = formatGroupVersion(to);
      if (apiVersion === wanted) return object;
      const source = find(apiVersion, kind);
      const target = find(wanted, kind);
      if (source === undefined) throw new Error(`${apiVersion} ${kind} cannot be converted`);
      if (target === undefined || target.hub !== source.hub) {
        throw new Error(`${kind} has no version ${wanted}: it has ${alike(source.hub).join(", ")}`);
      }
      const hub = source.definition.toHub?.(object) ?? object;
      const converted = target.definition.fromHub?.(hub) ?? hub;
      const named = { ...converted, apiVersion: wanted, kind };
      const type = scheme.kind({ ...to, kind });
      return type === undefined ? named : coerce(named, type);
    },
  };
}
