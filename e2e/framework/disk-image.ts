import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { exec, tryExec } from "@coxswain/dev-cluster/commands";

/** Where the groups are that have limits for disks. */
export const blkio = "/sys/fs/cgroup/blkio";
const limitFile = "blkio.throttle.write_iops_device";

/** Whether this machine has the blkio controller of cgroup v1. */
export const canLimitWrites = (): boolean => existsSync(join(blkio, limitFile));

/** A file system in an image file, to which processes can be given a limit of writes, as on a busy or failing disk. */
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
   * @param file path of the image; its folder is beside it
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

  /** Limits what the processes of a blkio group write to it, not those of groups below. @param writesPerSecond 0: no limit */
  limit(group: string, writesPerSecond: number): void {
    writeFileSync(join(group, limitFile), `${this.#device} ${writesPerSecond}`);
  }

  async remove(): Promise<void> {
    await tryExec("umount", ["--lazy", this.folder]);
    rmSync(this.#file, { force: true });
  }
}
