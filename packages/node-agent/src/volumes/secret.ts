import { inMemory } from "./memory-files.ts";
import { secretFiles } from "./payload.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** Secret volumes, on tmpfs; refreshed when the object changes. Source: pkg/volume/secret */
export const secret: VolumePlugin = {
  name: "kubernetes.io~secret",
  refreshed: true,
  supports: (volume) => volume.secret !== undefined,
  async setUp(context) {
    const { pod, volume, objects, turns } = context;
    const { secretName = "", items, optional, defaultMode = 0o644 } = volume.secret ?? {};
    const source = { name: secretName, items, optional };
    return inMemory(context, await secretFiles(objects, pod.metadata.namespace, source, defaultMode, turns));
  },
};
