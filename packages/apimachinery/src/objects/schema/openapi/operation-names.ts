/**
 * Names of operations: operation IDs, from which generated clients derive method names, tags and summaries.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go, pkg/endpoints/openapi/openapi.go
 */
import type { OpenApiResource } from "./document.ts";

export type Verb =
  | "list"
  | "get"
  | "create"
  | "update"
  | "patch"
  | "delete"
  | "deletecollection"
  | "watch"
  | "watchlist"
  | "connect";

/** The target of an operation. */
export interface Target {
  readonly resource: OpenApiResource;
  /** `""` for the resource itself. */
  readonly subresource: string;
  /** A list or watch over all namespaces. */
  readonly everywhere?: boolean;
  /** HTTP method of a connect operation, capitalized, e.g. `Get`. */
  readonly method?: string;
  /** A connect operation with a path after the subresource. */
  readonly withPath?: boolean;
}

const words: Readonly<Record<Verb, { action: string; id: string; middle?: string; suffix?: string }>> = {
  list: { action: "list", id: "list" },
  get: { action: "get", id: "read" },
  create: { action: "post", id: "create" },
  update: { action: "put", id: "replace" },
  patch: { action: "patch", id: "patch" },
  delete: { action: "delete", id: "delete" },
  deletecollection: { action: "deletecollection", id: "delete", middle: "Collection" },
  watch: { action: "watch", id: "watch" },
  watchlist: { action: "watchlist", id: "watch", suffix: "List" },
  connect: { action: "connect", id: "connect" },
};

/** `x-kubernetes-action`. */
export function actionOf(verb: Verb): string {
  return words[verb].action;
}

/** `createAppsV1NamespacedDeployment`, `watchCoreV1PodListForAllNamespaces`, `connectCoreV1GetNodeProxyWithPath`. */
export function operationId(verb: Verb, target: Target): string {
  const { resource, everywhere } = target;
  const { id, middle = target.method ?? "", suffix = "" } = words[verb];
  const namespaced = resource.namespaced && !everywhere ? "Namespaced" : "";
  const scope = everywhere ? "ForAllNamespaces" : target.withPath ? "WithPath" : "";
  return `${id}${groupVersionWords(resource)}${middle}${namespaced}${resource.kind}${capital(target.subresource)}${suffix}${scope}`;
}

/** `read status of the specified Pod`. */
export function summaryOf(verb: Verb, { resource, subresource, method }: Target): string {
  const { kind } = resource;
  const of = subresource === "" ? "" : `${subresource} of `;
  switch (verb) {
    case "get":
      return `read ${of}the specified ${kind}`;
    case "list":
      return `list ${of === "" ? "or watch " : of}objects of kind ${kind}`;
    case "update":
      return `replace ${of}the specified ${kind}`;
    case "patch":
      return `partially update ${of}the specified ${kind}`;
    case "create":
      return `create ${of}${article(kind)}${kind}`;
    case "delete":
      return `delete ${of}${article(kind)}${kind}`;
    case "deletecollection":
      return `delete collection of ${kind}`;
    case "watch":
      return `watch one ${kind}; ${watchIsOld} and a field selector for its name`;
    case "watchlist":
      return `watch a list of ${kind}; ${watchIsOld}`;
    case "connect":
      return `connect ${(method ?? "").toUpperCase()} requests to ${subresource} of ${kind}`;
  }
}

const watchIsOld = "deprecated, use a list with the parameter 'watch'";

/** Indefinite article with a space; `""` for a plural. */
function article(noun: string): string {
  if (noun.endsWith("s") && !noun.endsWith("ss")) return "";
  return /^[aeiou]/i.test(noun) ? "an " : "a ";
}

/** `apps_v1`, `core_v1`. */
export function tagOf({ group, version }: { group: string; version: string }): string {
  return `${groupTag(group)}_${version}`;
}

/** `rbac.authorization.k8s.io` → `rbacAuthorization`; the core group is `core`. */
export function groupTag(group: string): string {
  if (group === "") return "core";
  const [first = "", ...rest] = group.replace(/\.k8s\.io$/, "").split(/[.-]/);
  return first + rest.map(capital).join("");
}

/** `RbacAuthorizationV1`. */
export function groupVersionWords({ group, version }: { group: string; version: string }): string {
  return capital(groupTag(group)) + capital(version);
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
