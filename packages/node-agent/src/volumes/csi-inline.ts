import { migratedPlugins } from "@coxswain/apimachinery/volumes/migration";
import type { VolumePlugin } from "./volume-plugin.ts";

/** CSI volumes in the Pod's spec: ephemeral volumes, and in-tree volumes that are migrated to CSI. Source: pkg/volume/csi */
export const csiInline: VolumePlugin = {
  name: "kubernetes.io~csi",
  supports: (volume) => volume.csi !== undefined || migratedPlugins.some(({ source }) => volume[source] !== undefined),
  async setUp({ pod, volume, csi }) {
    const made = await csi?.inline(pod, volume);
    if (made === undefined) throw new Error("no volume plugin matched");
    return made;
  },
};
