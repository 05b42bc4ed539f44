import type {
  MutatingWebhookConfiguration,
  RuleWithOperations,
  ServiceReference,
  ValidatingWebhookConfiguration,
} from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";

/** Source: pkg/apis/admissionregistration/v1/defaults.go */
export function defaultMutatingWebhooks(object: MutatingWebhookConfiguration): void {
  for (const webhook of object.webhooks ?? []) {
    defaultWebhook(webhook);
    webhook.reinvocationPolicy ??= "Never";
  }
}

/** As `defaultMutatingWebhooks`; validating webhooks have no reinvocationPolicy. */
export function defaultValidatingWebhooks(object: ValidatingWebhookConfiguration): void {
  for (const webhook of object.webhooks ?? []) defaultWebhook(webhook);
}

interface Webhook {
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: object;
  objectSelector?: object;
  timeoutSeconds?: number;
  clientConfig?: { service?: ServiceReference };
  rules?: RuleWithOperations[];
}

function defaultWebhook(webhook: Webhook): void {
  webhook.failurePolicy ??= "Fail";
  webhook.matchPolicy ??= "Equivalent";
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= 10;
  const service = webhook.clientConfig?.service;
  if (service) service.port ??= 443;
  for (const rule of webhook.rules ?? []) rule.scope ??= "*";
}
