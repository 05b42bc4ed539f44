import type { FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { VolumeAttachment, VolumeAttachmentSource } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
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
  /** Name in messages: that of the PersistentVolume. */
  readonly label: string;
  /** Attachable to one node at a time only. */
  readonly exclusive: boolean;
}

/** Attached by creating a VolumeAttachment. */
export interface CsiVolume extends Attachable {
  readonly driver: string;
  readonly source: VolumeAttachmentSource;
}

/** Attached by executing the flex driver. */
export interface AttachableFlexVolume extends Attachable {
  readonly flex: FlexVolume;
}

/** Plugin name in metrics. */
export function pluginOf(id: VolumeId): string {
  const csi = parseVolumeId(id);
  return csi === undefined ? (parsePluginVolumeId(id)?.plugin ?? "") : `kubernetes.io/csi:${csi.driver}`;
}

/** Volume id of a CSI spec; undefined for other volumes. */
export function idOfSpec(spec: PersistentVolumeSpec | undefined): VolumeId | undefined {
  return spec?.csi === undefined ? undefined : volumeId(spec.csi.driver, spec.csi.volumeHandle);
}

/**
 * The attachable form of a CSI volume.
 * @param volume for a migrated in-tree volume, its CSI translation
 * @returns undefined when it is not a CSI volume
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

/**
 * The attachable form of a flex volume.
 * @param stored its PersistentVolume; undefined for an inline volume, which has no access modes and is treated as shareable
 */
export function attachableFlex(flex: FlexVolume, stored?: PersistentVolume): AttachableFlexVolume {
  const exclusive = stored !== undefined && isExclusive(stored);
  return { id: pluginVolumeId(flex.driver, flex.name), label: flex.name, flex, exclusive };
}

function isExclusive({ spec: { accessModes = [] } }: PersistentVolume): boolean {
  return accessModes.length > 0 && !accessModes.some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
}

/** The VolumeAttachment that makes the driver's external-attacher attach the volume; its name depends on volume and node only. */
export function newAttachment(volume: CsiVolume, node: string): VolumeAttachment {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volume.id, node) },
    spec: { attacher: volume.driver, nodeName: node, source: volume.source },
  };
}

/** Result of resolving a Pod's volume; `unknown` when its claim is not bound or not in the cache yet. */
export type Resolved = AttachableVolume | "not attached" | "unknown";
