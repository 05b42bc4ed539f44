import { child, duplicate, type FieldError, required, tooLong } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Condition } from "@coxswain/apimachinery/objects/meta/types";
import { nonNegative, qualifiedName } from "./field-checks.ts";
import { each, optionalOneOf, saying } from "./rules.ts";

const longestReason = 1024;
const longestMessage = 32 * 1024;
const reasonForm = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const reasonText =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/** Validates metav1.Condition lists. Source: k8s.io/apimachinery pkg/apis/meta/v1/validation ValidateConditions */
export function validateConditions(conditions: readonly Condition[] | undefined, path: string): FieldError[] {
  const types = new Set<string>();
  return each(conditions, path, (condition, at) => {
    const { type = "", status, observedGeneration, lastTransitionTime, reason = "", message = "" } = condition;
    const errors = types.has(type) ? [duplicate(child(at, "type"), type)] : [];
    types.add(type);
    errors.push(...qualifiedName(type, child(at, "type")));
    errors.push(...optionalOneOf(status ?? "", ["False", "True", "Unknown"], child(at, "status")));
    errors.push(...nonNegative(observedGeneration, child(at, "observedGeneration")));
    if (!lastTransitionTime) errors.push(required(child(at, "lastTransitionTime"), "must be set"));
    if (reason === "") errors.push(required(child(at, "reason"), "must be set"));
    else {
      if (!reasonForm.test(reason)) errors.push(...saying([reasonText], reason, child(at, "reason")));
      if (Buffer.byteLength(reason) > longestReason) errors.push(tooLong(child(at, "reason"), reason, longestReason));
    }
    if (Buffer.byteLength(message) > longestMessage) errors.push(tooLong(child(at, "message"), message, longestMessage));
    return errors;
  });
}
