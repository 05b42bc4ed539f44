/**
 * Routes requests to the handler of their verb. Paths below a served group version name a resource; the others are discovery,
 * version and OpenAPI, or not found.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go (which routes exist), go-restful (404 before 405)
 */
import {
  badRequest,
  genericServerResponse,
  notFound,
  StatusError,
  serviceUnavailable,
} from "@coxswain/apimachinery/objects/errors/status-error";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import type { SubresourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { newDiscovery, ownGroups } from "./discovery.ts";
import { type Call, type HandlerEnv, handlerGates } from "./env.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { countDeprecated } from "./metrics.ts";
import { checkAccept, methodNotAllowed, onlyJson } from "./negotiation.ts";
import { newOpenApi, openApiV3Paths } from "./openapi.ts";
import { checkFieldSelector, listOptions } from "./options.ts";
import { patch, patchTypeOf } from "./patch.ts";
import type { ServedResource } from "./served-resources.ts";
import { findSubresource, runObject, type ServedSubresource } from "./subresource.ts";
import { update } from "./update.ts";
import { writeVersion } from "./version.ts";
import { watch } from "./watch.ts";

/** Options beyond HandlerEnv; `rootPaths` are paths served elsewhere, for the index at `/`. */
interface RouterOptions extends Omit<HandlerEnv, "gates"> {
  readonly rootPaths?: () => readonly string[];
  /** Address of this server in `/api`: `10.0.0.1:6443`. */
  readonly advertiseAddress?: () => string;
}

/** @param known the resource that the path names, when the caller has looked it up in the same event-loop turn */
export type Router = (ctx: RequestContext, known?: ServedResource) => Promise<void>;

/** @returns a handler that throws a StatusError, which the filter chain writes */
export function newRouter(options: RouterOptions): Router {
  const env: HandlerEnv = { ...options, gates: handlerGates(options.services.featureEnabled) };
  const discovery = newDiscovery(env.resources, {
    rootPaths: () => [...(options.rootPaths?.() ?? []), ...openApiV3Paths(env)],
    advertiseAddress: options.advertiseAddress ?? (() => ""),
    storageVersionHashes: options.services.featureEnabled("StorageVersionHash"),
    groups: () => env.aggregated?.groups() ?? ownGroups(env.resources),
  });
  const openApi = newOpenApi(env);
  const { aggregated } = env;
  return async (ctx, known) => {
    if (aggregated !== undefined && aggregated.remote.size > 0) {
      const answered = aggregated.handle(ctx);
      if (answered !== undefined) return answered;
    }
    const { info } = ctx;
    // Without the gate, handlers do not see that the client accepts gzip.
    if (!env.gates.compressesResponses) delete ctx.exchange.headers["accept-encoding"];
    // Upstream has no route for such paths, whatever they name.
    if (info.path.startsWith("//") || info.path === "/apis//") return notFoundPage(env, ctx);
    if (info.isResourceRequest) {
      const served = known ?? env.resources.find(info.group, info.version, info.parts[0] ?? "");
      if (served !== undefined) return runRoute(env, ctx, served);
      if (env.resources.hasGroupVersion(info.group, info.version)) throw noSuchPath();
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

/** Whether upstream has go-restful routes for the group, which then handle all of its paths. Custom resources have none. */
function hasRoutes({ resources }: HandlerEnv, group: string): boolean {
  return resources
    .versions(group)
    .some((version) => resources.resources(group, version).some(({ definition }) => definition.custom !== true));
}

/**
 * Uses only the RequestInfo that was authorized and does not parse the URL again: a different reading would bypass authorization.
 */
function runRoute(env: HandlerEnv, ctx: RequestContext, served: ServedResource): Promise<void> {
  const { info } = ctx;
  const [resource = "", name = "", subresource = "", ...rest] = info.parts;
  if (info.legacyPrefix === "proxy") throw noSuchPath();
  const { definition } = served;
  const namespace = definition.namespaced ? info.namespace : "";
  if (definition.namespaced ? namespace === "" && name !== "" : !isClusterPath(info, name)) throw noSuchPath();
  if (ctx.exchange.method !== "GET" && ctx.exchange.url.includes("dryRun") && ctx.query.has("dryRun")) {
    if (!env.gates.allowsDryRun) throw badRequest("the dryRun feature is disabled");
  }
  const below = subresource === "" ? undefined : findSubresource(served, subresource);
  // Checked before metrics with the subresource's name are created. Upstream has no route for an unknown subresource, but
  // a NotFound for custom resources.
  if (subresource !== "" && below === undefined) throw definition.custom ? notFound(definition, name) : noSuchPath();
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

/** Cluster-scoped resources are not found below a namespace, except the namespace itself. */
function isClusterPath(info: RequestInfo, name: string): boolean {
  return info.namespace === "" || (info.resource === "namespaces" && info.group === "" && info.namespace === name);
}

/** The path behind a subresource, including slashes, which proxies forward. */
function restOfPath(info: RequestInfo, below: readonly string[]): string {
  const rest = below.length > 0 ? `/${below.map(encodePart).join("/")}` : "";
  return info.path.endsWith("/") && !rest.endsWith("/") ? `${rest}/` : rest;
}

function encodePart(part: string): string {
  return encodeURIComponent(part).replaceAll("%3A", ":").replaceAll("%40", "@").replaceAll("%2B", "+").replaceAll("%24", "$");
}

/** 404 when the resource has none of the path's verbs; a path with other verbs refuses the method instead. */
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
  return handler(call);
}

/** For paths whose handlers do not begin with `negotiateFor`. @throws UnsupportedMediaType, NotAcceptable */
function checkRoute(call: Call, kind: GroupVersionKind): void {
  if (call.served.definition.custom === true) return;
  if (call.ctx.exchange.method === "PATCH") patchTypeOf(call, kind);
  checkAccept(call.ctx);
}

/** `/api/v1/watch/namespaces/x/pods[/name]`: watches the collection, or one object by name. */
function runLegacyWatch(call: Call): Promise<void> {
  const { ctx, served, name } = call;
  if (ctx.exchange.method !== "GET") throw methodNotAllowed();
  if (call.subresource !== "" || !served.definition.verbs.includes("watch") || served.store === undefined) throw noSuchPath();
  checkRoute(call, served.kind);
  const options = listOptions(ctx.query, true);
  checkFieldSelector(served.definition, options.fields);
  return watch({ ...call, name: "" }, name === "" ? options : { ...options, fields: withName(options.fields, name) });
}

/** @throws BadRequest for a selector that does not select the object of the path */
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
/** Proxies, recognized by the verb delete, accept all methods; OPTIONS and HEAD map to get. */
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

/** Reviews and component statuses: not stored, the definition's handler responds. */
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
 * Plain text 404 outside of the served group versions, as upstream.
 * @throws ServiceUnavailable until all APIs are known: the garbage collector deletes objects whose owners' kinds are not found.
 * Source: k8s.io/apiserver pkg/util/notfoundhandler
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
