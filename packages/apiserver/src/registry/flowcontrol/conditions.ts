import { child, duplicate, type FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { each, need } from "../rules.ts";

/** Condition types are required and unique. Source: pkg/apis/flowcontrol/validation ValidateFlowSchemaStatus */
export function validateTypedConditions(conditions: readonly { type?: string }[] | undefined): FieldError[] {
  const types = new Set<string>();
  return each(conditions, "status.conditions", ({ type = "" }, at) => {
    const errors = types.has(type) ? [duplicate(child(at, "type"), type)] : [];
    types.add(type);
    return [...errors, ...need(type, child(at, "type"), "must not be empty")];
  });
}
