import type { VolumePlugin } from "./volume-plugin.ts";

/** FlexVolumes in the Pod's spec. Source: pkg/volume/flexvolume */
export const flexInline: VolumePlugin = {
  name: "kubernetes.io~flexvolume",
  supports: (volume) => volume.flexVolume !== undefined,
  async setUp({ pod, volume, flex }) {
    const made = await flex?.inline(pod, volume);
    if (made === undefined) throw new Error("no volume plugin matched");
    return made;
  },
};
