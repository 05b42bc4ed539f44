import { chmod, lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import type { NodePod } from "../pod/pod.ts";

const readWrite = 0o660;
const readOnly = 0o440;
const search = 0o110;
const setGroupId = 0o2000;

/**
 * Applies the Pod's fsGroup to a volume's files: sets the group, adds group read (and write) permission, and sets setgid
 * on directories. With OnRootMismatch the walk is skipped when the volume's root already has the right owner and mode.
 * @param options.plugin label of the observed operation
 * Source: pkg/volume/volume_linux.go SetVolumeOwnership
 */
export async function setVolumeOwnership(
  dir: string,
  pod: NodePod,
  options: { readOnly: boolean; policy: boolean; plugin: string; operations: BeginOperation },
): Promise<void> {
  const group = pod.spec.securityContext?.fsGroup;
  if (group === undefined) return;
  const mask = options.readOnly ? readOnly : readWrite;
  if (options.policy && pod.spec.securityContext?.fsGroupChangePolicy === "OnRootMismatch") {
    const info = await lstat(dir);
    const wanted = mask | search;
    if (info.gid === group && (info.mode & wanted) === wanted && (info.mode & setGroupId) !== 0) return;
  }
  const end = options.operations(options.plugin, "volume_fsgroup_recursive_apply");
  await observed(end, () => walk(dir, group, mask));
}

async function walk(path: string, group: number, mask: number): Promise<void> {
  const info = await lstat(path);
  await lchown(path, info.uid, group);
  if (info.isSymbolicLink()) return; // chmod would change the target
  const folder = info.isDirectory();
  await chmod(path, (info.mode & 0o7777) | mask | (folder ? search | setGroupId : 0));
  if (!folder) return;
  for (const name of await readdir(path)) await walk(join(path, name), group, mask);
}

/** The user ID that all containers of a Pod run as; undefined when they differ. Token files are owned by it. */
export function commonUser(pod: NodePod): number | undefined {
  let common: number | undefined;
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
    if (user === undefined || (common !== undefined && common !== user)) return undefined;
    common = user;
  }
  return common;
}
