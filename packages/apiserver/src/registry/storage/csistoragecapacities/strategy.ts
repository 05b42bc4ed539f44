import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { goLabelSelector } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CSIStorageCapacity } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1beta1";
import { checkLabelSelector, dns1123SubdomainProblems, immutableField, isNegativeText, quantityOf } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/storage/csistoragecapacity/strategy.go, pkg/apis/storage/validation/validation.go */
export const csiStorageCapacityStrategy: Strategy<CSIStorageCapacity> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  *validateInSteps(next, current) {
    const errors = validateCapacity(next);
    if (current === undefined) return errors;
    yield;
    errors.push(
      ...immutableField(next.nodeTopology, current.nodeTopology, "nodeTopology", () => goLabelSelector(next.nodeTopology)),
      ...immutableField(next.storageClassName, current.storageClassName, "storageClassName"),
    );
    return errors;
  },
};

function validateCapacity(capacity: CSIStorageCapacity): FieldError[] {
  const errors = checkLabelSelector(capacity.nodeTopology, "nodeTopology");
  const className = capacity.storageClassName ?? "";
  for (const message of dns1123SubdomainProblems(className)) errors.push(invalidValue("storageClassName", className, message));
  for (const field of ["capacity", "maximumVolumeSize"] as const) {
    const value = capacity[field];
    if (value !== undefined && quantityOf(value).sign < 0) {
      errors.push(invalidValue(field, String(value), isNegativeText));
    }
  }
  return errors;
}
