import { addErrors, duplicate, type FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { untimedKey, validateTolerations } from "../../core/pods/validation/affinity.ts";
import { validateResourceRequirements } from "../../core/pods/validation/resources.ts";
import { checkingLabels, dns1123Label, immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { eachInSteps } from "../../rules.ts";

/** Source: pkg/registry/node/runtimeclass/strategy.go, pkg/apis/node/validation/validation.go */
export const runtimeClassStrategy: Strategy<RuntimeClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  *validateInSteps(next, current) {
    const errors = yield* validateRuntimeClass(next);
    return current === undefined ? errors : [...errors, ...immutableField(next.handler, current.handler, "handler")];
  },
};

function* validateRuntimeClass(runtimeClass: RuntimeClass): Steps<FieldError[]> {
  const { handler = "", overhead, scheduling } = runtimeClass;
  const errors = dns1123Label(handler, "handler");
  if (overhead) {
    const limits = { limits: overhead.podFixed ?? {} };
    addErrors(errors, yield* validateResourceRequirements(limits, "overhead", { partialHugePages: false }));
  }
  if (!scheduling) return errors;
  const tolerations = scheduling.tolerations ?? [];
  addErrors(errors, yield* checkingLabels(scheduling.nodeSelector, "scheduling.nodeSelector"));
  // The doubled name is upstream's.
  addErrors(errors, yield* validateTolerations(tolerations, "scheduling.tolerations.tolerations"));
  addErrors(errors, yield* repeatedTolerations(tolerations, "scheduling.tolerations"));
  return errors;
}

function repeatedTolerations(tolerations: readonly Toleration[], path: string): Steps<FieldError[]> {
  const seen = new Set<string>();
  return eachInSteps(tolerations, path, (toleration, at) => {
    const count = seen.size;
    return seen.add(untimedKey(toleration)).size > count ? [] : [duplicate(at, goStruct("core/v1.Toleration", toleration))];
  });
}
