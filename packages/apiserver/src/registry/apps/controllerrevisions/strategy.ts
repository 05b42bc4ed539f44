import { type FieldError, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { goUnknown } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { immutableField, nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/apps/controllerrevision/strategy.go, pkg/apis/apps/validation */
export const controllerRevisionStrategy: Strategy<ControllerRevision> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validate: (next) => validateRevision(next),
  validateUpdate: (next, current) => [
    ...validateRevision(next),
    ...immutableField(next.data, current.data, "data", () => goUnknown(next.data)),
  ],
};

function validateRevision(revision: ControllerRevision): FieldError[] {
  const errors: FieldError[] = [];
  if (revision.data === undefined || revision.data === null) errors.push(required("data", "data is mandatory"));
  return [...errors, ...nonNegative(revision.revision, "revision")];
}
