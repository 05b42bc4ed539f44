import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { exec, tryExec } from "@coxswain/dev-cluster/commands";

export interface SlowDisk {
  /** Where its files lie. */
  readonly folder: string;
  /** Writes of this process to it are slow from now on. */
  slowDown(pid: number): void;
}

const writesPerSecond = 30;
const sizeBytes = 512 * 1024 * 1024;
const blkio = "/sys/fs/cgroup/blkio";

/**
 * A file system in a file, on which a process has 30 writes a second, as on a disk that is busy with others: each fsync takes at
 * least 33 ms.
 * @param file for its image
 * @returns undefined on a machine without the blkio controller of cgroup v1 or without loop devices
 */
export async function mountSlowDisk(
  t: { after(fn: () => void | Promise<void>): void },
  file: string,
): Promise<SlowDisk | undefined> {
  if (!existsSync(join(blkio, "blkio.throttle.write_iops_device"))) return undefined;
  const folder = `${file}.mounted`;
  const group = join(blkio, `cox-slow-disk-${basename(file)}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  await exec("truncate", ["--size", String(sizeBytes), file]);
  await exec("mkfs.ext4", ["-q", "-F", file]);
  if ((await tryExec("mount", ["-o", "loop", file, folder])) === undefined) return undefined;
  t.after(async () => {
    await tryExec("umount", ["--lazy", folder]);
    rmSync(file, { force: true });
    try {
      rmdirSync(group);
    } catch {
      // a process is still ending in it
    }
  });
  const device = (await exec("findmnt", ["--noheadings", "--output", "SOURCE", folder])).trim();
  const numbers = readFileSync(`/sys/class/block/${basename(device)}/dev`, "utf8").trim();
  mkdirSync(group);
  writeFileSync(join(group, "blkio.throttle.write_iops_device"), `${numbers} ${writesPerSecond}`);
  return { folder, slowDown: (pid) => writeFileSync(join(group, "cgroup.procs"), String(pid)) };
}
