import { statfs } from "node:fs/promises";
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ContainerRuntime } from "./runtime.ts";

export interface ImageGcOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  highThresholdPercent: number;
  lowThresholdPercent: number;
  minAgeMs: number;
  /** Never removed: `--pod-infra-container-image`. */
  sandboxImage: string;
  event: (type: "Normal" | "Warning", reason: string, message: string) => void;
  /** Size of the file system that contains images; statfs by default. */
  filesystem?: (mountPoint: string) => Promise<{ capacityBytes: number; availableBytes: number }>;
}

export interface ImageGc {
  /**
   * When disk usage is above the high threshold, removes the least recently used images until it is below the low one.
   * @throws Error when not enough could be freed, also recorded as an event; and when an image could not be removed
   */
  collect(): Promise<void>;
  /** Removes every unused image that is not younger than the minimum age, under disk pressure. */
  removeUnused(): Promise<void>;
}

interface ImageUse {
  firstSeen: number;
  lastUsed: number;
  sizeBytes: number;
}

/**
 * Image ages are counted from when this process first saw the image; images that were there before it are old.
 * Source: pkg/kubelet/images/image_gc_manager.go
 */
export function newImageGc(options: ImageGcOptions): ImageGc {
  const { runtime, clock, log } = options;
  const filesystem = options.filesystem ?? statFileSystem;
  const uses = new Map<string, ImageUse>();
  let hasLooked = false;

  /** Updates when each image was last used. @returns IDs of the images in use */
  async function look(): Promise<Set<string>> {
    const now = clock.monotonic();
    // Looked up by the runtime, which knows the image by each of its names.
    const ofSandboxes = runtime.imageStatus(options.sandboxImage).catch(() => undefined);
    const [images, containers, sandboxImage] = await Promise.all([runtime.listImages(), runtime.listContainers(), ofSandboxes]);
    const inUse = new Set(containers.map((container) => container.imageRef));
    for (const image of images) {
      const used = inUse.has(image.id) || image.pinned || image.id === sandboxImage?.id;
      if (used) inUse.add(image.id);
      const known = uses.get(image.id);
      uses.set(image.id, {
        firstSeen: known?.firstSeen ?? (hasLooked ? now : Number.NEGATIVE_INFINITY),
        lastUsed: used ? now : (known?.lastUsed ?? 0),
        sizeBytes: image.size,
      });
    }
    hasLooked = true;
    const present = new Set(images.map((image) => image.id));
    for (const id of uses.keys()) if (!present.has(id)) uses.delete(id);
    return inUse;
  }

  return {
    async collect() {
      const inUse = await look();
      if (options.highThresholdPercent >= 100) return;
      const mountPoint = (await runtime.imageFilesystems())[0]?.fsId?.mountpoint;
      if (mountPoint === undefined) return;
      const { capacityBytes, availableBytes } = await filesystem(mountPoint);
      const fail = (reason: string, message: string): never => {
        options.event("Warning", reason, message);
        throw new Error(message);
      };
      if (capacityBytes === 0) fail("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
      const usedPercent = 100 - Math.trunc((availableBytes * 100) / capacityBytes);
      if (usedPercent < options.highThresholdPercent) return;
      const wanted = Math.trunc((capacityBytes * (100 - options.lowThresholdPercent)) / 100) - availableBytes;
      log.info("Disk usage on image filesystem is over the high threshold, trying to free bytes down to the low threshold", {
        usage: usedPercent,
        amountToFree: wanted,
      });
      const { freed, failures } = await free(wanted, inUse);
      if (failures.length > 0) throw removalFailure(wanted, freed, failures);
      if (freed >= wanted) return;
      const what = `Wanted to free ${wanted} bytes, but freed ${freed} bytes`;
      fail("FreeDiskSpaceFailed", `failed to garbage collect required amount of images. ${what}`);
    },
    async removeUnused() {
      await free(Number.POSITIVE_INFINITY, await look());
    },
  };

  async function free(wanted: number, inUse: ReadonlySet<string>): Promise<{ freed: number; failures: string[] }> {
    const now = clock.monotonic();
    const candidates = [...uses]
      .filter(([id, use]) => !inUse.has(id) && now - use.firstSeen >= options.minAgeMs)
      .sort(([, a], [, b]) => a.lastUsed - b.lastUsed || a.firstSeen - b.firstSeen || 0);
    let freed = 0;
    const failures: string[] = [];
    for (const [id, use] of candidates) {
      if (freed >= wanted) break;
      try {
        await runtime.removeImage(id);
        uses.delete(id);
        freed += use.sizeBytes;
      } catch (err) {
        log.error("cannot remove an image", err, { image: id });
        failures.push(messageOf(err));
      }
    }
    return { freed, failures };
  }
}

function removalFailure(wanted: number, freed: number, failures: readonly string[]): Error {
  const what = `wanted to free ${wanted} bytes, but freed ${freed} bytes space with errors in image deletion`;
  return new Error(`${what}: ${joinedFailures(failures)}`);
}

async function statFileSystem(mountPoint: string): Promise<{ capacityBytes: number; availableBytes: number }> {
  const info = await statfs(mountPoint);
  return { capacityBytes: info.blocks * info.bsize, availableBytes: info.bavail * info.bsize };
}
