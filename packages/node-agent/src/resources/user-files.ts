import { execFile } from "node:child_process";
import type { Stats } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { promisify } from "node:util";

/**
 * Directory trees that containers write to. They have as many files, levels and odd names as a user likes, so that only small ones are
 * read in this process: Node's `rm` takes a turn of 0.8 s for 300,000 files, and no path of more than 4,096 bytes can be opened.
 */

/** Disk usage: allocated bytes, files and directories. */
export interface TreeUsage {
  bytes: number;
  inodes: number;
}

const execute = promisify(execFile);

/** Entries of a tree that is read in this process. */
const mostEntries = 1_000;
/** Size of a directory that is read at once, in bytes; each entry takes at least 12. */
const mostDirectoryBytes = 64 * 1024;
/** Time for `du` to count a tree. */
const mostMs = 300_000;

/**
 * Usage of a file or directory tree, as `du` counts it: a file with several links once, and nothing on another file system. Symbolic links
 * are not followed. Zero when it does not exist.
 * @throws Error when `du` does not finish within five minutes
 * Source: pkg/volume/util/fs/fs.go DiskUsage
 */
export async function treeUsage(path: string): Promise<TreeUsage> {
  return (await usageOfSmall(path)) ?? { bytes: await du(path, "--block-size=1"), inodes: await du(path, "--inodes") };
}

/**
 * Removes a file or directory tree, but nothing on another file system. Nothing happens when it does not exist.
 * @throws Error when something of it cannot be removed
 */
export async function removeTree(path: string): Promise<void> {
  if ((await usageOfSmall(path)) !== undefined) return rm(path, { recursive: true, force: true });
  await execute("rm", ["-rf", "--one-file-system", "--", path]);
}

/** @returns undefined when the tree is too large or too deep to be read here, or has a file system mounted in it */
async function usageOfSmall(path: string): Promise<TreeUsage | undefined> {
  const usage: TreeUsage = { bytes: 0, inodes: 0 };
  const linked = new Set<number>();
  let device: number | undefined;
  let entries = 0;
  const left = [Buffer.from(path)]; // names need not be UTF-8
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    const info = await statOf(at);
    if (info === "too long") return undefined;
    if (info === undefined) continue;
    device ??= info.dev;
    if (info.dev !== device) return undefined; // Node's rm would empty a mounted file system
    if (info.nlink > 1 && !info.isDirectory() && linked.has(info.ino)) continue;
    if (info.nlink > 1) linked.add(info.ino);
    usage.bytes += info.blocks * 512;
    usage.inodes++;
    if (!info.isDirectory()) continue;
    if (info.size > mostDirectoryBytes) return undefined;
    const names = await readdir(at, { encoding: "buffer" }).catch((): Buffer[] => []);
    entries += names.length;
    if (entries > mostEntries) return undefined;
    for (const name of names) left.push(Buffer.concat([at, separator, name]));
  }
  return usage;
}

const separator = Buffer.from("/");

function statOf(path: Buffer): Promise<Stats | "too long" | undefined> {
  return lstat(path).catch((err: NodeJS.ErrnoException) => (err.code === "ENAMETOOLONG" ? "too long" : undefined));
}

/** Files that vanish meanwhile make `du` fail after it has printed the rest. */
async function du(path: string, unit: string): Promise<number> {
  const args = ["-n", "19", "du", "--summarize", "--one-file-system", unit, "--", path];
  const { stdout } = await execute("nice", args, { timeout: mostMs }).catch((err: { stdout?: string; killed?: boolean }) => {
    if (err.killed === true || !err.stdout) throw err;
    return { stdout: err.stdout };
  });
  return Number.parseInt(stdout, 10);
}
