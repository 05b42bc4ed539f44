import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { validateSecret, validateSecretUpdate } from "./validation.ts";

/** Source: pkg/registry/core/secret/strategy.go */
export const secretStrategy: Strategy<Secret> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForUpdate(next, current) {
    // An update without a type keeps the stored one.
    if (!next.type && current.type) next.type = current.type;
  },
  validateInSteps: (next, current) => (current === undefined ? validateSecret(next) : validateSecretUpdate(next, current)),
};
