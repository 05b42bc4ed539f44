/**
 * Asks every validating webhook that is concerned, all at once; one refusal is enough.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/validating
 */
import { validatingWebhookConfigurations } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import type { AdmissionPlugin } from "../plugin.ts";
import { newWebhookDispatcher } from "../webhooks/dispatch.ts";

export function validatingAdmissionWebhook(ctx: PluginContext): AdmissionPlugin {
  const plugin = "ValidatingAdmissionWebhook";
  const dispatcher = newWebhookDispatcher(ctx, {
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
