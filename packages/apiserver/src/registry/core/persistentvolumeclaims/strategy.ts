import type { PersistentVolumeClaim, TypedLocalObjectReference } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
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
  prepareForCreate(next, ctx) {
    next.status = { phase: "Pending" };
    normalizeDataSources(next, undefined, ctx.featureEnabled("AnyVolumeDataSource"));
  },
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "status");
    normalizeDataSources(next, current, ctx.featureEnabled("AnyVolumeDataSource"));
  },
  *validateInSteps(next, current, ctx) {
    if (current === undefined) return yield* validatePersistentVolumeClaim(next, ctx.featureEnabled("ReadWriteOncePod"));
    return yield* validatePersistentVolumeClaimUpdate(next, current, ctx.featureEnabled);
  },
};

export const persistentVolumeClaimStatusStrategy: Strategy<PersistentVolumeClaim> = statusStrategyOf({
  namespaced: true,
  validateInSteps: (next, _current, ctx) => validatePersistentVolumeClaimStatusUpdate(next, ctx.featureEnabled),
});

/**
 * dataSource: references other than claims and snapshots are dropped, as they always were, unless dataSourceRef is set, too.
 * With the AnyVolumeDataSource gate (`any`), dataSource and dataSourceRef mirror each other.
 * Source: pkg/api/persistentvolumeclaim/util.go
 */
function normalizeDataSources(next: PersistentVolumeClaim, current: PersistentVolumeClaim | undefined, any: boolean): void {
  const { spec } = next;
  if (!spec) return;
  const had = current?.spec?.dataSource !== undefined;
  if (spec.dataSource && !spec.dataSourceRef && !had && !isClaimOrSnapshot(spec.dataSource)) delete spec.dataSource;
  if (!any) return;
  if (spec.dataSource) spec.dataSourceRef ??= { ...spec.dataSource };
  else if (spec.dataSourceRef) spec.dataSource = { ...spec.dataSourceRef };
}

function isClaimOrSnapshot({ apiGroup, kind }: TypedLocalObjectReference): boolean {
  if (kind === "PersistentVolumeClaim") return !apiGroup;
  return kind === "VolumeSnapshot" && apiGroup === "snapshot.storage.k8s.io";
}
