import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  betaStorageProvisioner,
  migratedTo,
  provisionedBy,
  storageProvisioner,
} from "@coxswain/apimachinery/volumes/annotations";
import { driverOf } from "@coxswain/apimachinery/volumes/migration";

/**
 * Sets the migrated-to annotation on claims and volumes of in-tree plugins that are migrated to a CSI driver; removes
 * it otherwise.
 * Source: pv_controller_base.go updateMigrationAnnotations
 */
export function withMigration<T extends KubeObject>(
  object: T,
  kind: "claim" | "volume",
  gates: { enabled(name: string): boolean },
): T | undefined {
  const { annotations } = object.metadata;
  if (annotations === undefined) return undefined;
  const plugin =
    kind === "volume" ? annotations[provisionedBy] : (annotations[storageProvisioner] ?? annotations[betaStorageProvisioner]);
  if (plugin === undefined) return undefined;
  const driver = driverOf(plugin, gates);
  const { [migratedTo]: current, ...others } = annotations;
  if ((current || undefined) === driver) return undefined;
  const changed = driver === undefined ? others : { ...others, [migratedTo]: driver };
  return { ...object, metadata: { ...object.metadata, annotations: changed } };
}
