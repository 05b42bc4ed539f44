import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Source: pkg/apis/core/v1/defaults.go */
export function defaultPersistentVolume(volume: PersistentVolume): void {
  volume.status ??= {};
  volume.status.phase ||= "Pending";
  volume.spec ??= {};
  const { spec } = volume;
  spec.persistentVolumeReclaimPolicy ||= "Retain";
  spec.volumeMode ??= "Filesystem";
  defaultSource(spec);
}

/** Defaults of the volume source; also used for inline volumes of VolumeAttachments. */
export function defaultSource(spec: PersistentVolumeSpec): void {
  if (spec.hostPath) spec.hostPath.type ??= "";
  if (spec.iscsi) spec.iscsi.iscsiInterface ||= "default";
  if (spec.rbd) {
    spec.rbd.pool ||= "rbd";
    spec.rbd.user ||= "admin";
    spec.rbd.keyring ||= "/etc/ceph/keyring";
  }
  if (spec.azureDisk) {
    spec.azureDisk.cachingMode ??= "ReadWrite";
    spec.azureDisk.kind ??= "Shared";
    spec.azureDisk.fsType ??= "ext4";
    spec.azureDisk.readOnly ??= false;
  }
  if (spec.scaleIO) {
    spec.scaleIO.storageMode ||= "ThinProvisioned";
    spec.scaleIO.fsType ||= "xfs";
  }
}
