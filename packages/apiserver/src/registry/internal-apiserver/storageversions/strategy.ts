import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { storageVersionNameFaults, validateStorageVersionStatus } from "./validation.ts";

/** Source: pkg/registry/apiserverinternal/storageversion/strategy.go */
export const storageVersionStrategy: Strategy<StorageVersion> = strategyOf<StorageVersion>({
  namespaced: false,
  status: true,
  anyFinalizer: true,
  allowUnconditionalUpdate: false,
  validateName: storageVersionNameFaults,
});

export const storageVersionStatusStrategy: Strategy<StorageVersion> = statusStrategyOf({
  namespaced: false,
  anyFinalizer: true,
  keepMetadata: true,
  validateUpdate: (next) => validateStorageVersionStatus(next.status, "status"),
});
