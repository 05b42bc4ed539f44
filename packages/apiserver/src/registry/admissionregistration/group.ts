import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultMutatingWebhooks, defaultValidatingWebhooks } from "./defaults.ts";
import { mutatingWebhookStrategy, validatingWebhookStrategy } from "./strategy.ts";
import { webhookConfigurationTable } from "./table.ts";

export function admissionRegistrationResources(): ResourceDefinition[] {
  return inGroup("admissionregistration.k8s.io", [
    {
      resource: "mutatingwebhookconfigurations",
      kind: "MutatingWebhookConfiguration",
      categories: ["api-extensions"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultMutatingWebhooks }],
      strategy: mutatingWebhookStrategy,
      table: webhookConfigurationTable,
    },
    {
      resource: "validatingwebhookconfigurations",
      kind: "ValidatingWebhookConfiguration",
      categories: ["api-extensions"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultValidatingWebhooks }],
      strategy: validatingWebhookStrategy,
      table: webhookConfigurationTable,
    },
  ]);
}
