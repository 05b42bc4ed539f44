import { duplicate, type FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import { untimedKey, validateTolerations } from "../../core/pods/validation/affinity.ts";
import { validateResourceRequirements } from "../../core/pods/validation/resources.ts";
import { checkLabels, dns1123Label, immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { each } from "../../rules.ts";

/** Source: pkg/registry/node/runtimeclass/strategy.go, pkg/apis/node/validation/validation.go */
export const runtimeClassStrategy: Strategy<RuntimeClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  validate: (next) => validateRuntimeClass(next),
  validateUpdate: (next, current) => [...validateRuntimeClass(next), ...immutableField(next.handler, current.handler, "handler")],
};

function validateRuntimeClass(runtimeClass: RuntimeClass): FieldError[] {
  const { handler = "", overhead, scheduling } = runtimeClass;
  const errors = dns1123Label(handler, "handler");
  if (overhead)
    errors.push(...validateResourceRequirements({ limits: overhead.podFixed ?? {} }, "overhead", { partialHugePages: false }));
  if (!scheduling) return errors;
  const tolerations = scheduling.tolerations ?? [];
  return [
    ...errors,
    ...checkLabels(scheduling.nodeSelector, "scheduling.nodeSelector"),
    ...validateTolerations(tolerations, "scheduling.tolerations.tolerations"), // the doubled name is upstream's
    ...repeatedTolerations(tolerations, "scheduling.tolerations"),
  ];
}

function repeatedTolerations(tolerations: readonly Toleration[], path: string): FieldError[] {
  const seen = new Set<string>();
  return each(tolerations, path, (toleration, at) => {
    const count = seen.size;
    return seen.add(untimedKey(toleration)).size > count ? [] : [duplicate(at, goStruct("core/v1.Toleration", toleration))];
  });
}
