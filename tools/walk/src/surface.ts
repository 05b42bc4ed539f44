import { type Client, giveUpAfterMs } from "./client.ts";
import type { Definitions } from "./objects.ts";

/** A resource or subresource in one version, from discovery. */
export interface Resource {
  /** `/api/v1` or `/apis/apps/v1`. */
  readonly root: string;
  readonly group: string;
  readonly version: string;
  /** Plural name, such as `pods`. */
  readonly resource: string;
  /** `status`, or `""` for the resource itself. */
  readonly subresource: string;
  readonly kind: string;
  /** apiVersion of the kind; differs from the resource's for some subresources (Scale, Eviction). */
  readonly apiVersion: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

/** Resources, schemas and example objects of the server. */
export interface Surface {
  readonly resources: readonly Resource[];
  readonly definitions: Definitions;
  /** An existing object for each kind, by `apiVersion/kind`; the basis for valid input. */
  readonly examples: ReadonlyMap<string, object>;
  /** The same objects in protobuf, for kinds that support it. */
  readonly encoded: ReadonlyMap<string, Buffer>;
}

interface ResourceList {
  groupVersion: string;
  resources: { name: string; kind: string; group?: string; version?: string; namespaced: boolean; verbs: string[] }[];
}

interface Named {
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** @throws Error when discovery or the OpenAPI document is unavailable. */
export async function readSurface(client: Client): Promise<Surface> {
  const get = async <T>(path: string): Promise<T> => {
    const answer = await client.send({ method: "GET", path, headers: {}, cutAfterMs: giveUpAfterMs });
    if (answer.code !== 200 || answer.wasCut) throw new Error(`GET ${path}: ${answer.code} ${answer.text.slice(0, 200)}`);
    return JSON.parse(answer.text) as T; // cast: documents of the server under test, which is trusted here
  };
  const groups = await get<{ groups: { versions: { groupVersion: string }[] }[] }>("/apis");
  const roots = [
    "/api/v1",
    ...groups.groups.flatMap((group) => group.versions.map(({ groupVersion }) => `/apis/${groupVersion}`)),
  ];
  const lists = await Promise.all(roots.map(async (root) => ({ root, list: await get<ResourceList>(root) })));
  const resources = lists.flatMap(({ root, list }) =>
    list.resources.map((row): Resource => {
      const [version = "", group = ""] = list.groupVersion.split("/").toReversed();
      const [resource = "", subresource = ""] = row.name.split("/");
      const apiVersion = row.version ? [row.group, row.version].filter(Boolean).join("/") : list.groupVersion;
      return {
        ...{ root, group, version, resource, subresource, apiVersion },
        kind: row.kind,
        namespaced: row.namespaced,
        verbs: row.verbs,
      };
    }),
  );
  const { definitions } = await get<{ definitions: Definitions }>("/openapi/v2");
  const examples = new Map<string, object>();
  const encoded = new Map<string, Buffer>();
  for (const { root, resource, subresource, verbs, apiVersion, kind } of resources) {
    if (subresource !== "" || !verbs.includes("list")) continue;
    const [item] = (await get<{ items: Named[] }>(`${root}/${resource}?limit=1`)).items;
    if (item === undefined) continue;
    examples.set(`${apiVersion}/${kind}`, { apiVersion, kind, ...item });
    const { name, namespace } = item.metadata;
    const path = `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${resource}/${name}`;
    const answer = await client.send({ method: "GET", path, headers: { accept: "application/vnd.kubernetes.protobuf" } });
    if (answer.code === 200) encoded.set(`${apiVersion}/${kind}`, answer.bytes);
  }
  return { resources, definitions, examples, encoded };
}
