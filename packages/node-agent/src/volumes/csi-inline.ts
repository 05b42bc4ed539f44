import type { VolumePlugin } from "./volume.ts";

/** A volume that a driver makes for this Pod alone. Source: pkg/volume/csi */
export const csiInline: VolumePlugin = {
  name: "kubernetes.io~csi",
  supports: (volume) => volume.csi !== undefined,
  async setUp({ pod, volume, csi }) {
    const made = await csi?.ephemeral(pod, volume);
    if (made === undefined) throw new Error("no volume plugin matched");
    return made;
  },
};
