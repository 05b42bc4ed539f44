import { migratedPlugins } from "@coxswain/apimachinery/volumes/migration";
import type { VolumePlugin } from "./volume.ts";

/** A volume of a driver that stands in the Pod: made for it alone, or a disk of an in-tree plugin. Source: pkg/volume/csi */
export const csiInline: VolumePlugin = {
  name: "kubernetes.io~csi",
  supports: (volume) =>
    volume.csi !== undefined || migratedPlugins.some(({ source }) => volume[source as keyof typeof volume] !== undefined),
  async setUp({ pod, volume, csi }) {
    const made = await csi?.inline(pod, volume);
    if (made === undefined) throw new Error("no volume plugin matched");
    return made;
  },
};
