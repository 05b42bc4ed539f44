import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { anySchema, mostLevels, type Schema } from "./schemas.ts";
import {
  validateCustomResourceDefinition,
  validateCustomResourceDefinitionStatus,
  validateCustomResourceDefinitionUpdate,
} from "./validation.ts";

/** Deletion waits for this until the custom resources are gone. */
export const customResourceCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/** Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go */
export const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = strategyOf<CustomResourceDefinition>({
  namespaced: false,
  status: true,
  generation: true,
  anyFinalizer: true,
  allowUnconditionalUpdate: false,
  prepareForCreate(next, ctx) {
    const stored = (next.spec?.versions ?? []).filter((version) => version.storage).map((version) => version.name);
    next.status = { storedVersions: stored } as NonNullable<CustomResourceDefinition["status"]>;
    const finalizers = next.metadata.finalizers ?? [];
    if (!finalizers.includes(customResourceCleanupFinalizer))
      next.metadata.finalizers = [...finalizers, customResourceCleanupFinalizer];
    dropDisabledFields(next, undefined, ctx);
  },
  prepareForUpdate(next, current, ctx) {
    // Every version that was ever the storage version may still be in etcd.
    const storage = (next.spec?.versions ?? []).find((version) => version.storage)?.name;
    const stored = current.status?.storedVersions ?? [];
    if (storage !== undefined && !stored.includes(storage)) {
      next.status = { ...current.status, storedVersions: [...stored, storage] } as NonNullable<
        CustomResourceDefinition["status"]
      >;
    }
    dropDisabledFields(next, current, ctx);
  },
  // An update has rules of its own that include those of a creation.
  validate: (next, _ctx, current) =>
    current ? validateCustomResourceDefinitionUpdate(next, current) : validateCustomResourceDefinition(next),
});

/** Rules in a language of their own are an alpha feature. Source: dropDisabledFields */
function dropDisabledFields(
  next: CustomResourceDefinition,
  current: CustomResourceDefinition | undefined,
  ctx: StrategyContext,
): void {
  const schemas = (crd: CustomResourceDefinition | undefined): Schema[] =>
    (crd?.spec?.versions ?? []).flatMap(({ schema }) => (schema?.openAPIV3Schema ? [schema.openAPIV3Schema as Schema] : []));
  const inUse = schemas(current).some((schema) => anySchema(schema, (part) => Boolean(part[rulesWord])));
  if (ctx.featureEnabled("CustomResourceValidationExpressions") || inUse) return;
  for (const schema of schemas(next)) dropRules(schema, 0);
}

const rulesWord = "x-kubernetes-validations";

function dropRules(schema: Schema, level: number): void {
  delete (schema as Record<string, unknown>)[rulesWord];
  const { items, additionalProperties, properties } = schema;
  for (const part of [items, additionalProperties, ...Object.values(properties ?? {})].flat())
    if (isJsonObject(part) && level < mostLevels) dropRules(part as Schema, level + 1);
}

export const customResourceDefinitionStatusStrategy: Strategy<CustomResourceDefinition> = statusStrategyOf({
  namespaced: false,
  anyFinalizer: true,
  validateUpdate: (next) => validateCustomResourceDefinitionStatus(next),
});
