import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import type { Strategy } from "../../generic/strategy.ts";
import { validatePodSecurityPolicy } from "./validation.ts";

/** Enforced by the admission plugin of that name. Source: pkg/registry/policy/podsecuritypolicy/strategy.go */
export const podSecurityPolicyStrategy: Strategy<PodSecurityPolicy> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validateInSteps: (next) => validatePodSecurityPolicy(next),
};
