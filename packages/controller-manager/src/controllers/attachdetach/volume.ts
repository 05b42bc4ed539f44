import { createHash } from "node:crypto";
import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { VolumeAttachment, VolumeAttachmentSource } from "@coxswain/apimachinery/schema/kinds/storage/v1";

/** `kubernetes.io/csi/<driver>^<handle>`: the same disk has the same id, whichever object stands for it. */
export type VolumeId = string;

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

const prefix = "kubernetes.io/csi/";

export function volumeId(driver: string, handle: string): VolumeId {
  return `${prefix}${driver}^${handle}`;
}

/** @returns undefined for names that are not ours: of in-tree plugins, of another control plane */
export function parseVolumeId(id: string): { driver: string; handle: string } | undefined {
  const mark = id.indexOf("^");
  if (!id.startsWith(prefix) || mark < 0) return undefined;
  return { driver: id.slice(prefix.length, mark), handle: id.slice(mark + 1) };
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

/**
 * Drivers and node agents make the same name of the same three things.
 * Source: pkg/volume/csi getAttachmentName
 */
export function attachmentName(id: VolumeId, node: string): string {
  const { driver = "", handle = "" } = parseVolumeId(id) ?? {};
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

export function newAttachment(volume: AttachableVolume, node: string): VolumeAttachment {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volume.id, node) },
    spec: { attacher: volume.driver, nodeName: node, source: volume.source },
  };
}
