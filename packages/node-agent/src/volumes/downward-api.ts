import { writeAtomically } from "./atomic-writer.ts";
import { memoryDir } from "./empty-dir.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { downwardFiles } from "./payload.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** Downward API volumes, on tmpfs; refreshed when the Pod changes. Source: pkg/volume/downwardapi */
export const downwardApi: VolumePlugin = {
  name: "kubernetes.io~downward-api",
  refreshed: true,
  supports: (volume) => volume.downwardAPI !== undefined,
  async setUp({ pod, volume, dir, mounter, downward, now, operations }) {
    const { items = [], defaultMode = 0o644 } = volume.downwardAPI ?? {};
    const files = downwardFiles(pod, items, defaultMode, downward);
    await memoryDir(dir, mounter);
    if (await writeAtomically(dir, files, now))
      await setVolumeOwnership(dir, pod, { readOnly: true, policy: false, plugin: pluginOf(volume), operations });
    return { path: dir, readOnly: true };
  },
};
