import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { SubresourceCall } from "../registry/generic/resource.ts";
import { admissionAttributes } from "./admission.ts";
import type { Call } from "./env.ts";
import type { WriteRequestOptions } from "./options.ts";

/**
 * The argument of a subresource's handler.
 * @param body decoded, with defaults; undefined for a read
 */
export function subresourceCall(call: Call, body: KubeObject | undefined, options: WriteRequestOptions): SubresourceCall {
  const { env } = call;
  return {
    ctx: call.ctx,
    services: env.services,
    namespace: call.namespace,
    name: call.name,
    body,
    dryRun: options.dryRun,
    fieldManager: options.fieldManager,
    async admit(object, old) {
      const operation = old === undefined ? "CREATE" : "UPDATE";
      const { group = "", version = "" } = parseGroupVersion(object.apiVersion ?? "") ?? {};
      const kind = object.kind && { kind: { group, version, kind: object.kind } };
      const details = { dryRun: options.dryRun, options, ...kind };
      const attributes = admissionAttributes(call, operation, object, old, details);
      await env.admission.mutate(attributes);
      await env.admission.validate(attributes);
    },
  };
}
