import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { hasManyValues } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { tableOf } from "./cells.ts";
import { droppingDisabledFields } from "./disabled-fields.ts";
import type {
  FormerVersionDefinition,
  ResourceDefinition,
  ResourceVersionDefinition,
  ScalePaths,
  SubresourceDefinition,
} from "./generic/resource.ts";
import type { Strategy, TableColumns } from "./generic/strategy.ts";

/** A resource as declared in a `group.ts`; `inGroup` fills in the defaults. */
export interface ResourceRow {
  readonly resource: string;
  readonly kind: string;
  /** Default: `<Kind>List`. */
  readonly listKind?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Default: all eight verbs. */
  readonly verbs?: readonly string[];
  readonly namespaced: boolean;
  /** Served versions, preferred first. A string is a version without defaults or conversion. */
  readonly versions: readonly (string | ResourceVersionDefinition)[];
  /** Default: the first version. */
  readonly hub?: string;
  readonly hubGroup?: string;
  readonly storage?: { readonly group: string; readonly version: string };
  readonly formerVersions?: readonly FormerVersionDefinition[];
  readonly storageFolder?: string;
  readonly strategy?: Strategy;
  readonly statusStrategy?: Strategy;
  readonly scale?: ScalePaths;
  readonly table?: TableColumns;
  selectableFields?(object: KubeObject): Record<string, string>;
  readonly unknownFieldText?: (field: string) => string;
  readonly cacheIndexes?: readonly string[];
  readonly ttlSeconds?: (flags: { eventTtlSeconds: number }) => number;
  readonly subresources?: Readonly<Record<string, SubresourceDefinition>>;
  readonly returnDeletedObject?: boolean;
}

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;
/** Verbs of resources without deletecollection. */
export const verbsWithoutDeleteCollection = ["create", "delete", "get", "list", "patch", "update", "watch"] as const;

/** Resource definitions of one API group. */
export function inGroup(group: string, rows: readonly ResourceRow[]): ResourceDefinition[] {
  return rows.map((row) => {
    const named = row.versions.map((version) => (typeof version === "string" ? { version } : version));
    const hub = { group: row.hubGroup ?? group, version: row.hub ?? named[0]!.version, kind: row.kind };
    const versions = named.map((version) => canonicalVersion(version, { ...hub, group, version: version.version }, hub));
    const definition: ResourceDefinition = {
      ...row,
      ...droppingDisabledFields(group === "" ? row.resource : `${row.resource}.${group}`, row),
      group,
      listKind: row.listKind ?? `${row.kind}List`,
      singular: "", // discovery of 1.23 leaves it empty for built-in resources
      verbs: row.verbs ?? allVerbs,
      versions,
      hub: hub.version,
      table: row.table ?? nameAndCreated,
    };
    if (row.formerVersions === undefined) return definition;
    const formerVersions = row.formerVersions.map((version) =>
      canonicalVersion(version, { ...hub, group: version.group ?? group, version: version.version }, hub),
    );
    return { ...definition, formerVersions };
  });
}

/**
 * Wraps the conversions of a version so that their input and output are in canonical form and they need not handle nulls and
 * empty fields.
 */
function canonicalVersion<V extends ResourceVersionDefinition>(version: V, own: GroupVersionKind, hub: GroupVersionKind): V {
  const { toHub, fromHub } = version;
  const toHubInSteps = toHub === undefined ? undefined : conversion(own, toHub, hub);
  const fromHubInSteps = fromHub === undefined ? undefined : conversion(hub, fromHub, own);
  return {
    ...version,
    ...(toHubInSteps && { toHubInSteps, toHub: (object: KubeObject) => atOnce(toHubInSteps(object)) }),
    ...(fromHubInSteps && { fromHubInSteps, fromHub: (object: KubeObject) => atOnce(fromHubInSteps(object)) }),
  };
}

/** Parts of metadata that are alike in all versions. They may be as large as a request, and decoded objects have them in canonical form. */
const unconverted = ["labels", "finalizers", "ownerReferences", "managedFields"] as const;

function conversion(
  from: GroupVersionKind,
  convert: (object: KubeObject) => KubeObject,
  to: GroupVersionKind,
): (object: KubeObject) => Steps<KubeObject> {
  return function* (object) {
    const metadata = { ...object.metadata };
    const kept: Partial<ObjectMeta> = {};
    for (const name of unconverted) {
      if (metadata[name] === undefined) continue;
      Object.assign(kept, { [name]: metadata[name] });
      delete metadata[name];
    }
    const converted = { ...object, metadata };
    const isLarge = hasManyValues(converted);
    if (isLarge) yield;
    const source = canonicalAs(from, converted);
    if (isLarge) yield;
    const target = convert(source);
    if (isLarge) yield;
    const result = canonicalAs(to, target);
    Object.assign(result.metadata, kept);
    return result;
  };
}

function canonicalAs(kind: GroupVersionKind, object: KubeObject): KubeObject {
  const type = scheme.kind(kind);
  return type === undefined ? object : coerce(object, type);
}

/** Columns of kinds without their own. Source: pkg/registry/rest/table.go */
export const nameAndCreated = tableOf<KubeObject>("default", ({ metadata }) => [
  metadata.name ?? "",
  metadata.creationTimestamp ?? null,
]);
