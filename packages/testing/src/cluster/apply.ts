import type { Client } from "@coxswain/apimachinery/client/client";
import { yamlDocuments } from "@coxswain/apimachinery/objects/codec/yaml";
import { parseGroupVersion, type ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Condition, KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { customResourceDefinitions } from "@coxswain/apimachinery/objects/schema/kinds/resources";

/** YAML with any number of documents, or objects. */
export type Manifests = string | KubeObject | readonly KubeObject[];

/** Kinds that other objects depend on are applied first. */
const firstKinds = ["Namespace", "CustomResourceDefinition", "ServiceAccount", "Secret", "ConfigMap"];

/** @throws Error that names the document which is not an object */
export function objectsOf(manifests: Manifests): readonly Unstructured[] {
  const given: readonly unknown[] = typeof manifests === "string" ? yamlDocuments(manifests) : [manifests].flat();
  const objects = given
    .filter((one) => one !== null && one !== undefined)
    .flatMap((one, index) => {
      const object = one as Unstructured & { readonly items?: readonly Unstructured[] };
      if (typeof object !== "object" || typeof object.kind !== "string" || typeof object.apiVersion !== "string") {
        throw new Error(`document ${index + 1} of the manifests is no Kubernetes object: it has no kind or apiVersion`);
      }
      return object.kind.endsWith("List") && object.items !== undefined ? object.items : [object];
    });
  const rank = ({ kind = "" }: Unstructured): number =>
    firstKinds.includes(kind) ? firstKinds.indexOf(kind) : firstKinds.length;
  return objects.toSorted((a, b) => rank(a) - rank(b));
}

export interface ApplyOptions {
  readonly namespace: string;
  readonly fieldManager: string;
  /** Waits until a condition on the cluster holds. */
  readonly waitFor: (what: string, isSo: () => Promise<boolean>) => Promise<unknown>;
}

/** Applies objects like `kubectl apply --server-side`; CustomResourceDefinitions are established before their objects are applied. */
export async function applyObjects(
  client: Client,
  objects: readonly Unstructured[],
  options: ApplyOptions,
): Promise<Unstructured[]> {
  const known = new Map<string, ResourceRef>();
  const applied: Unstructured[] = [];
  for (const object of objects) {
    const { metadata, kind = "", apiVersion = "" } = object;
    let ref = known.get(`${apiVersion}/${kind}`);
    if (ref === undefined) {
      ref = await resourceOf(client, apiVersion, kind);
      known.set(`${apiVersion}/${kind}`, ref);
    }
    const target = {
      name: metadata.name ?? "",
      namespace: ref.namespaced ? (metadata.namespace ?? options.namespace) : undefined,
    };
    const { fieldManager } = options;
    const result = await client.patch(ref, target, { type: "apply", body: object }, { force: true, fieldManager });
    applied.push(result);
    if (kind === "CustomResourceDefinition") {
      await options.waitFor(`the definition ${target.name} to be established`, () => isEstablished(client, target.name));
    }
  }
  return applied;
}

async function isEstablished(client: Client, name: string): Promise<boolean> {
  const definition = await client.get<Unstructured & { status?: { conditions?: Condition[] } }>(customResourceDefinitions, {
    name,
  });
  return definition.status?.conditions?.some(({ type, status }) => type === "Established" && status === "True") ?? false;
}

interface ServedList {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

/** The resource of a kind, from discovery. @throws Error for a kind that is not served */
async function resourceOf(client: Client, apiVersion: string, kind: string): Promise<ResourceRef> {
  const served = parseGroupVersion(apiVersion);
  if (served === undefined) throw new Error(`${JSON.stringify(apiVersion)} is no apiVersion`);
  const path = served.group === "" ? `/api/${served.version}` : `/apis/${apiVersion}`;
  const { status, body } = await client.raw("GET", path);
  const list: ServedList = status === 200 ? JSON.parse(body.toString("utf8")) : {};
  const found = list.resources?.find((one) => one.kind === kind && !one.name.includes("/"));
  if (found === undefined)
    throw new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`);
  return { ...served, resource: found.name, kind, namespaced: found.namespaced };
}
