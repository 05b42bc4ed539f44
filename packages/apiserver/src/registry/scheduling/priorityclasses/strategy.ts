import { type FieldError, forbiddenField } from "@coxswain/apimachinery/objects/errors/field-error";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PriorityClass } from "@coxswain/apimachinery/objects/schema/kinds/scheduling/v1";
import { immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { requiredOneOf } from "../../rules.ts";

/** Highest value of user-defined classes; higher ones are reserved for system classes. */
const highestUserValue = 1_000_000_000;

/** Values of the built-in system classes. */
const systemClasses: Readonly<Record<string, number>> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};

/** Source: pkg/registry/scheduling/priorityclass/strategy.go, pkg/apis/scheduling/validation/validation.go */
export const priorityClassStrategy: Strategy<PriorityClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForCreate(next) {
    next.metadata.generation = 1;
  },
  prepareForUpdate(next, current) {
    if (current.metadata.generation !== undefined) next.metadata.generation = current.metadata.generation;
    else delete next.metadata.generation;
  },
  validate: (next) => validatePriorityClass(next),
  validateUpdate: (next, current) => {
    const errors: FieldError[] = [];
    if ((next.value ?? 0) !== (current.value ?? 0)) errors.push(forbiddenField("value", "may not be changed in an update."));
    errors.push(...immutableField(next.preemptionPolicy, current.preemptionPolicy, "preemptionPolicy"));
    return errors;
  },
  checkDeletion(name) {
    if (Object.hasOwn(systemClasses, name)) {
      throw forbidden(
        { group: "scheduling.k8s.io", resource: "priorityclasses" },
        name,
        "this is a system priority class and cannot be deleted",
      );
    }
  },
};

function validatePriorityClass(priorityClass: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  const name = priorityClass.metadata.name ?? "";
  const value = priorityClass.value ?? 0;
  if (name.startsWith("system-")) {
    const known = Object.hasOwn(systemClasses, name) ? systemClasses[name] : undefined;
    if (known === undefined) {
      errors.push(
        forbiddenField(
          "metadata.name",
          `priority class names with 'system-' prefix are reserved for system use only. error: ${name} is not a known system priority class`,
        ),
      );
    } else if (known !== value) {
      errors.push(
        forbiddenField(
          "metadata.name",
          `priority class names with 'system-' prefix are reserved for system use only. error: value of ${name} PriorityClass must be ${known}`,
        ),
      );
    } else if (priorityClass.globalDefault) {
      errors.push(
        forbiddenField(
          "metadata.name",
          `priority class names with 'system-' prefix are reserved for system use only. error: globalDefault of ${name} PriorityClass must be false`,
        ),
      );
    }
  } else if (value > highestUserValue) {
    errors.push(forbiddenField("value", `maximum allowed value of a user defined priority is ${highestUserValue}`));
  }
  if (priorityClass.preemptionPolicy !== undefined) {
    errors.push(...requiredOneOf(priorityClass.preemptionPolicy, ["PreemptLowerPriority", "Never"], "preemptionPolicy"));
  }
  return errors;
}
