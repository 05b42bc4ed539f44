import type { PodSecurityPolicy } from "@coxswain/apimachinery/schema/kinds/policy/v1beta1";
import type { Strategy } from "../../generic/strategy.ts";
import { validatePodSecurityPolicy } from "./validation.ts";

/** Stored and served; the admission plugin of that name decides. Source: pkg/registry/policy/podsecuritypolicy/strategy.go */
export const podSecurityPolicyStrategy: Strategy<PodSecurityPolicy> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validate: (next) => validatePodSecurityPolicy(next),
  validateUpdate: (next) => validatePodSecurityPolicy(next),
};
