import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { TopologySelectorTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { immutableField, qualifiedName, qualifiedNameProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { eachInSteps, eachWithSteps, need, saying, unique } from "../../rules.ts";

/** Source: pkg/registry/storage/storageclass/strategy.go, pkg/apis/storage/validation/validation.go */
export const storageClassStrategy: Strategy<StorageClass> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  *validateInSteps(next, current) {
    const errors = yield* validateStorageClass(next);
    if (current === undefined) return errors;
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

function* validateStorageClass(storageClass: StorageClass): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (!storageClass.provisioner) errors.push(required("provisioner", storageClass.provisioner ?? ""));
  else
    errors.push(
      ...saying(qualifiedNameProblems(storageClass.provisioner.toLowerCase()), storageClass.provisioner, "provisioner"),
    );
  errors.push(...validateParameters(storageClass.parameters ?? {}));
  const policy: string | undefined = storageClass.reclaimPolicy;
  if (policy && policy !== "Delete" && policy !== "Retain")
    errors.push(notSupported("reclaimPolicy", policy, ["Delete", "Retain"]));
  const mode: string | undefined = storageClass.volumeBindingMode;
  if (mode === undefined) errors.push(required("volumeBindingMode"));
  else if (mode !== "Immediate" && mode !== "WaitForFirstConsumer") {
    errors.push(notSupported("volumeBindingMode", mode, ["Immediate", "WaitForFirstConsumer"]));
  }
  addErrors(errors, yield* validateTopologies(storageClass.allowedTopologies ?? [], "allowedTopologies"));
  return errors;
}

function validateParameters(parameters: Readonly<Record<string, string>>): FieldError[] {
  if (Object.keys(parameters).length > 512) return [tooLong("parameters", "Provisioner Parameters exceeded max allowed", 512)];
  const entries = Object.entries(parameters);
  const errors = entries.filter(([key]) => key === "").map(([key]) => invalidValue("parameters", key, "field can not be empty."));
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return size > 256 * 1024 ? [...errors, tooLong("parameters", "", 256 * 1024)] : errors;
}

/** Limit of errors about equal terms, whose number is quadratic in the number of terms; beyond it each equal term is reported once. */
const mostDuplicates = 1000;

/** Terms must be distinct, and keys unique within a term. */
function validateTopologies(terms: readonly TopologySelectorTerm[], path: string): Steps<FieldError[]> {
  const termKey = (values: ReadonlyMap<string, readonly string[]>): string =>
    JSON.stringify([...values].sort(([a], [b]) => (a < b ? -1 : 1)));
  // Upstream preallocates a list of empty terms and appends to it, so that an empty term is always a duplicate.
  const said = new Map([[termKey(new Map()), terms.length]]);
  let duplicates = 0;
  return eachWithSteps(terms, path, function* (term, at) {
    const values = new Map<string, readonly string[]>();
    const errors = yield* eachInSteps(term.matchLabelExpressions, child(at, "matchLabelExpressions"), (expression, own) => {
      const { key = "" } = expression;
      const faults = [
        ...need(expression.values, child(own, "values")),
        ...unique(expression.values, child(own, "values"), (value) => value),
        ...qualifiedName(key, child(own, "key")),
        ...(values.has(key) ? [duplicate(child(own, "key"), key)] : []),
      ];
      values.set(key, [...new Set(expression.values)].sort());
      return faults;
    });
    const text = termKey(values);
    const earlier = said.get(text) ?? 0;
    const reported = Math.min(earlier, Math.max(1, mostDuplicates - duplicates));
    for (let i = 0; i < reported; i++) errors.push(duplicate(child(at, "matchLabelExpressions"), ""));
    duplicates += reported;
    said.set(text, earlier + 1);
    return errors;
  });
}
