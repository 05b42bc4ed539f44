import type { Stats } from "node:fs";
import { chmod, lchown, lstat, opendir } from "node:fs/promises";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import type { NodePod } from "../pod/pod.ts";

const readWrite = 0o660;
const readOnly = 0o440;
const search = 0o110;
const setGroupId = 0o2000;

/**
 * Applies the Pod's fsGroup to a volume's files: sets the group, adds group read (and write) permission, and sets setgid
 * on directories. With OnRootMismatch the walk is skipped when the volume's root already has the right owner and mode.
 * A file system that refuses a change (e.g. NFS with root_squash) is logged only, as upstream does.
 * @param options.plugin label of the observed operation
 * @throws Error when a folder cannot be listed, or a file disappears during the walk
 * Source: pkg/volume/volume_linux.go SetVolumeOwnership
 */
export async function setVolumeOwnership(
  dir: string,
  pod: NodePod,
  options: { readOnly: boolean; policy: boolean; plugin: string; operations: BeginOperation; log: Logger },
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
  const { log } = options;
  const change = async (path: Buffer, info: Stats): Promise<void> => {
    const refused = (err: unknown): void =>
      log.error("cannot give a volume's file to fsGroup", err, { path: path.toString(), group });
    await lchown(path, info.uid, group).catch(refused);
    if (info.isSymbolicLink()) return; // chmod would change the target
    await chmod(path, (info.mode & 0o7777) | mask | (info.isDirectory() ? search | setGroupId : 0)).catch(refused);
  };
  await observed(end, () => walk(Buffer.from(dir), change));
}

/**
 * Folders come after what is in them: with OnRootMismatch, the root of an interrupted walk must not look finished. A folder is read in parts,
 * since its user decides how many files it has, and names need not be UTF-8.
 */
async function walk(path: Buffer, change: (path: Buffer, info: Stats) => Promise<void>): Promise<void> {
  const info = await lstat(path);
  if (info.isDirectory()) {
    const encoding = "buffer" as BufferEncoding; // cast: as for readdir, but missing in the types
    for await (const { name } of await opendir(path, { encoding, bufferSize: 256 }))
      await walk(Buffer.concat([path, Buffer.from("/"), name as unknown as Buffer]), change); // cast: by its encoding
  }
  await change(path, info);
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
