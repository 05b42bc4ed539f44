import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { validateKubeFinalizer } from "@coxswain/apimachinery/objects/validation/object-meta";
import { qualifiedName } from "../../field-checks.ts";

/** Validates an item of spec.finalizers. Source: pkg/apis/core/validation validateFinalizerName */
export const validateFinalizer = (name: string, path: string): FieldError[] => [
  ...qualifiedName(name, path),
  ...validateKubeFinalizer(name, path),
];
