/**
 * From a request's path and method to the handler of its verb. Paths below a served group version name a resource,
 * everything else is discovery, version, OpenAPI, or is not there.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go (which routes exist), go-restful (404 before 405)
 */
import { genericServerResponse } from "@coxswain/apimachinery/errors/status-error";
import type { SubresourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { newDiscovery } from "./discovery.ts";
import type { Call, HandlerEnv } from "./env.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { newOpenApi } from "./openapi.ts";
import { listOptions } from "./options.ts";
import { patch } from "./patch.ts";
import { findSubresource, runObject } from "./subresource.ts";
import { update } from "./update.ts";
import { writeVersion } from "./version.ts";
import { watch } from "./watch.ts";

export { newServedResources, type ServedResource, type ServedResources } from "./served-resources.ts";

/** Where a path leads; `version` and `group` are those of a served group version. */
interface Route {
  readonly group: string;
  readonly version: string;
  /** `/watch/…`, the old way to ask for a watch. */
  readonly legacyWatch: boolean;
  readonly namespace: string | undefined;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
  /** What follows the subresource, with its slash: proxies have it. */
  readonly rest: string;
}

/** Extra paths that other rooms serve, for the list at `/`. */
export interface RouterOptions extends HandlerEnv {
  readonly rootPaths?: () => readonly string[];
  /** Where clients reach this server, for `/api`: `10.0.0.1:6443`. */
  readonly advertiseAddress?: () => string;
}

export type Router = (ctx: RequestContext) => Promise<void>;

/** @returns a handler that throws a StatusError for the filter chain to write. */
export function newRouter(env: RouterOptions): Router {
  const discovery = newDiscovery(env.resources, {
    rootPaths: env.rootPaths ?? (() => []),
    advertiseAddress: env.advertiseAddress ?? (() => ""),
  });
  const openApi = newOpenApi(env.resources);
  return async (ctx) => {
    const { path } = ctx.info;
    // With the gate off nobody is asked whether the client could take gzip.
    if (!env.services.featureEnabled("APIResponseCompression")) delete ctx.exchange.headers["accept-encoding"];
    const parts = path.split("/").slice(1);
    if (parts[0] === "api" || parts[0] === "apis") {
      const route = routeOf(env, parts);
      if (route !== undefined) return runRoute(env, ctx, route);
      if (await discovery(ctx, parts)) return;
      return notFoundPage(ctx);
    }
    if (path === "/openapi/v2") return openApi(ctx);
    if (path === "/version" || path === "/version/") return writeVersion(ctx);
    if (path === "/" && (await discovery(ctx, []))) return;
    return notFoundPage(ctx);
  };
}

/** @returns undefined when the path does not go below a served group version. */
function routeOf(env: HandlerEnv, parts: readonly string[]): Route | undefined {
  const legacy = parts[0] === "api";
  const group = legacy ? "" : (parts[1] ?? "");
  const version = (legacy ? parts[1] : parts[2]) ?? "";
  // Already decoded, once: what was authorized is what is served.
  let rest = parts.slice(legacy ? 2 : 3);
  if (rest.length > 0 && rest[rest.length - 1] === "" && !isBelowSubresource(rest)) rest = rest.slice(0, -1);
  if (rest.length === 0 || !env.resources.hasGroupVersion(group, version) || (!legacy && group === "")) return undefined;
  const legacyWatch = rest[0] === "watch";
  if (legacyWatch) rest = rest.slice(1);
  let namespace: string | undefined;
  // `namespaces/x` alone, or with a subresource of namespaces, is the resource namespaces itself.
  if (rest[0] === "namespaces" && rest.length > 2 && !(group === "" && isNamespaceSubresource(env, version, rest))) {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const [resource = "", name = "", subresource = "", ...below] = rest;
  return {
    group,
    version,
    legacyWatch,
    namespace,
    resource,
    name,
    subresource,
    rest: below.length > 0 ? `/${below.map(encodePart).join("/")}` : "",
  };
}

function isBelowSubresource(rest: readonly string[]): boolean {
  return rest.includes("proxy");
}

function isNamespaceSubresource(env: HandlerEnv, version: string, rest: readonly string[]): boolean {
  if (rest.length !== 3) return false;
  const namespaces = env.resources.find("", version, "namespaces");
  return namespaces !== undefined && findSubresource(namespaces, rest[2] as string) !== undefined;
}

function encodePart(part: string): string {
  return encodeURIComponent(part).replaceAll("%3A", ":").replaceAll("%40", "@").replaceAll("%2B", "+").replaceAll("%24", "$");
}

function runRoute(env: HandlerEnv, ctx: RequestContext, route: Route): Promise<void> {
  const served = env.resources.find(route.group, route.version, route.resource);
  if (served === undefined) throw noSuchPath();
  const { definition } = served;
  if (definition.namespaced ? route.namespace === undefined && route.name !== "" : route.namespace !== undefined)
    throw noSuchPath();
  if (route.namespace === "" || route.name.includes("/") || (route.namespace ?? "").includes("/")) throw noSuchPath();
  const deprecation = served.version.deprecation;
  if (deprecation !== undefined) ctx.warn(deprecation);
  const call: Call = {
    env,
    ctx,
    served,
    namespace: route.namespace ?? "",
    name: route.name,
    subresource: route.subresource,
  };
  if (route.legacyWatch) return runLegacyWatch(call);
  if (route.subresource !== "") return runSubresource(call, route);
  const virtual = definition.subresources?.[""];
  if (virtual !== undefined) return runVirtual(call, virtual);
  return route.name === "" ? runCollection(call) : runNamed(call);
}

function runCollection(call: Call): Promise<void> {
  const { method } = call.ctx.exchange;
  const everywhere = call.served.definition.namespaced && call.namespace === "";
  switch (method) {
    case "GET":
      return allowed(call, "list", list);
    case "POST":
      return allowed(call, everywhere ? undefined : "create", create);
    case "DELETE":
      return allowed(call, everywhere ? undefined : "deletecollection", deleteCollection);
    default:
      throw methodNotAllowed();
  }
}

function runNamed(call: Call): Promise<void> {
  switch (call.ctx.exchange.method) {
    case "GET":
      return allowed(call, "get", get);
    case "PUT":
      return allowed(call, "update", update);
    case "PATCH":
      return allowed(call, "patch", patch);
    case "DELETE":
      return allowed(call, "delete", remove);
    default:
      throw methodNotAllowed();
  }
}

function allowed(call: Call, verb: string | undefined, handler: (call: Call) => Promise<void>): Promise<void> {
  if (verb === undefined || !call.served.definition.verbs.includes(verb)) throw methodNotAllowed();
  if (call.served.store === undefined) throw methodNotAllowed();
  return handler(call);
}

/** `/api/v1/watch/namespaces/x/pods[/name]`: a watch of the collection, or of one object by its name. */
function runLegacyWatch(call: Call): Promise<void> {
  const { ctx, served, name } = call;
  if (ctx.exchange.method !== "GET") throw methodNotAllowed();
  if (call.subresource !== "" || !served.definition.verbs.includes("watch") || served.store === undefined) throw noSuchPath();
  if (name !== "") {
    const selector = ctx.query.get("fieldSelector");
    ctx.query.set("fieldSelector", selector ? `${selector},metadata.name=${name}` : `metadata.name=${name}`);
  }
  return watch({ ...call, name: "" }, listOptions(ctx.query, true));
}

const verbOfMethod: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
/** Proxies take every method; on the wire OPTIONS and HEAD count as get. */
const connectVerb: Readonly<Record<string, string>> = { ...verbOfMethod, HEAD: "get", OPTIONS: "get" };

function runSubresource(call: Call, route: Route): Promise<void> {
  if (route.name === "") throw noSuchPath();
  const subresource = findSubresource(call.served, route.subresource);
  if (subresource === undefined) throw noSuchPath();
  const definition = call.served.definition.subresources?.[route.subresource];
  const connects = definition?.handler.type === "connect";
  if (route.rest !== "" && !connects) throw noSuchPath();
  const { method } = call.ctx.exchange;
  const verb = (connects ? connectVerb : verbOfMethod)[method];
  if (verb === undefined || !subresource.verbs.includes(verb)) throw methodNotAllowed();
  return subresource.run(call, verb, route.rest);
}

/** Reviews and component statuses: nothing is stored, the definition answers. */
function runVirtual(call: Call, virtual: SubresourceDefinition): Promise<void> {
  const { method } = call.ctx.exchange;
  const verb = call.name === "" ? (method === "GET" ? "list" : method === "POST" ? "create" : undefined) : verbOfMethod[method];
  if (verb === undefined || !virtual.verbs.includes(verb) || (call.name !== "" && verb === "create")) throw methodNotAllowed();
  const kind = { ...(virtual.kindGroupVersion ?? call.served.kind), kind: virtual.kind };
  return runObject(call, verb, virtual, { group: kind.group, version: kind.version, kind: kind.kind });
}

function noSuchPath(): Error {
  return genericServerResponse(404, "", { group: "", resource: "" }, "", "", 0, false);
}

function methodNotAllowed(): Error {
  return genericServerResponse(405, "", { group: "", resource: "" }, "", "", 0, false);
}

/** Outside the served group versions upstream answers with plain text. */
function notFoundPage(ctx: RequestContext): void {
  ctx.exchange.respond(
    404,
    { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
    "404 page not found\n",
  );
}
