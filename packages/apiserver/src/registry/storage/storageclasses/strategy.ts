import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, notSupported, required, tooLong } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { immutableField, qualifiedName } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/storage/storageclass/strategy.go, pkg/apis/storage/validation/validation.go */
export const storageClassStrategy: Strategy<StorageClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validate: (next) => validateStorageClass(next),
  validateUpdate(next, current) {
    const errors = validateStorageClass(next);
    if (!semanticEqual(next.parameters, current.parameters))
      errors.push(forbiddenField("parameters", "updates to parameters are forbidden."));
    if (next.provisioner !== current.provisioner)
      errors.push(forbiddenField("provisioner", "updates to provisioner are forbidden."));
    if (next.reclaimPolicy !== current.reclaimPolicy)
      errors.push(forbiddenField("reclaimPolicy", "updates to reclaimPolicy are forbidden."));
    errors.push(...immutableField(next.volumeBindingMode, current.volumeBindingMode, "volumeBindingMode"));
    return errors;
  },
};

function validateStorageClass(storageClass: StorageClass): FieldError[] {
  const errors: FieldError[] = [];
  if (!storageClass.provisioner) errors.push(required("provisioner", storageClass.provisioner ?? ""));
  else errors.push(...qualifiedName(storageClass.provisioner.toLowerCase(), "provisioner"));
  const parameters = Object.entries(storageClass.parameters ?? {});
  if (parameters.length > 512) errors.push(tooLong("parameters", "Provisioner Parameters exceeded max allowed", 512));
  let size = 0;
  for (const [key, value] of parameters) {
    if (key === "")
      errors.push({ type: "FieldValueInvalid", field: "parameters", badValue: key, detail: "field can not be empty." });
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > 256 * 1024) errors.push(tooLong("parameters", "", 256 * 1024));
  const policy: string | undefined = storageClass.reclaimPolicy;
  if (policy && policy !== "Delete" && policy !== "Retain")
    errors.push(notSupported("reclaimPolicy", policy, ["Delete", "Retain"]));
  const mode: string | undefined = storageClass.volumeBindingMode;
  if (mode === undefined) errors.push(required("volumeBindingMode"));
  else if (mode !== "Immediate" && mode !== "WaitForFirstConsumer") {
    errors.push(notSupported("volumeBindingMode", mode, ["Immediate", "WaitForFirstConsumer"]));
  }
  for (const [i, term] of (storageClass.allowedTopologies ?? []).entries()) {
    for (const [j, expression] of (term.matchLabelExpressions ?? []).entries()) {
      const at = index(child(index("allowedTopologies", i), "matchLabelExpressions"), j);
      if (!expression.values?.length) errors.push(required(child(at, "values")));
      errors.push(...qualifiedName(expression.key ?? "", child(at, "key")));
    }
  }
  return errors;
}
