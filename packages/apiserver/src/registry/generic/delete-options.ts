import { type FieldError, invalidValue, notSupported } from "@coxswain/apimachinery/objects/errors/field-error";
import type { DeleteOptions } from "@coxswain/apimachinery/objects/meta/types";

/** Source: k8s.io/apimachinery pkg/apis/meta/v1/validation ValidateDeleteOptions */
export function validateDeleteOptions({ propagationPolicy: policy, orphanDependents, dryRun }: DeleteOptions): FieldError[] {
  const errors: FieldError[] = [];
  if (policy != null && orphanDependents != null) {
    errors.push(invalidValue("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"));
  }
  if (policy != null && !["Foreground", "Background", "Orphan"].includes(policy)) {
    errors.push(notSupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"]));
  }
  return [...errors, ...validateDryRun(dryRun ?? [])];
}

/** Only `All` is valid. `?dryRun` and `?dryRun=` decode to one empty value, which is rejected. */
export function validateDryRun(values: readonly string[]): FieldError[] {
  return values.every((value) => value === "All") ? [] : [notSupported("dryRun", [...values], ["All"])];
}
