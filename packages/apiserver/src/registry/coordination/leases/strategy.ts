import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { isNegativeText } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/coordination/lease/strategy.go */
export const leaseStrategy: Strategy<Lease> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  validate: (next) => validateLease(next),
  validateUpdate: (next) => validateLease(next),
};

function validateLease(lease: Lease): FieldError[] {
  const errors: FieldError[] = [];
  const { leaseDurationSeconds, leaseTransitions } = lease.spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalidValue("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0"));
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    errors.push(invalidValue("spec.leaseTransitions", leaseTransitions, isNegativeText));
  }
  return errors;
}
