/**
 * From a request's path and method to the handler of its verb. Paths below a served group version name a resource,
 * everything else is discovery, version, OpenAPI, or is not there.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go (which routes exist), go-restful (404 before 405)
 */
import {
  badRequest,
  genericServerResponse,
  notFound,
  StatusError,
  serviceUnavailable,
} from "@coxswain/apimachinery/errors/status-error";
import type { GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { SubresourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { newDiscovery, ownGroups } from "./discovery.ts";
import type { Call, HandlerEnv } from "./env.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { countDeprecated } from "./metrics.ts";
import { newOpenApi, openApiV3Paths } from "./openapi.ts";
import { checkFieldSelector, listOptions } from "./options.ts";
import { patch, patchTypeOf } from "./patch.ts";
import { checkAccept, methodNotAllowed, onlyJson } from "./route-types.ts";
import { findSubresource, runObject, type ServedSubresource } from "./subresource.ts";
import { update } from "./update.ts";
import { writeVersion } from "./version.ts";
import { watch } from "./watch.ts";

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
    rootPaths: () => [...(env.rootPaths?.() ?? []), ...openApiV3Paths(env)],
    advertiseAddress: env.advertiseAddress ?? (() => ""),
    storageVersionHashes: env.services.featureEnabled("StorageVersionHash"),
    groups: () => env.aggregated?.groups() ?? ownGroups(env.resources),
  });
  const openApi = newOpenApi(env);
  return async (ctx) => {
    const { info } = ctx;
    // With the gate off nobody is asked whether the client could take gzip.
    if (!env.services.featureEnabled("APIResponseCompression")) delete ctx.exchange.headers["accept-encoding"];
    // Whatever it would name: upstream has no route for it.
    if (info.path.startsWith("//") || info.path === "/apis//") return notFoundPage(env, ctx);
    if (info.isResourceRequest) {
      if (env.resources.hasGroupVersion(info.group, info.version)) return runRoute(env, ctx);
      if (hasRoutes(env, info.group)) throw noSuchPath();
      return notFoundPage(env, ctx);
    }
    const parts = info.path.split("/").filter((part) => part !== "");
    if (parts[0] === "openapi" && !info.path.endsWith("/") && (await openApi(ctx, parts))) return;
    if (parts[0] === "version" && parts.length === 1) {
      if (ctx.exchange.method !== "GET") throw methodNotAllowed();
      checkAccept(ctx, onlyJson);
      return writeVersion(ctx);
    }
    if ((parts.length === 0 || parts[0] === "api" || parts[0] === "apis") && (await discovery(ctx, parts))) return;
    if (parts[0] === "api" || (parts[0] === "apis" && hasRoutes(env, parts[1] ?? ""))) throw noSuchPath();
    return notFoundPage(env, ctx);
  };
}

/** Whether upstream has routes for the group, which answer for all of its paths; those of custom resources have none. */
function hasRoutes({ resources }: HandlerEnv, group: string): boolean {
  return resources
    .versions(group)
    .some((version) => resources.resources(group, version).some(({ definition }) => definition.itemsKeepKind !== true));
}

/**
 * Everything is taken from the RequestInfo that was authorized, and nothing is read from the URL a second time: two
 * readings that differ would let a request through that nobody allowed.
 */
function runRoute(env: HandlerEnv, ctx: RequestContext): Promise<void> {
  const { info } = ctx;
  const [resource = "", name = "", subresource = "", ...rest] = info.parts;
  const served = env.resources.find(info.group, info.version, resource);
  if (served === undefined || info.legacyPrefix === "proxy") throw noSuchPath();
  const { definition } = served;
  const namespace = definition.namespaced ? info.namespace : "";
  if (definition.namespaced ? namespace === "" && name !== "" : !isClusterPath(info, name)) throw noSuchPath();
  if (ctx.exchange.method !== "GET" && ctx.exchange.url.includes("dryRun") && ctx.query.has("dryRun")) {
    if (!env.services.featureEnabled("DryRun")) throw badRequest("the dryRun feature is disabled");
  }
  const below = subresource === "" ? undefined : findSubresource(served, subresource);
  // Before anything is counted under its name; what custom resources lack has no route, but a name.
  if (subresource !== "" && below === undefined) throw definition.itemsKeepKind ? notFound(definition, name) : noSuchPath();
  const deprecation = served.version.deprecation;
  if (deprecation !== undefined) {
    ctx.warn(deprecation);
    ctx.audit?.annotate("k8s.io/deprecated", "true");
    const removed = /unavailable in v(\d+\.\d+)/.exec(deprecation)?.[1];
    if (removed !== undefined) ctx.audit?.annotate("k8s.io/removed-release", removed);
    if (env.metrics !== undefined) countDeprecated(env.metrics, { ...info, resource, subresource }, removed ?? "");
  }
  const call: Call = { env, ctx, served, namespace, name, subresource };
  if (info.legacyPrefix === "watch") return runLegacyWatch(call);
  if (below !== undefined) return runSubresource(call, below, restOfPath(info, rest));
  const virtual = definition.subresources?.[""];
  if (virtual !== undefined) return runVirtual(call, virtual);
  return name === "" ? runCollection(call) : runNamed(call);
}

/** A cluster-scoped resource is not found below a namespace; a namespace itself has its own name there. */
function isClusterPath(info: RequestInfo, name: string): boolean {
  return info.namespace === "" || (info.resource === "namespaces" && info.group === "" && info.namespace === name);
}

/** What follows a subresource, with its slash and the one at the end: proxies pass it on. */
function restOfPath(info: RequestInfo, below: readonly string[]): string {
  const rest = below.length > 0 ? `/${below.map(encodePart).join("/")}` : "";
  return info.path.endsWith("/") && !rest.endsWith("/") ? `${rest}/` : rest;
}

function encodePart(part: string): string {
  return encodeURIComponent(part).replaceAll("%3A", ":").replaceAll("%40", "@").replaceAll("%2B", "+").replaceAll("%24", "$");
}

/** A path that no verb of the resource has is not there; one that has others refuses the method. */
function pathOfVerbs({ served }: Call, verbs: readonly string[]): void {
  if (!verbs.some((verb) => served.definition.verbs.includes(verb))) throw noSuchPath();
}

function runCollection(call: Call): Promise<void> {
  const { method } = call.ctx.exchange;
  const everywhere = call.served.definition.namespaced && call.namespace === "";
  pathOfVerbs(call, everywhere ? ["list"] : ["list", "create", "deletecollection"]);
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
  pathOfVerbs(call, ["get", "update", "patch", "delete"]);
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
  const refusal = call.served.definition.refusal?.(verb);
  if (refusal !== undefined) throw refusal;
  checkRoute(call, call.served.kind);
  return handler(call);
}

/** @throws UnsupportedMediaType, NotAcceptable; of a kind without a schema (custom resources) the handlers see to that. */
function checkRoute(call: Call, kind: GroupVersionKind): void {
  if (call.served.definition.itemsKeepKind === true) return;
  if (call.ctx.exchange.method === "PATCH") patchTypeOf(call, kind);
  checkAccept(call.ctx);
}

/** `/api/v1/watch/namespaces/x/pods[/name]`: a watch of the collection, or of one object by its name. */
function runLegacyWatch(call: Call): Promise<void> {
  const { ctx, served, name } = call;
  if (ctx.exchange.method !== "GET") throw methodNotAllowed();
  if (call.subresource !== "" || !served.definition.verbs.includes("watch") || served.store === undefined) throw noSuchPath();
  checkRoute(call, served.kind);
  const options = listOptions(ctx.query, true);
  checkFieldSelector(served.definition, options.fields);
  return watch({ ...call, name: "" }, name === "" ? options : { ...options, fields: withName(options.fields, name) });
}

/** @throws BadRequest for a selector that asks for more, or others, than the one object of the path. */
function withName(fields: FieldSelector, name: string): FieldSelector {
  if (fields.empty) return FieldSelector.fromSet({ "metadata.name": name });
  if (fields.requiresExact("metadata.name") === name) return fields;
  throw badRequest("fieldSelector metadata.name doesn't match requested name");
}

const verbOfMethod: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
/** Proxies, which can delete, take every method; on the wire OPTIONS and HEAD count as get. */
const proxyVerb: Readonly<Record<string, string>> = { ...verbOfMethod, HEAD: "get", OPTIONS: "get" };

function runSubresource(call: Call, subresource: ServedSubresource, rest: string): Promise<void> {
  const definitions = call.served.definition.subresources ?? {};
  const connects = Object.hasOwn(definitions, call.subresource) && definitions[call.subresource]?.handler.type === "connect";
  const isProxy = connects && subresource.verbs.includes("delete");
  if (rest !== "" && rest !== "/" && !isProxy) throw noSuchPath();
  const { method } = call.ctx.exchange;
  const verb = (isProxy ? proxyVerb : verbOfMethod)[method];
  if (verb === undefined || !subresource.verbs.includes(verb)) throw methodNotAllowed();
  if (!connects) checkRoute(call, subresource.kind);
  return subresource.run(call, verb, rest);
}

/** Reviews and component statuses: nothing is stored, the definition answers. */
function runVirtual(call: Call, virtual: SubresourceDefinition): Promise<void> {
  const { method } = call.ctx.exchange;
  const everywhere = call.served.definition.namespaced && call.namespace === "";
  pathOfVerbs(call, call.name !== "" ? ["get"] : everywhere ? ["list"] : ["list", "create"]);
  const verb = call.name === "" ? (method === "GET" ? "list" : method === "POST" ? "create" : undefined) : verbOfMethod[method];
  if (verb === undefined || !virtual.verbs.includes(verb) || (call.name !== "" && verb === "create")) throw methodNotAllowed();
  const kind = { ...(virtual.kindGroupVersion ?? call.served.kind), kind: virtual.kind };
  checkRoute(call, kind);
  return runObject(call, verb, virtual, { group: kind.group, version: kind.version, kind: kind.kind });
}

function noSuchPath(): Error {
  return genericServerResponse(404, "", { group: "", resource: "" }, "", "", 0, false);
}

/**
 * Outside the served group versions upstream answers with plain text.
 * @throws ServiceUnavailable while it is not known yet what is served: clients take a 404 for the truth, and the garbage
 *   collector deletes by it. Source: k8s.io/apiserver pkg/util/notfoundhandler
 */
function notFoundPage({ aggregated }: HandlerEnv, ctx: RequestContext): void {
  if (aggregated?.synced === false) {
    const { status } = serviceUnavailable(
      "the request has been made before all known HTTP paths have been installed, please try again",
    );
    throw new StatusError({ ...status, details: { retryAfterSeconds: 5 } });
  }
  ctx.exchange.respond(
    404,
    { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
    "404 page not found\n",
  );
}
