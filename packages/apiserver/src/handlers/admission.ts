import { forbidden } from "@coxswain/apimachinery/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { AdmissionAttributes } from "../admission/plugin.ts";
import type { Call } from "./env.ts";

/** One write as the admission plugins see it. */
export function admissionAttributes(
  call: Call,
  operation: AdmissionAttributes["operation"],
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
  details: { dryRun: boolean; options?: unknown; kind?: AdmissionAttributes["kind"] },
): AdmissionAttributes {
  const { ctx, served } = call;
  const name = call.name !== "" ? call.name : (object?.metadata?.name ?? "");
  return {
    operation,
    kind: details.kind ?? served.kind,
    resource: { group: served.definition.group, version: served.version.version, resource: served.definition.resource },
    subresource: call.subresource,
    namespace: namespaceOf(call, name),
    name,
    object,
    oldObject,
    user: ctx.user,
    dryRun: details.dryRun,
    options: details.options,
    // Made only for the few plugins that ask somebody else.
    get signal() {
      return ctx.signal;
    },
    warn: (text) => ctx.warn(text),
    annotate: (key, value) => ctx.audit?.annotate(key, value),
    annotateContent: (key, value) => ctx.audit?.annotateContent(key, value),
    webhookTook: (type, ms) => ctx.webhookTook?.(type, ms),
  };
}

/** A namespace lies in itself, as far as admission is concerned. Source: handlers/create.go, requestinfo.go */
function namespaceOf(call: Call, name: string): string {
  const { definition } = call.served;
  if (definition.resource === "namespaces" && definition.group === "") return name;
  return call.namespace;
}

/**
 * A PUT or an apply that makes the object needs the permission to create it, besides the one it was let in with.
 * @throws Forbidden.
 */
export async function authorizeCreate(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  if (env.services.authorize === undefined) return;
  const { info } = ctx;
  const decision = await env.services.authorize({
    user: ctx.user,
    verb: "create",
    isResourceRequest: true,
    namespace: info.namespace,
    group: info.group,
    version: info.version,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
  });
  if (decision.decision === "allow") return;
  throw forbidden(served.definition, call.name, decision.reason ?? "");
}
