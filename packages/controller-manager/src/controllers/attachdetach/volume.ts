import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { VolumeAttachment, VolumeAttachmentSource } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { attachmentName, type VolumeId, volumeId } from "@coxswain/apimachinery/volumes/volume-id";

/** A volume that has to be attached to a node before a Pod can use it there. */
export interface AttachableVolume {
  readonly id: VolumeId;
  readonly driver: string;
  readonly handle: string;
  /** In messages: the persistent volume's name. */
  readonly label: string;
  readonly source: VolumeAttachmentSource;
  /** Only to one node at a time. */
  readonly exclusive: boolean;
}

/** As users of metrics know the plugin. */
export function pluginName(driver: string): string {
  return `kubernetes.io/csi:${driver}`;
}

/** The id of what a spec describes; undefined for what is not CSI. */
export function idOfSpec(spec: PersistentVolumeSpec | undefined): VolumeId | undefined {
  return spec?.csi === undefined ? undefined : volumeId(spec.csi.driver, spec.csi.volumeHandle);
}

/**
 * @param volume its CSI form, where a driver has taken over from an in-tree plugin
 * @returns undefined for what is not CSI
 */
export function attachable(volume: PersistentVolume): AttachableVolume | undefined {
  const { csi, accessModes = [] } = volume.spec;
  if (csi === undefined) return undefined;
  const name = volume.metadata.name ?? "";
  const shared = accessModes.length === 0 || accessModes.some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
  return {
    id: volumeId(csi.driver, csi.volumeHandle),
    driver: csi.driver,
    handle: csi.volumeHandle,
    label: name,
    source: { persistentVolumeName: name },
    exclusive: !shared,
  };
}

export function newAttachment(volume: AttachableVolume, node: string): VolumeAttachment {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volume.id, node) },
    spec: { attacher: volume.driver, nodeName: node, source: volume.source },
  };
}
