import { writeAtomically } from "./atomic-writer.ts";
import { memoryDir } from "./empty-dir.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { secretFiles } from "./payload.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** Secret volumes, on tmpfs; refreshed when the object changes. Source: pkg/volume/secret */
export const secret: VolumePlugin = {
  name: "kubernetes.io~secret",
  refreshed: true,
  supports: (volume) => volume.secret !== undefined,
  async setUp({ pod, volume, dir, objects, mounter, now, operations }) {
    const { secretName = "", items, optional, defaultMode = 0o644 } = volume.secret ?? {};
    const files = await secretFiles(objects, pod.metadata.namespace, { name: secretName, items, optional }, defaultMode);
    await memoryDir(dir, mounter);
    if (await writeAtomically(dir, files, now))
      await setVolumeOwnership(dir, pod, { readOnly: true, policy: false, plugin: pluginOf(volume), operations });
    return { path: dir, readOnly: true };
  },
};
