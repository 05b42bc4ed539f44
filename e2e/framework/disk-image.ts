import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { exec, tryExec } from "@coxswain/dev-cluster/commands";

/** Mount point of the cgroup hierarchy with limits for block devices. */
export const blkio = "/sys/fs/cgroup/blkio";
const limitFile = "blkio.throttle.write_iops_device";

/** Whether this machine has the blkio controller of cgroup v1. */
export const canLimitWrites = (): boolean => existsSync(join(blkio, limitFile));

/** A file system in an image file whose write rate can be limited for a cgroup, to simulate a busy or failing disk. */
export class DiskImage {
  readonly folder: string;
  readonly #file: string;
  /** `major:minor` of its block device. */
  readonly #device: string;

  private constructor(file: string, folder: string, device: string) {
    this.#file = file;
    this.folder = folder;
    this.#device = device;
  }

  /**
   * @param file path of the image; the mount point is created beside it
   * @returns undefined on a machine that cannot limit writes or has no loop devices
   */
  static async mount(file: string, sizeBytes: number): Promise<DiskImage | undefined> {
    if (!canLimitWrites()) return undefined;
    const folder = `${file}.mounted`;
    mkdirSync(folder, { recursive: true });
    await exec("truncate", ["--size", String(sizeBytes), file]);
    await exec("mkfs.ext4", ["-q", "-F", file]);
    if ((await tryExec("mount", ["-o", "loop", file, folder])) === undefined) return undefined;
    const device = (await exec("findmnt", ["--noheadings", "--output", "SOURCE", folder])).trim();
    return new DiskImage(file, folder, readFileSync(`/sys/class/block/${basename(device)}/dev`, "utf8").trim());
  }

  /** Limits the writes of processes in a blkio group, excluding its child groups. @param writesPerSecond 0: no limit */
  limit(group: string, writesPerSecond: number): void {
    writeFileSync(join(group, limitFile), `${this.#device} ${writesPerSecond}`);
  }

  async remove(): Promise<void> {
    await tryExec("umount", ["--lazy", this.folder]);
    rmSync(this.#file, { force: true });
  }
}
