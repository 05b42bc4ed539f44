/**
 * Calls all matching validating webhooks in parallel; a single rejection rejects the request.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/validating
 */
import { validatingWebhookConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { WebhookDispatcher } from "../webhooks/dispatch.ts";

export function validatingAdmissionWebhook(ctx: PluginContext): AdmissionPlugin {
  const plugin = "ValidatingAdmissionWebhook";
  const dispatcher = new WebhookDispatcher(ctx, {
    configurations: validatingWebhookConfigurations,
    plugin,
    type: "validating",
    failedOpenPrefix: "failed-open.validating.webhook.admission.k8s.io/",
  });
  return {
    name: plugin,
    handles: () => true,
    ready: () => dispatcher.synced,
    async validate(attributes) {
      const registered = dispatcher.registered();
      if (registered.length === 0) return;
      const matches = await Promise.all(registered.map((candidate) => dispatcher.match(candidate, attributes)));
      const invocations = matches.filter((invocation) => invocation !== undefined);
      const results = await Promise.allSettled(
        invocations.map((invocation) => dispatcher.call(invocation, attributes, 0, () => {})),
      );
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
  };
}
