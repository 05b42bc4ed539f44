/**
 * Asks every validating webhook that is concerned, all at once; one refusal is enough.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/validating
 */
import { validatingWebhookConfigurations } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import type { AdmissionPlugin } from "../plugin.ts";
import { newWebhookDispatcher } from "../webhook-dispatch.ts";

export function validatingAdmissionWebhook(ctx: PluginContext): AdmissionPlugin {
  const dispatcher = newWebhookDispatcher(ctx, validatingWebhookConfigurations, "validating");
  return {
    name: "ValidatingAdmissionWebhook",
    handles: () => true,
    ready: () => dispatcher.synced,
    async validate(attributes) {
      const invocations = await dispatcher.concerned(attributes);
      const results = await Promise.allSettled(invocations.map((invocation) => dispatcher.call(invocation, attributes, false)));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
  };
}
