import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { anySchema, mostLevels, type Schema, schemaIn } from "../../../structural-schema/schema.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { emptyStruct } from "../../rules.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { withCondition } from "./conditions.ts";
import {
  validateCustomResourceDefinition,
  validateCustomResourceDefinitionStatus,
  validateCustomResourceDefinitionUpdate,
} from "./validation.ts";

type Status = NonNullable<CustomResourceDefinition["status"]>;

/** Added by the first delete request; removed by crd_finalizer when all custom resources are gone. */
export const customResourceCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

const deletionPending = {
  type: "Terminating",
  status: "True",
  reason: "InstanceDeletionPending",
  message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
} as const;

/** Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go; deletion: etcd.go */
export const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = strategyOf<CustomResourceDefinition>({
  namespaced: false,
  status: true,
  generation: true,
  anyFinalizer: true,
  allowUnconditionalUpdate: false,
  prepareForCreate(next, ctx) {
    const stored = (next.spec?.versions ?? []).filter((version) => version.storage).map((version) => version.name);
    next.status = { ...emptyStruct<Status>(), storedVersions: stored };
    dropDisabledFields(next, undefined, ctx);
  },
  prepareForUpdate(next, current, ctx) {
    // Objects in any former storage version may still be in etcd.
    const storage = (next.spec?.versions ?? []).find((version) => version.storage)?.name;
    const stored = current.status?.storedVersions ?? [];
    if (storage !== undefined && !stored.includes(storage)) {
      next.status = { ...emptyStruct<Status>(), ...current.status, storedVersions: [...stored, storage] };
    }
    dropDisabledFields(next, current, ctx);
  },
  beginDeletion(current, ctx) {
    if (current.metadata.deletionTimestamp) return undefined;
    const now = ctx.now();
    const finalizers = new Set([...(current.metadata.finalizers ?? []), customResourceCleanupFinalizer]);
    return {
      ...current,
      metadata: { ...current.metadata, deletionTimestamp: formatTime(now), finalizers: [...finalizers] },
      status: {
        ...emptyStruct<Status>(),
        ...current.status,
        conditions: withCondition(current.status?.conditions ?? [], deletionPending, now),
      },
    };
  },
  // The update validation includes that of a create.
  validateInSteps: (next, current) =>
    current ? validateCustomResourceDefinitionUpdate(next, current) : validateCustomResourceDefinition(next),
});

/** Drops x-kubernetes-validations unless the feature gate is on or the stored object uses them. Source: dropDisabledFields */
function dropDisabledFields(
  next: CustomResourceDefinition,
  current: CustomResourceDefinition | undefined,
  ctx: StrategyContext,
): void {
  const schemas = (crd: CustomResourceDefinition | undefined): Schema[] =>
    (crd?.spec?.versions ?? []).map(({ schema }) => schemaIn(schema)).filter((schema) => schema !== undefined);
  const inUse = schemas(current).some((schema) => anySchema(schema, (part) => Boolean(part[rulesWord])));
  if (ctx.featureEnabled("CustomResourceValidationExpressions") || inUse) return;
  for (const schema of schemas(next)) dropRules(schema, 0);
}

const rulesWord = "x-kubernetes-validations";

function dropRules(schema: Schema, level: number): void {
  if (Object.hasOwn(schema, rulesWord)) delete schema[rulesWord];
  const { items, additionalProperties, properties } = schema;
  // Returns early: most parts of a large schema are scalars.
  if (items === undefined && additionalProperties === undefined && properties === undefined) return;
  for (const part of [items, additionalProperties, ...Object.values(properties ?? {})].flat())
    if (isJsonObject(part) && level < mostLevels) dropRules(part, level + 1);
}

export const customResourceDefinitionStatusStrategy: Strategy<CustomResourceDefinition> = statusStrategyOf({
  namespaced: false,
  anyFinalizer: true,
  // Metadata can be changed, but is owned through the main resource alone, like upstream.
  resetFields: ["metadata", "spec"],
  validateUpdate: (next) => validateCustomResourceDefinitionStatus(next),
});
