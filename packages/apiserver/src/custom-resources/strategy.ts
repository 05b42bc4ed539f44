/**
 * Strategies of one version of a custom resource: validation by its schema and rules; status only through /status.
 * Source: apiextensions-apiserver pkg/registry/customresource/{strategy,status_strategy,validator}.go
 */

import { addErrors, type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { CustomResourceSubresourceScale } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Strategy } from "../registry/generic/strategy.ts";
import { repeatedItems } from "../structural-schema/list-items.ts";
import { embeddedResourceFaults } from "../structural-schema/metadata.ts";
import type { RuleCheck } from "../structural-schema/rules/evaluation.ts";
import type { Schema } from "../structural-schema/schema.ts";
import { schemaFaultSteps } from "../structural-schema/values.ts";
import { numberAt, textAt } from "./scale-paths.ts";

interface StrategyInput {
  readonly namespaced: boolean;
  readonly schema: Schema | undefined;
  readonly hasStatus: boolean;
  readonly scale: CustomResourceSubresourceScale | undefined;
  /** undefined: the schema has no rules, or the feature is disabled. */
  readonly checkRules: RuleCheck | undefined;
}

/**
 * Strategy of the resource itself. With `/status` the status in requests is ignored; the generation counts changes outside of
 * the metadata.
 */
export function customResourceStrategy(input: StrategyInput): Strategy<Unstructured> {
  const { namespaced, schema, hasStatus, checkRules = noRules } = input;
  return {
    namespaceScoped: namespaced,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    anyFinalizer: true,
    ...(hasStatus ? { resetFields: ["status"] } : {}),
    prepareForCreate(next) {
      if (hasStatus) delete next["status"];
      next.metadata.generation = 1;
    },
    prepareForUpdate(next, current) {
      if (hasStatus) keepStatus(next, current);
      next.metadata.generation = current.metadata.generation ?? 1;
      if (!semanticEqual({ ...next, metadata: undefined }, { ...current, metadata: undefined })) next.metadata.generation++;
    },
    *validateInSteps(next, current) {
      const errors = yield* valueFaults(next, schema);
      addErrors(errors, specReplicasFaults(next, input.scale));
      addErrors(errors, scaleStatusFaults(next, input.scale));
      yield;
      if (schema !== undefined) addErrors(errors, embeddedResourceFaults(next, schema, "", false));
      yield;
      addErrors(errors, yield* newlyRepeated(next, current, schema));
      yield;
      addErrors(errors, yield* checkRules(next));
      return errors;
    },
  };
}

/** Strategy of `/status`: everything but the status is taken from the stored object. */
export function customResourceStatusStrategy(input: StrategyInput): Strategy<Unstructured> {
  const { namespaced, schema, scale, checkRules = noRules } = input;
  return {
    namespaceScoped: namespaced,
    allowUnconditionalUpdate: false,
    anyFinalizer: true,
    resetFields: ["apiVersion", "kind", "metadata", "spec"],
    prepareForUpdate(next, current) {
      const { status } = next as { status?: unknown }; // cast: any custom object may have one
      const fields: Record<string, unknown> = next;
      for (const name of Object.keys(fields)) delete fields[name];
      Object.assign(fields, current, status === undefined ? { status: undefined } : { status });
      if (status === undefined) delete fields["status"];
      next.metadata = { ...current.metadata };
    },
    *validateInSteps(next, current) {
      const errors = yield* valueFaults(next, schema);
      addErrors(errors, scaleStatusFaults(next, scale));
      yield;
      addErrors(errors, yield* newlyRepeated(next, current, schema));
      yield;
      addErrors(errors, yield* checkRules(next));
      return errors;
    },
  };
}

// biome-ignore lint/correctness/useYield: nothing is checked.
const noRules: RuleCheck = function* () {
  return [];
};

function keepStatus(next: Unstructured, current: Unstructured): void {
  if (current["status"] === undefined) delete next["status"];
  else next["status"] = current["status"];
}

function* valueFaults(object: KubeObject, schema: Schema | undefined): Steps<FieldError[]> {
  if (schema === undefined) return [];
  // The root has no path, which upstream formats as a nil pointer.
  return (yield* schemaFaultSteps(object, schema, "")).map((error) =>
    error.field === "" ? { ...error, field: "<nil>" } : error,
  );
}

/** Ratcheting: no errors when the stored object already has duplicate items. */
function* newlyRepeated(next: KubeObject, current: KubeObject | undefined, schema: Schema | undefined): Steps<FieldError[]> {
  if (current !== undefined && (yield* repeatedItems(current, schema)).length > 0) return [];
  yield;
  return yield* repeatedItems(next, schema);
}

function specReplicasFaults(object: KubeObject, scale: CustomResourceSubresourceScale | undefined): FieldError[] {
  return scale === undefined ? [] : replicasFaults(object, scale.specReplicasPath);
}

function scaleStatusFaults(object: KubeObject, scale: CustomResourceSubresourceScale | undefined): FieldError[] {
  if (scale === undefined) return [];
  const errors = replicasFaults(object, scale.statusReplicasPath);
  if (!scale.labelSelectorPath) return errors;
  const { fault } = textAt(object, scale.labelSelectorPath);
  return fault === undefined ? errors : [...errors, invalidValue(scale.labelSelectorPath, "", fault)];
}

const mostReplicas = 2 ** 31 - 1;

function replicasFaults(object: KubeObject, path: string): FieldError[] {
  const { value = 0, fault } = numberAt(object, path);
  if (fault !== undefined) return [invalidValue(path, 0, fault)];
  if (value < 0) return [invalidValue(path, value, "should be a non-negative integer")];
  return value > mostReplicas ? [invalidValue(path, value, `should be less than or equal to ${mostReplicas}`)] : [];
}
