import type { PersistentVolumeClaim } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep, statusStrategyOf } from "../../strategies.ts";
import {
  validatePersistentVolumeClaim,
  validatePersistentVolumeClaimStatusUpdate,
  validatePersistentVolumeClaimUpdate,
} from "./validation.ts";

/** Source: pkg/registry/core/persistentvolumeclaim/strategy.go */
export const persistentVolumeClaimStrategy: Strategy<PersistentVolumeClaim> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = { phase: "Pending" };
    normalizeDataSource(next);
  },
  prepareForUpdate(next, current) {
    keep(next, current, "status");
    normalizeDataSource(next);
  },
  validate: (next, ctx) => validatePersistentVolumeClaim(next, ctx.featureEnabled("ReadWriteOncePod")),
  validateUpdate: (next, current, ctx) => validatePersistentVolumeClaimUpdate(next, current, ctx.featureEnabled),
};

export const persistentVolumeClaimStatusStrategy: Strategy<PersistentVolumeClaim> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validatePersistentVolumeClaimStatusUpdate(next),
});

/** Sources that are neither a claim nor a snapshot are dropped; the other form is behind a gate that is off. */
function normalizeDataSource(claim: PersistentVolumeClaim): void {
  const { spec } = claim;
  if (!spec) return;
  delete spec.dataSourceRef;
  const source = spec.dataSource;
  if (!source) return;
  const isClaim = source.kind === "PersistentVolumeClaim" && !source.apiGroup;
  const isSnapshot = source.kind === "VolumeSnapshot" && source.apiGroup === "snapshot.storage.k8s.io";
  if (!isClaim && !isSnapshot) delete spec.dataSource;
}
