import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { blkio, DiskImage } from "../framework/disk-image.ts";

export interface SlowDisk {
  /** Folder of the file system. */
  readonly folder: string;
  /** Throttles writes of this process to it from now on. */
  slowDown(pid: number): void;
}

const writesPerSecond = 30;
const sizeBytes = 512 * 1024 * 1024;

/**
 * A file system with a limit of 30 writes a second for a process, as on a busy disk: each fsync takes at least 33 ms.
 * @param file path of the image
 * @returns undefined where no limit can be set
 */
export async function mountSlowDisk(
  t: { after(fn: () => void | Promise<void>): void },
  file: string,
): Promise<SlowDisk | undefined> {
  const disk = await DiskImage.mount(file, sizeBytes);
  if (disk === undefined) return undefined;
  const group = join(blkio, `cox-slow-disk-${basename(file)}-${process.pid}`);
  t.after(async () => {
    await disk.remove();
    try {
      rmdirSync(group);
    } catch {
      // a process in it is still exiting
    }
  });
  mkdirSync(group);
  disk.limit(group, writesPerSecond);
  return { folder: disk.folder, slowDown: (pid) => writeFileSync(join(group, "cgroup.procs"), String(pid)) };
}
