import type { FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { VolumeAttachment, VolumeAttachmentSource } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import {
  attachmentName,
  parsePluginVolumeId,
  parseVolumeId,
  pluginVolumeId,
  type VolumeId,
  volumeId,
} from "@coxswain/apimachinery/volumes/volume-id";

/** A volume that has to be attached to a node before a Pod can use it there. */
export type AttachableVolume = CsiVolume | AttachableFlexVolume;

interface Attachable {
  readonly id: VolumeId;
  /** In messages: the persistent volume's name. */
  readonly label: string;
  /** Only to one node at a time. */
  readonly exclusive: boolean;
}

/** Its driver is told by a VolumeAttachment. */
export interface CsiVolume extends Attachable {
  readonly driver: string;
  readonly source: VolumeAttachmentSource;
}

/** Its driver is a program. */
export interface AttachableFlexVolume extends Attachable {
  readonly flex: FlexVolume;
}

/** As users of metrics know the plugin. */
export function pluginOf(id: VolumeId): string {
  const csi = parseVolumeId(id);
  return csi === undefined ? (parsePluginVolumeId(id)?.plugin ?? "") : `kubernetes.io/csi:${csi.driver}`;
}

/** The id of what a spec describes; undefined for what is not CSI. */
export function idOfSpec(spec: PersistentVolumeSpec | undefined): VolumeId | undefined {
  return spec?.csi === undefined ? undefined : volumeId(spec.csi.driver, spec.csi.volumeHandle);
}

/**
 * @param volume its CSI form, where a driver has taken over from an in-tree plugin
 * @returns undefined for what is not CSI
 */
export function attachable(volume: PersistentVolume): CsiVolume | undefined {
  const { csi } = volume.spec;
  if (csi === undefined) return undefined;
  const name = volume.metadata.name ?? "";
  return {
    id: volumeId(csi.driver, csi.volumeHandle),
    driver: csi.driver,
    label: name,
    source: { persistentVolumeName: name },
    exclusive: isExclusive(volume),
  };
}

/** @param stored absent for a volume that stands in the Pod: of those nobody knows whether they can be shared */
export function attachableFlex(flex: FlexVolume, stored?: PersistentVolume): AttachableFlexVolume {
  const exclusive = stored !== undefined && isExclusive(stored);
  return { id: pluginVolumeId(flex.driver, flex.name), label: flex.name, flex, exclusive };
}

function isExclusive({ spec: { accessModes = [] } }: PersistentVolume): boolean {
  return accessModes.length > 0 && !accessModes.some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
}

export function newAttachment(volume: CsiVolume, node: string): VolumeAttachment {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volume.id, node) },
    spec: { attacher: volume.driver, nodeName: node, source: volume.source },
  };
}
