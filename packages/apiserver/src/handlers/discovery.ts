/**
 * Discovery: `/api`, `/apis` and the documents below, generated from the served resources.
 * Source: k8s.io/apiserver pkg/endpoints/discovery, pkg/endpoints/installer.go
 */
import { createHash } from "node:crypto";
import { jsonMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { RequestContext } from "../request/context.ts";
import type { AggregatedApis } from "./env.ts";
import { checkAccept, methodNotAllowed, negotiate } from "./negotiation.ts";
import { send, writeObject } from "./response.ts";
import type { ServedResource, ServedResources } from "./served-resources.ts";
import { findSubresource, subresourceNames } from "./subresource.ts";

interface DiscoveryOptions {
  readonly rootPaths: () => readonly string[];
  readonly advertiseAddress: () => string;
  /** The gate StorageVersionHash. */
  readonly storageVersionHashes: boolean;
  /** All published groups including those of aggregated servers, in order. */
  readonly groups: () => readonly AnnouncedGroup[];
}

type AnnouncedGroup = ReturnType<AggregatedApis["groups"]>[number];

/** The groups of this server. */
export function ownGroups(resources: ServedResources): AnnouncedGroup[] {
  return resources
    .groups()
    .sort()
    .map((name) => ({ name, versions: resources.versions(name) }));
}

/** @returns false when the path is not a discovery path */
type Discovery = (ctx: RequestContext, parts: readonly string[]) => Promise<boolean>;

/** Documents are generated from the resources that are served at the time of the request. */
export function newDiscovery(resources: ServedResources, options: DiscoveryOptions): Discovery {
  const lists = new ResourceLists(resources, options);
  return async (ctx, rawParts) => {
    const parts = rawParts.at(-1) === "" ? rawParts.slice(0, -1) : rawParts;
    if (parts.length === 0) {
      await writePaths(ctx, resources, options);
      return true;
    }
    const document = documentFor(resources, options, lists, parts);
    if (document === undefined) return false;
    if (hasRoute(parts)) {
      if (ctx.exchange.method !== "GET") throw methodNotAllowed();
      checkAccept(ctx);
    }
    await writeObject(ctx, 200, document, negotiate(ctx, { transforms: false }));
    return true;
  };
}

/**
 * `/apis` and groups are served by upstream's aggregator, which has no routes: it ignores the method and negotiates by itself.
 */
const hasRoute = (parts: readonly string[]): boolean => parts[0] === "api" || parts.length > 2;

function documentFor(
  resources: ServedResources,
  options: DiscoveryOptions,
  lists: ResourceLists,
  parts: readonly string[],
): KubeObject | undefined {
  const [prefix, second, third, ...more] = parts;
  if (more.length > 0) return undefined;
  if (prefix === "api") {
    if (second === undefined) return apiVersions(resources, options.advertiseAddress());
    return third === undefined ? lists.get("", second) : undefined;
  }
  if (second === undefined) return groupList(options.groups());
  if (third === undefined) {
    const announced = options.groups().find(({ name }) => name === second);
    const versions = announced?.versions ?? resources.versions(second);
    return second === "" || versions.length === 0 ? undefined : group({ name: second, versions }, true);
  }
  return lists.get(second, third);
}

function apiVersions(resources: ServedResources, serverAddress: string): KubeObject {
  return document({
    kind: "APIVersions",
    versions: resources.versions(""),
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress }],
  });
}

function groupList(announced: readonly AnnouncedGroup[]): KubeObject {
  return document({ kind: "APIGroupList", apiVersion: "v1", groups: announced.map((one) => group(one, false)) });
}

function group({ name, versions: names }: AnnouncedGroup, alone: boolean): KubeObject {
  const versions = names.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return document({
    ...(alone ? { kind: "APIGroup", apiVersion: "v1" } : {}),
    name,
    versions,
    preferredVersion: versions[0],
  });
}

/** The lists of resources by group version, each made for its first request after a change of the served resources. */
class ResourceLists {
  readonly #resources: ServedResources;
  readonly #options: DiscoveryOptions;
  readonly #made = new Map<string, KubeObject>();
  #generation = -1;

  constructor(resources: ServedResources, options: DiscoveryOptions) {
    this.#resources = resources;
    this.#options = options;
  }

  /** @returns undefined when the group version is not served */
  get(group: string, version: string): KubeObject | undefined {
    if (!this.#resources.hasGroupVersion(group, version)) return undefined;
    if (this.#generation !== this.#resources.generation) this.#made.clear();
    this.#generation = this.#resources.generation;
    const id = `${group}/${version}`;
    const known = this.#made.get(id);
    if (known !== undefined) return known;
    const list = resourceList(this.#resources, this.#options, group, version);
    // Announced verbs change without a registration: those of a custom resource when its definition is being deleted.
    const isConstant = this.#resources
      .resources(group, version)
      .every(({ definition }) => definition.announcedVerbs === undefined);
    if (isConstant) this.#made.set(id, list);
    return list;
  }
}

/** The core group's lists have no apiVersion, for compatibility with clients older than API groups. */
function resourceList(
  resources: ServedResources,
  { storageVersionHashes }: DiscoveryOptions,
  groupName: string,
  version: string,
): KubeObject {
  const rows = resources
    .resources(groupName, version)
    .flatMap((served) => [
      resourceRow(served, storageVersionHashes),
      ...subresourceNames(served.definition).map((name) => subresourceRow(served, name)),
    ]);
  return document({
    kind: "APIResourceList",
    ...(groupName === "" ? {} : { apiVersion: "v1" }),
    groupVersion: formatGroupVersion({ group: groupName, version }),
    resources: rows.filter((row) => row !== undefined),
  });
}

function resourceRow(served: ServedResource, withHash: boolean): Record<string, unknown> | undefined {
  const { definition } = served;
  const virtual = definition.subresources?.[""];
  const verbs = definition.announcedVerbs?.() ?? [...(virtual?.verbs ?? definition.verbs)].sort();
  const { shortNames, categories } = definition;
  return {
    name: definition.resource,
    singularName: definition.custom === true ? definition.singular : "",
    namespaced: definition.namespaced,
    kind: definition.kind,
    verbs,
    ...(shortNames === undefined || shortNames.length === 0 ? {} : { shortNames }),
    ...(categories === undefined || categories.length === 0 ? {} : { categories }),
    ...(withHash && served.store !== undefined && { storageVersionHash: storageVersionHash(served) }),
  };
}

function subresourceRow(served: ServedResource, name: string): Record<string, unknown> | undefined {
  const subresource = findSubresource(served, name);
  if (subresource === undefined) return undefined;
  const { kind, verbs } = subresource;
  const own = kind.group === served.kind.group && kind.version === served.kind.version;
  return {
    name: `${served.definition.resource}/${name}`,
    singularName: "",
    namespaced: served.definition.namespaced,
    ...(own ? {} : { group: kind.group, version: kind.version }),
    kind: kind.kind,
    verbs: [...verbs].sort(),
  };
}

/** Lets clients detect changes of a resource's stored version. Source: pkg/endpoints/discovery/storageversionhash.go */
export function storageVersionHash(served: ServedResource): string {
  const { definition } = served;
  const stored = definition.storage ?? { group: definition.hubGroup ?? definition.group, version: definition.hub };
  const digest = createHash("sha256").update(`${stored.group}/${stored.version}/${definition.kind}`).digest();
  return digest.subarray(0, 8).toString("base64");
}

/** Discovery documents have no metadata, which the encoder's type requires. */
function document(fields: Record<string, unknown>): KubeObject {
  return fields as unknown as KubeObject; // cast: discovery documents have no metadata, and no reader of it
}

/** `/`: the list of all paths. */
async function writePaths(ctx: RequestContext, resources: ServedResources, options: DiscoveryOptions): Promise<void> {
  const paths = new Set<string>([
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/apis/",
    "/openapi/v2",
    "/openid/v1/jwks",
    "/version",
    ...options.rootPaths(),
  ]);
  for (const version of resources.versions("")) paths.add(`/api/${version}`);
  for (const { name, versions } of [...ownGroups(resources), ...options.groups()]) {
    paths.add(`/apis/${name}`);
    for (const version of versions) paths.add(`/apis/${name}/${version}`);
  }
  await send(ctx, 200, jsonMediaType, JSON.stringify({ paths: [...paths].sort() }, null, 2));
}
