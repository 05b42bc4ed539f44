import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { SubresourceHandler } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { admissionAttributes } from "./admission.ts";
import type { Call } from "./env.ts";
import { subresourceCall } from "./subresource-call.ts";

/**
 * log, exec, attach, portforward, proxy: the resource's handler determines the target, `node-proxy/` transfers the data.
 * Admission gets CONNECT with the options object built from the query.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/rest.go, ConnectResource
 */
export async function connect(
  call: Call,
  handler: Extract<SubresourceHandler, { type: "connect" }>,
  kind: GroupVersionKind,
  rest: string,
): Promise<void> {
  const { ctx, served, env } = call;
  if (call.subresource !== "log") {
    if (ctx.query.has("dryRun")) throw badRequest("dryRun is not supported");
    const attributes = admissionAttributes(call, "CONNECT", connectOptions(ctx.query, kind, rest), undefined, {
      dryRun: false,
      kind,
    });
    await env.admission.mutate(attributes);
    await env.admission.validate(attributes);
  }
  const options = { dryRun: false, fieldManager: "", fieldValidation: "Ignore", force: undefined } as const;
  const target = await handler.connect(subresourceCall(call, undefined, options), rest);
  if (target === undefined) return ctx.exchange.respond(204, {});
  if (target.as === "proxy" && rest === "" && isBrowsing(ctx)) return redirectToSlash(ctx);
  await env.nodeProxy.forward(ctx, target, {
    group: served.definition.group,
    resource: served.definition.resource,
    name: call.name,
  });
}

function isBrowsing({ exchange: { method, upgrade } }: RequestContext): boolean {
  return (method === "GET" || method === "HEAD") && upgrade === undefined;
}

/** Relative links of a proxied page resolve only against a path with a trailing slash. */
function redirectToSlash({ exchange }: RequestContext): void {
  // A query may have further question marks.
  const [, path, query] = /^([^?]*)\??(.*)$/s.exec(exchange.url)!;
  exchange.respond(301, { location: `${path}/${query === "" ? "" : `?${query}`}` });
}

/** `PodExecOptions` etc., as webhooks receive them. */
function connectOptions(query: URLSearchParams, kind: GroupVersionKind, path: string): Unstructured {
  const options: Unstructured = { kind: kind.kind, apiVersion: formatGroupVersion(kind), metadata: {} };
  for (const flag of ["stdin", "stdout", "stderr", "tty"]) {
    const value = query.get(flag);
    if (value !== null) options[flag] = value !== "false" && value !== "0";
  }
  const container = query.get("container");
  if (container !== null) options["container"] = container;
  if (query.has("command")) options["command"] = query.getAll("command");
  if (query.has("ports")) options["ports"] = query.getAll("ports").map(Number);
  if (kind.kind.endsWith("ProxyOptions")) options["path"] = path;
  return options;
}
