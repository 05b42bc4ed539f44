import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import type { RuntimeClass } from "@coxswain/apimachinery/schema/kinds/node/v1";
import { checkLabels, dns1123Label, immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/node/runtimeclass/strategy.go, pkg/apis/node/validation/validation.go */
export const runtimeClassStrategy: Strategy<RuntimeClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  validate: (next) => validateRuntimeClass(next),
  validateUpdate: (next, current) => immutableField(next.handler, current.handler, "handler"),
};

function validateRuntimeClass(runtimeClass: RuntimeClass): FieldError[] {
  const errors = dns1123Label(runtimeClass.handler ?? "", "handler");
  if (runtimeClass.scheduling) errors.push(...checkLabels(runtimeClass.scheduling.nodeSelector, "scheduling.nodeSelector"));
  return errors;
}
