import { createHash } from "node:crypto";

/** `kubernetes.io/csi/<driver>^<handle>`: the same disk has the same id, whichever object stands for it. */
export type VolumeId = string;

const prefix = "kubernetes.io/csi/";

/** As a node's status lists what it uses and what is attached to it. */
export function volumeId(driver: string, handle: string): VolumeId {
  return `${prefix}${driver}^${handle}`;
}

/** @returns undefined for names that are not ours: of in-tree plugins, of another control plane */
export function parseVolumeId(id: string): { driver: string; handle: string } | undefined {
  const mark = id.indexOf("^");
  if (!id.startsWith(prefix) || mark < 0) return undefined;
  return { driver: id.slice(prefix.length, mark), handle: id.slice(mark + 1) };
}

/** `<plugin>/<name>`, the id of a volume that is not CSI's; of flex volumes the driver is the plugin. */
export function pluginVolumeId(plugin: string, name: string): VolumeId {
  return `${plugin}/${name}`;
}

/** @returns undefined for what has not the two parts of a plugin's name and a volume's. Source: pkg/volume/util SplitUniqueName */
export function parsePluginVolumeId(id: string): { plugin: string; name: string } | undefined {
  const [vendor, plugin, ...name] = id.split("/");
  if (vendor === undefined || plugin === undefined || name.length === 0) return undefined;
  return { plugin: `${vendor}/${plugin}`, name: name.join("/") };
}

/**
 * Of the VolumeAttachment: drivers, controllers and node agents make the same name of the same three things.
 * Source: pkg/volume/csi getAttachmentName
 */
export function attachmentName(id: VolumeId, node: string): string {
  const { driver = "", handle = "" } = parseVolumeId(id) ?? {};
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}
