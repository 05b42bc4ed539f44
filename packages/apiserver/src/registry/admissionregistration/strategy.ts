import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { Strategy } from "../generic/strategy.ts";
import { validateMutatingWebhookConfiguration, validateValidatingWebhookConfiguration } from "./validation.ts";

type Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration;

/** Source: pkg/registry/admissionregistration/{mutating,validating}webhookconfiguration/strategy.go */
const shared = {
  namespaceScoped: false,
  anyFinalizer: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  prepareForCreate(next: Configuration) {
    next.metadata.generation = 1;
  },
  prepareForUpdate(next: Configuration, current: Configuration) {
    const generation = current.metadata.generation ?? 0;
    next.metadata.generation = semanticEqual(next.webhooks, current.webhooks) ? generation : generation + 1;
  },
};

export const mutatingWebhookStrategy: Strategy<MutatingWebhookConfiguration> = {
  ...shared,
  validateInSteps: (next, current) => validateMutatingWebhookConfiguration(next, current),
};

export const validatingWebhookStrategy: Strategy<ValidatingWebhookConfiguration> = {
  ...shared,
  validateInSteps: (next, current) => validateValidatingWebhookConfiguration(next, current),
};
