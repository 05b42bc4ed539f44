import { type PayloadFile, writeAtomically } from "./atomic-writer.ts";
import { memoryDir } from "./empty-dir.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumeContext, VolumePlugin } from "./volume-plugin.ts";

/** Writes the files of a read-only volume to its tmpfs; those that have not changed stay. */
export async function inMemory(
  { pod, volume, dir, mounter, now, operations, log }: VolumeContext,
  files: ReadonlyMap<string, PayloadFile>,
): ReturnType<VolumePlugin["setUp"]> {
  await memoryDir(dir, mounter);
  if (await writeAtomically(dir, files, now))
    await setVolumeOwnership(dir, pod, { readOnly: true, policy: false, plugin: pluginOf(volume), operations, log });
  return { path: dir, readOnly: true };
}
