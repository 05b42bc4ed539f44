import { createHash } from "node:crypto";

/** Unique volume name, `kubernetes.io/csi/<driver>^<handle>` for CSI; identifies the disk regardless of API objects. */
export type VolumeId = string;

const prefix = "kubernetes.io/csi/";

/** Name of a CSI volume in `volumesInUse` and `volumesAttached` of a node's status. */
export function volumeId(driver: string, handle: string): VolumeId {
  return `${prefix}${driver}^${handle}`;
}

/** @returns undefined for names that are not of this form, e.g. of in-tree plugins */
export function parseVolumeId(id: string): { driver: string; handle: string } | undefined {
  const mark = id.indexOf("^");
  if (!id.startsWith(prefix) || mark < 0) return undefined;
  return { driver: id.slice(prefix.length, mark), handle: id.slice(mark + 1) };
}

/** Unique name of a volume that is not CSI, `<plugin>/<name>`; for flex volumes the plugin is the driver. */
export function pluginVolumeId(plugin: string, name: string): VolumeId {
  return `${plugin}/${name}`;
}

/** @returns undefined unless the text is `<vendor>/<plugin>/<name>`. Source: pkg/volume/util SplitUniqueName */
export function parsePluginVolumeId(id: string): { plugin: string; name: string } | undefined {
  const [vendor, plugin, ...name] = id.split("/");
  if (vendor === undefined || plugin === undefined || name.length === 0) return undefined;
  return { plugin: `${vendor}/${plugin}`, name: name.join("/") };
}

/**
 * Name of the VolumeAttachment, which controllers, CSI drivers and kubelets derive from driver, handle and node alike.
 * Source: pkg/volume/csi getAttachmentName
 */
export function attachmentName(id: VolumeId, node: string): string {
  const { driver = "", handle = "" } = parseVolumeId(id) ?? {};
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}
