import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";
import { driverOf } from "@coxswain/apimachinery/volumes/migration";

/** Keeps the PersistentVolume until its storage is deleted, by this controller or by an external provisioner. */
export const ownDeletion = "kubernetes.io/pv-controller";
const provisionersDeletion = "external-provisioner.volume.kubernetes.io/finalizer";

/**
 * With HonorPVReclaimPolicy, a volume with policy Delete keeps a finalizer until its storage is deleted, even when the
 * PersistentVolume is deleted before its claim. This controller handles only in-tree plugins; for migrated plugins the
 * external provisioner does.
 * @returns undefined when nothing changes
 * Source: pv_controller_base.go modifyDeletionFinalizers
 */
export function withDeletionFinalizers(
  volume: PersistentVolume,
  gates: { enabled(name: string): boolean },
): PersistentVolume | undefined {
  const provisioner = volume.metadata.annotations?.[provisionedBy] ?? "";
  if (!gates.enabled("HonorPVReclaimPolicy") || !provisioner.startsWith("kubernetes.io/")) return undefined;
  const { finalizers = [] } = volume.metadata;
  const isMigrated = driverOf(provisioner, gates) !== undefined;
  const needsFinalizer = !isMigrated && volume.spec.persistentVolumeReclaimPolicy === "Delete";
  const changed = finalizers.filter((name) =>
    name === ownDeletion ? needsFinalizer : isMigrated || name !== provisionersDeletion,
  );
  if (needsFinalizer && !changed.includes(ownDeletion)) changed.push(ownDeletion);
  const present = new Set(finalizers); // there may be 50,000
  if (changed.length === finalizers.length && changed.every((name) => present.has(name))) return undefined;
  return { ...volume, metadata: { ...volume.metadata, finalizers: changed } };
}
