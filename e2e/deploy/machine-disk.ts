import { globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DiskImage } from "../framework/disk-image.ts";

const sizeBytes = 3 * 1024 ** 3;

/** A disk of a machine, for what etcd, containerd and the kubelet keep. */
export class MachineDisk {
  readonly #image: DiskImage;
  readonly #scratch: string;

  private constructor(image: DiskImage, scratch: string) {
    this.#image = image;
    this.#scratch = scratch;
  }

  /** In memory: only limits make it slow. @throws Error where limits cannot be set */
  static async make(): Promise<MachineDisk> {
    const scratch = mkdtempSync("/dev/shm/cox-disk-");
    const image = await DiskImage.mount(join(scratch, "image"), sizeBytes);
    if (image === undefined) throw new Error("writes to a disk cannot be limited here");
    for (const name of ["containerd", "etcd", "kubelet"]) mkdirSync(join(image.folder, name));
    return new MachineDisk(image, scratch);
  }

  get folder(): string {
    return this.#image.folder;
  }

  /** Of each group of the machine. @param cgroups those of its root @param writesPerSecond 0: no limit */
  limit(cgroups: readonly string[], writesPerSecond: number): void {
    const files = cgroups.flatMap((folder) => globSync(join(folder, "**/blkio.throttle.write_iops_device")));
    for (const file of files) this.#image.limit(dirname(file), writesPerSecond);
  }

  async remove(): Promise<void> {
    await this.#image.remove();
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}
