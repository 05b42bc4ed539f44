import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { validatePodSecurityPolicy } from "./validation.ts";

/** Enforced by the admission plugin of that name. Source: pkg/registry/policy/podsecuritypolicy/strategy.go */
export const podSecurityPolicyStrategy: Strategy<PodSecurityPolicy> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForCreate: (next, ctx) => dropDisabledFields(next, undefined, ctx),
  prepareForUpdate: (next, current, ctx) => dropDisabledFields(next, current, ctx),
  validateInSteps: (next) => validatePodSecurityPolicy(next),
};

/** Drops allowedProcMountTypes unless enabled or in use. Source: pkg/api/podsecuritypolicy/util.go DropDisabledFields */
function dropDisabledFields(next: PodSecurityPolicy, current: PodSecurityPolicy | undefined, ctx: StrategyContext): void {
  if (ctx.featureEnabled("ProcMountType") || current?.spec?.allowedProcMountTypes !== undefined) return;
  delete next.spec?.allowedProcMountTypes;
}
