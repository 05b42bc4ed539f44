import { inMemory } from "./memory-files.ts";
import { downwardFiles } from "./payload.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** Downward API volumes, on tmpfs; refreshed when the Pod changes. Source: pkg/volume/downwardapi */
export const downwardApi: VolumePlugin = {
  name: "kubernetes.io~downward-api",
  refreshed: true,
  supports: (volume) => volume.downwardAPI !== undefined,
  async setUp(context) {
    const { pod, volume, downward } = context;
    const { items = [], defaultMode = 0o644 } = volume.downwardAPI ?? {};
    return inMemory(context, downwardFiles(pod, items, defaultMode, downward));
  },
};
