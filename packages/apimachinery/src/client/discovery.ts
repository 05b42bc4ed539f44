import { StatusError } from "../objects/errors/status-error.ts";
import { parseGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import { isJsonObject } from "../objects/meta/json-value.ts";
import type { Status } from "../objects/meta/types.ts";
import type { CallOptions, Client } from "./client.ts";
import { parseWire } from "./wire-json.ts";

/** A resource from the server's discovery. */
export interface DiscoveredResource extends ResourceRef {
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
}

export interface Discovered {
  readonly resources: readonly DiscoveredResource[];
  /** Group versions whose discovery failed (e.g. of an unavailable aggregated server); their resources are unknown. */
  readonly failed: readonly { readonly groupVersion: string; readonly error: unknown }[];
}

/**
 * Lists every resource once, at the preferred version of its group, or else at the next version that has it. Subresources are
 * left out.
 * @throws Error when the list of groups cannot be read
 * Source: client-go discovery.ServerPreferredResources
 */
export async function discoverPreferredResources(client: Client, options: CallOptions = {}): Promise<Discovered> {
  const groups = await discoverGroups(client, options);
  const wanted = groups.flatMap((group) => group.versions.map((version) => ({ group: group.name, version })));
  const failed: { groupVersion: string; error: unknown }[] = [];
  const lists = await Promise.all(
    wanted.map(async ({ group, version }) => {
      const groupVersion = group === "" ? version : `${group}/${version}`;
      try {
        return await discoverVersion(client, groupVersion, options);
      } catch (err) {
        if (!(err instanceof StatusError && err.code === 404)) failed.push({ groupVersion, error: err });
        return [];
      }
    }),
  );
  const seen = new Set<string>();
  const resources = lists.flat().filter((resource) => {
    const id = `${resource.group}/${resource.resource}`;
    return !seen.has(id) && seen.add(id) !== undefined;
  });
  return { resources, failed };
}

/** Groups with their versions, the preferred version first. */
export async function discoverGroups(client: Client, options: CallOptions = {}): Promise<{ name: string; versions: string[] }[]> {
  const [core, named] = await Promise.all([
    getJson<{ versions: string[] }>(client, "/api", options),
    getJson<GroupList>(client, "/apis", options),
  ]);
  const groups = named.groups.map((group) => {
    const preferred = group.preferredVersion?.version;
    const versions = group.versions.map(({ version }) => version);
    return {
      name: group.name,
      versions: [...versions.filter((v) => v === preferred), ...versions.filter((v) => v !== preferred)],
    };
  });
  return [{ name: "", versions: core.versions }, ...groups];
}

/** The resources of one group version, in the server's order. @param groupVersion `v1` or `apps/v1` */
async function discoverVersion(client: Client, groupVersion: string, options: CallOptions = {}): Promise<DiscoveredResource[]> {
  const served = parseGroupVersion(groupVersion);
  if (served === undefined) throw new Error(`not a group version: ${groupVersion}`);
  const path = served.group === "" ? `/api/${served.version}` : `/apis/${groupVersion}`;
  const { resources } = await getJson<ResourceList>(client, path, options);
  if (!resources) return []; // some servers write null for an empty list, metrics-server for example
  return resources
    .filter(({ name }) => !name.includes("/"))
    .map((resource) => ({
      group: served.group,
      version: served.version,
      resource: resource.name,
      kind: resource.kind,
      namespaced: resource.namespaced,
      verbs: resource.verbs ?? [],
      shortNames: resource.shortNames ?? [],
    }));
}

interface GroupList {
  groups: { name: string; versions: { version: string }[]; preferredVersion?: { version: string } }[];
}

interface ResourceList {
  resources?: { name: string; kind: string; namespaced: boolean; verbs: string[] | null; shortNames?: string[] }[] | null;
}

async function getJson<T>(client: Client, path: string, options: CallOptions): Promise<T> {
  const { status, body } = await client.raw("GET", path, options);
  const text = body.toString("utf8");
  if (status === 200) {
    const document = parseWire(text);
    if (!isJsonObject(document)) throw new Error(`GET ${path}: the answer is not a JSON object`);
    return document as T; // cast: an object; its fields are trusted to be those that discovery serves at the path
  }
  let parsed: Partial<Status> = {};
  try {
    parsed = parseWire(text) ?? {};
  } catch {
    // not a Status: only the HTTP code is known
  }
  const message = parsed.message ?? `GET ${path}: unexpected status ${status}`;
  throw new StatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", ...parsed, message, code: status });
}
