import type { CustomResourceDefinition } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateCustomResourceDefinition, validateCustomResourceDefinitionUpdate } from "./validation.ts";

/** Deletion waits for this until the custom resources are gone. */
export const customResourceCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/** Source: apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go */
export const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = strategyOf<CustomResourceDefinition>({
  namespaced: false,
  status: true,
  generation: true,
  anyFinalizer: true,
  allowUnconditionalUpdate: false,
  prepareForCreate(next) {
    const stored = (next.spec?.versions ?? []).filter((version) => version.storage).map((version) => version.name);
    next.status = { storedVersions: stored } as NonNullable<CustomResourceDefinition["status"]>;
    const finalizers = next.metadata.finalizers ?? [];
    if (!finalizers.includes(customResourceCleanupFinalizer))
      next.metadata.finalizers = [...finalizers, customResourceCleanupFinalizer];
  },
  prepareForUpdate(next, current) {
    // Every version that was ever the storage version may still be in etcd.
    const storage = (next.spec?.versions ?? []).find((version) => version.storage)?.name;
    const stored = current.status?.storedVersions ?? [];
    if (storage !== undefined && !stored.includes(storage)) {
      next.status = { ...current.status, storedVersions: [...stored, storage] } as NonNullable<
        CustomResourceDefinition["status"]
      >;
    }
  },
  validate: (next) => validateCustomResourceDefinition(next),
  validateUpdate: (next, current) => validateCustomResourceDefinitionUpdate(next, current),
});

export const customResourceDefinitionStatusStrategy: Strategy<CustomResourceDefinition> = statusStrategyOf({
  namespaced: false,
  anyFinalizer: true,
});
