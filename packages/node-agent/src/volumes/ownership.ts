import { chmod, lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import type { NodePod } from "../pods/pod.ts";

const readWrite = 0o660;
const readOnly = 0o440;
const search = 0o110;
const setGroupId = 0o2000;

/**
 * Gives a volume's files to the Pod's fsGroup: group owner, group may read (and write), folders hand their group on.
 * With OnRootMismatch nothing is walked when the volume's own folder is right already.
 * @param options.plugin what the walk is observed as
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
  if (info.isSymbolicLink()) return; // a mode of a link is that of its target
  const folder = info.isDirectory();
  await chmod(path, (info.mode & 0o7777) | mask | (folder ? search | setGroupId : 0));
  if (!folder) return;
  for (const name of await readdir(path)) await walk(join(path, name), group, mask);
}

/** The user that all containers of a Pod run as, when it is one and the same: tokens belong to it. */
export function commonUser(pod: NodePod): number | undefined {
  let common: number | undefined;
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
    if (user === undefined || (common !== undefined && common !== user)) return undefined;
    common = user;
  }
  return common;
}
