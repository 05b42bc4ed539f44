import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { notSupported } from "@coxswain/apimachinery/errors/field-error";
import type { PodSecurityPolicy } from "@coxswain/apimachinery/schema/kinds/policy/v1beta1";
import type { Strategy } from "../../generic/strategy.ts";

/** Stored and served; the admission plugin of that name decides. Source: pkg/registry/policy/podsecuritypolicy/strategy.go */
export const podSecurityPolicyStrategy: Strategy<PodSecurityPolicy> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validate: (next) => validatePolicy(next),
  validateUpdate: (next) => validatePolicy(next),
};

const rules = {
  seLinux: ["MustRunAs", "RunAsAny"],
  runAsUser: ["MustRunAs", "MustRunAsNonRoot", "RunAsAny"],
  supplementalGroups: ["MayRunAs", "MustRunAs", "RunAsAny"],
  fsGroup: ["MayRunAs", "MustRunAs", "RunAsAny"],
} as const;

function validatePolicy(policy: PodSecurityPolicy): FieldError[] {
  const errors: FieldError[] = [];
  for (const [field, known] of Object.entries(rules)) {
    const rule: string = policy.spec?.[field as keyof typeof rules]?.rule ?? "";
    if (!(known as readonly string[]).includes(rule)) errors.push(notSupported(`spec.${field}.rule`, rule, known));
  }
  return errors;
}
