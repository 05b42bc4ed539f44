import { writeAtomically } from "./atomic-writer.ts";
import { openDir } from "./empty-dir.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { configMapFiles } from "./payload.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** ConfigMap volumes; refreshed when the object changes. Source: pkg/volume/configmap */
export const configMap: VolumePlugin = {
  name: "kubernetes.io~configmap",
  refreshed: true,
  supports: (volume) => volume.configMap !== undefined,
  async setUp({ pod, volume, dir, objects, now, operations, turns, log }) {
    const source = volume.configMap ?? {};
    const files = await configMapFiles(
      objects,
      pod.metadata.namespace,
      { ...source, name: source.name ?? "" },
      source.defaultMode ?? 0o644,
      turns,
    );
    await openDir(dir);
    if (await writeAtomically(dir, files, now))
      await setVolumeOwnership(dir, pod, { readOnly: true, policy: false, plugin: pluginOf(volume), operations, log });
    return { path: dir, readOnly: true };
  },
};
