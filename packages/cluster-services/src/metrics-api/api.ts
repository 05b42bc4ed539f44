/** The answers of metrics.k8s.io: pure, from a path and what is known to a status and a body. */
import { methodNotSupported, notAcceptable, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { group, groupVersion, listOf, type NodeMetrics, nodeMetrics, type PodMetrics, podMetrics, tableOf } from "./objects.ts";
import { openApiDocument } from "./openapi.ts";
import type { UsageStore } from "./usage-store.ts";

/** What there is in the cluster; metrics of others are not shown. */
export interface Inventory {
  readonly nodes: { get(name: string): KubeObject | undefined; list(): readonly KubeObject[] };
  readonly pods: {
    get(key: string): KubeObject | undefined;
    list(): readonly KubeObject[];
    inNamespace(namespace: string): readonly KubeObject[];
  };
}

/** What a path names; undefined: nothing that is served. */
export type Target =
  | { readonly kind: "document"; readonly body: () => unknown }
  | {
      readonly kind: "resource";
      readonly resource: "nodes" | "pods";
      /** `""`: all, for pods. */
      readonly namespace: string;
      /** `""`: a list. */
      readonly name: string;
    };

const base = `/apis/${groupVersion}`;

/** @param path without query. @returns undefined for a path that is not served */
export function targetOf(path: string): Target | undefined {
  const document = documents[path.length > 1 ? path.replace(/\/$/, "") : path];
  if (document !== undefined) return { kind: "document", body: document };
  if (!path.startsWith(`${base}/`)) return undefined;
  const parts = decoded(path.slice(base.length + 1).split("/"));
  if (parts === undefined) return undefined;
  const [first, second = "", third, fourth = ""] = parts;
  if (first === "nodes" && parts.length <= 2) return { kind: "resource", resource: "nodes", namespace: "", name: second };
  if (first === "pods" && parts.length === 1) return { kind: "resource", resource: "pods", namespace: "", name: "" };
  if (first !== "namespaces" || third !== "pods" || second === "" || parts.length > 4) return undefined;
  return { kind: "resource", resource: "pods", namespace: second, name: fourth };
}

function decoded(parts: readonly string[]): string[] | undefined {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

const verbs = ["get", "list"];
const versions = [{ groupVersion, version: "v1beta1" }];
const apiGroup = { name: group, versions, preferredVersion: versions[0] };

const documents: Readonly<Record<string, () => unknown>> = {
  "/apis": () => ({ kind: "APIGroupList", apiVersion: "v1", groups: [apiGroup] }),
  [`/apis/${group}`]: () => ({ kind: "APIGroup", apiVersion: "v1", ...apiGroup }),
  [base]: () => ({
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion,
    resources: [
      { name: "nodes", singularName: "", namespaced: false, kind: "NodeMetrics", verbs },
      { name: "pods", singularName: "", namespaced: true, kind: "PodMetrics", verbs },
    ],
  }),
  "/openapi/v2": openApiDocument,
};

interface ResourceRequest {
  readonly target: Extract<Target, { kind: "resource" }>;
  readonly query: URLSearchParams;
  readonly accept: string;
}

/**
 * @returns a NodeMetrics or PodMetrics, a list of them, or a table
 * @throws StatusError: NotFound for what does not exist or has no metrics, MethodNotAllowed for a watch, BadRequest for a selector
 */
export function answerResource(
  { target, query, accept }: ResourceRequest,
  all: Inventory,
  store: Pick<UsageStore, "node" | "pod">,
  now: number,
): unknown {
  const { resource, namespace, name } = target;
  const form = formOf(accept);
  if (isTrue(query.get("watch"))) throw methodNotSupported({ group, resource }, "watch");
  const metricsOf = (object: KubeObject): (NodeMetrics | PodMetrics)[] => {
    const metadata = object.metadata;
    if (resource === "nodes") {
      const usage = store.node(metadata.name ?? "");
      return usage === undefined ? [] : [nodeMetrics(metadata, usage, now)];
    }
    const usage = store.pod(`${metadata.namespace}/${metadata.name}`);
    return usage === undefined ? [] : [podMetrics(metadata, usage, now)];
  };
  if (name !== "") {
    const key = resource === "nodes" ? name : `${namespace}/${name}`;
    const object = resource === "nodes" ? all.nodes.get(key) : all.pods.get(key);
    const [found] = object === undefined ? [] : metricsOf(object);
    if (found === undefined) throw notFound({ group, resource }, key);
    return form === "table" ? tableOf([found]) : found;
  }
  const isWanted = filterOf(query);
  const objects = resource === "nodes" ? all.nodes.list() : namespace === "" ? all.pods.list() : all.pods.inNamespace(namespace);
  const items = objects.filter(({ metadata }) => isWanted(metadata)).flatMap(metricsOf);
  items.sort((a, b) => compare(a.metadata.namespace, b.metadata.namespace) || compare(a.metadata.name, b.metadata.name));
  return form === "table" ? tableOf(items) : listOf(resource === "nodes" ? "NodeMetricsList" : "PodMetricsList", items);
}

const compare = (a = "", b = ""): number => (a < b ? -1 : a > b ? 1 : 0);
const isTrue = (value: string | null): boolean => value === "1" || value === "true" || value === "";

function filterOf(query: URLSearchParams): (metadata: ObjectMeta) => boolean {
  const labels = LabelSelector.parse(query.get("labelSelector") ?? "");
  const fields = FieldSelector.parse(query.get("fieldSelector") ?? "");
  return ({ name = "", namespace = "", labels: own }) =>
    labels.matches(own) && fields.matches({ "metadata.name": name, "metadata.namespace": namespace });
}

/** The first form in an Accept header that is served. @throws NotAcceptable */
function formOf(accept: string): "object" | "table" {
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    if (!["", "*/*", "application/*", "application/json"].includes(type)) continue;
    const as = parameters.find((parameter) => parameter.startsWith("as="))?.slice(3);
    if (as === undefined) return "object";
    if (as === "table" && parameters.includes("g=meta.k8s.io") && parameters.includes("v=v1")) return "table";
  }
  throw notAcceptable("only the following media types are accepted: application/json");
}
