import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { index } from "@coxswain/apimachinery/errors/field-path";
import type { Namespace } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isQualifiedName } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { isFinalized } from "./strategy.ts";

/** PUT /finalize writes spec.finalizers and nothing else. Source: pkg/registry/core/namespace/strategy.go */
export const namespaceFinalizeStrategy: Strategy<Namespace> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  completesDeletion: isFinalized,
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validateUpdate(next) {
    const errors: FieldError[] = [];
    for (const [i, finalizer] of (next.spec?.finalizers ?? []).entries()) {
      const at = index("spec.finalizers", i);
      for (const message of isQualifiedName(finalizer)) errors.push(invalidValue(at, finalizer, message));
      if (
        !finalizer.includes("/") &&
        finalizer !== "kubernetes" &&
        finalizer !== "orphan" &&
        finalizer !== "foregroundDeletion"
      ) {
        errors.push(invalidValue(at, finalizer, "name is neither a standard finalizer name nor is it fully qualified"));
      }
    }
    return errors;
  },
};
