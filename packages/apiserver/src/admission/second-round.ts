import type { AdmissionChain } from "./plugin.ts";

/**
 * When a plugin changed the object and asks for it, all mutating plugins go over it once more: what a webhook added has
 * not seen the server's own plugins yet.
 * Source: k8s.io/apiserver pkg/admission/reinvocation.go
 */
export function withSecondRound(chain: AdmissionChain): AdmissionChain {
  return {
    async mutate(attributes) {
      await chain.mutate(attributes);
      if (attributes.wantsAnotherRound !== true) return;
      attributes.round = 1;
      await chain.mutate(attributes);
    },
    validate: (attributes) => chain.validate(attributes),
  };
}
