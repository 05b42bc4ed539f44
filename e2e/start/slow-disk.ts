import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { exec, tryExec } from "@coxswain/dev-cluster/commands";

export interface SlowDisk {
  /** Folder of the file system. */
  readonly folder: string;
  /** Throttles writes of this process to it from now on. */
  slowDown(pid: number): void;
}

const writesPerSecond = 30;
const sizeBytes = 512 * 1024 * 1024;
const blkio = "/sys/fs/cgroup/blkio";

/**
 * A file system in an image file, with a limit of 30 writes a second for a process, as on a busy disk: each fsync takes at least
 * 33 ms.
 * @param file path of the image
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
      // a process in it is still exiting
    }
  });
  const device = (await exec("findmnt", ["--noheadings", "--output", "SOURCE", folder])).trim();
  const numbers = readFileSync(`/sys/class/block/${basename(device)}/dev`, "utf8").trim();
  mkdirSync(group);
  writeFileSync(join(group, "blkio.throttle.write_iops_device"), `${numbers} ${writesPerSecond}`);
  return { folder, slowDown: (pid) => writeFileSync(join(group, "cgroup.procs"), String(pid)) };
}
