import { readdir, readlink, rm, unlink } from "node:fs/promises";
import { join, sep } from "node:path";

/** `<namespace>_<name>_<uid>`: the directory of a Pod's container logs. */
export function podLogDirectory(podLogsDir: string, pod: { metadata: { name: string; namespace: string; uid: string } }): string {
  const { namespace, name, uid } = pod.metadata;
  return join(podLogsDir, `${namespace}_${name}_${uid}`);
}

/**
 * Removes the logs of a Pod and the links to them. Directories of unknown Pods are not touched: several agents may share the
 * log directory.
 */
export async function removePodLogs(dirs: { podLogsDir: string; containerLogsDir: string }, uid: string): Promise<void> {
  const folders = (await readdir(dirs.podLogsDir).catch((): string[] => []))
    .filter((name) => name.endsWith(`_${uid}`))
    .map((name) => join(dirs.podLogsDir, name));
  if (folders.length === 0) return;
  for (const name of await readdir(dirs.containerLogsDir).catch((): string[] => [])) {
    const link = join(dirs.containerLogsDir, name);
    const target = await readlink(link).catch(() => "");
    if (folders.some((folder) => target.startsWith(folder + sep))) await unlink(link).catch(() => undefined);
  }
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
}
