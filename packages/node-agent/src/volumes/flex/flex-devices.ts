import { join } from "node:path";
import { type FlexDriver, type FlexDrivers, NotSupported } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { pluginVolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { attachedHere } from "../attached-here.ts";
import { newSerial } from "../csi/serial.ts";
import { formatAndMount } from "../format-and-mount.ts";
import { isMounted, type Mounter } from "../mount.ts";
import { namesIn } from "../names-in.ts";
import type { ReleaseUnused } from "../release-unused.ts";
import { newReleaseUnused } from "../release-unused.ts";
import { VolumeError, VolumeWaits } from "../volume.ts";
import { removeUnmounted } from "./remove-unmounted.ts";

export interface FlexDevicesOptions {
  readonly drivers: FlexDrivers;
  /** `<root-dir>/plugins` */
  readonly pluginsDir: string;
  readonly podsDir: string;
  readonly nodeName: string;
  /** The Node object as stored in the API server. */
  readonly node: () => Node | undefined;
  /**
   * True when the attach/detach controller attaches; false when the agent does (`--enable-controller-attach-detach=false`,
   * or standalone mode).
   */
  readonly byController: boolean;
  readonly mounter: Mounter;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onInUseChange: () => void;
  readonly operations: BeginOperation;
}

interface Used {
  readonly driver: string;
  readonly name: string;
  readonly pods: Set<string>;
}

/**
 * Attachable FlexVolumes: attached to this node and mounted once for all Pods that use them.
 * Source: pkg/volume/flexvolume attacher.go, detacher.go; pkg/kubelet/volumemanager/reconciler
 */
export class FlexDevices {
  readonly #options: FlexDevicesOptions;
  /** Volumes by ID, from their first use by a Pod until they are unmounted. */
  readonly #used = new Map<string, Used>();
  readonly #serial = newSerial();
  readonly #releaseUnused: ReleaseUnused;

  constructor(options: FlexDevicesOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#releaseUnused = newReleaseUnused({ serial: this.#serial, release: (id) => this.#release(id), clock, log });
  }

  /** Records that a Pod uses a volume, so that the node's status lists it as in use. */
  want(uid: string, volume: FlexVolume): void {
    this.#note(volume.driver, volume.name).pods.add(uid);
  }

  /**
   * Attaches and mounts a volume, then calls `give`.
   * @param give mounts the volume for the Pod; gets the global mount path
   * @throws VolumeWaits while the volume is not attached; VolumeError with the failed step
   */
  use<T>(uid: string, driver: FlexDriver, volume: FlexVolume, give: (mountPath: string) => Promise<T>): Promise<T> {
    return this.#serial(pluginVolumeId(volume.driver, volume.name), async () => {
      this.want(uid, volume); // again: the Pod's volumes may have been torn down while this call was queued
      const device = await step(
        this.#options.byController ? "MountVolume.WaitForAttach failed" : "AttachVolume.Attach failed",
        volume,
        () => this.#attach(driver, volume),
      );
      const found = await step("MountVolume.WaitForAttach failed", volume, () =>
        driver.call("waitforattach", device, driverOptions(volume)).then((answer) => answer.device, ifNotSupported(device)),
      );
      const mountPath = join(this.#mountsOf(volume.driver), volume.name);
      await step("MountVolume.MountDevice failed", volume, () => this.#mountDevice(driver, volume, found, mountPath));
      return give(mountPath);
    });
  }

  /** Records that all volumes of a Pod were unmounted. */
  leave(uid: string): void {
    for (const { pods } of this.#used.values()) pods.delete(uid);
  }

  /**
   * Unmounts volumes that no Pod uses any more. Failures are retried by a later call; a driver that hangs does not block
   * other volumes.
   * @returns resolves when all attempts have finished
   */
  collect(): Promise<void> {
    return this.#releaseUnused(this.#used.keys());
  }

  /** IDs of volumes that must stay attached to this node, for the node's status. */
  inUse(): readonly string[] {
    return [...this.#used.keys()];
  }

  /** Restores state from disk after a restart. Call before the node's status reports volumes in use. */
  async restore(): Promise<void> {
    const { podsDir, drivers } = this.#options;
    const uids = await namesIn(podsDir);
    for (const name of await drivers.names()) {
      const folders = [this.#mountsOf(name), ...uids.map((uid) => join(podsDir, uid, "volumes", name.replaceAll("/", "~")))];
      const left = (await Promise.all(folders.map(namesIn))).flat();
      // Drivers are only executed when there are directories that may be theirs.
      if (left.length === 0 || (await drivers.find(name))?.capabilities.attach !== true) continue;
      for (const volume of left) this.#note(name, volume);
    }
  }

  #mountsOf(driver: string): string {
    return join(this.#options.pluginsDir, "kubernetes.io/flexvolume", driver, "mounts");
  }

  #note(driver: string, name: string): Used {
    const id = pluginVolumeId(driver, name);
    const known = this.#used.get(id);
    if (known !== undefined) return known;
    const made: Used = { driver, name, pods: new Set() };
    this.#used.set(id, made);
    this.#options.onInUseChange();
    return made;
  }

  /** @returns the device path; empty when the driver reports none */
  async #attach(driver: FlexDriver, volume: FlexVolume): Promise<string> {
    const { nodeName } = this.#options;
    if (this.#options.byController)
      return attachedHere(this.#options.node(), pluginVolumeId(volume.driver, volume.name)).devicePath;
    const { device } = await observed(this.#options.operations(volume.driver, "volume_attach"), () =>
      driver.call("attach", driverOptions(volume), nodeName).catch(ifNotSupported({ device: "" })),
    );
    return device;
  }

  async #mountDevice(driver: FlexDriver, volume: FlexVolume, device: string, mountPath: string): Promise<void> {
    const { mounter } = this.#options;
    // The driver's name for the volume is not used, but the call may reject the volume.
    await driver.call("getvolumename", driverOptions(volume)).catch((err: Error) => {
      if (err instanceof NotSupported) return;
      throw new Error(`GetVolumeName failed from getDeviceMountPath: ${err.message}`, { cause: err });
    });
    await makeFolder(mountPath, 0o750);
    if (await isMounted(mountPath, mounter)) return;
    try {
      await driver.call("mountdevice", mountPath, device, driverOptions(volume));
    } catch (err) {
      if (!(err instanceof NotSupported)) throw err;
      const { fsType, readOnly } = volume;
      if (device !== "") await formatAndMount({ device, target: mountPath, fsType, readOnly }, mounter);
    }
  }

  async #unmountDevice(driver: FlexDriver, mountPath: string): Promise<void> {
    const { mounter } = this.#options;
    if (await isMounted(mountPath, mounter)) {
      await driver.call("unmountdevice", mountPath).catch((err) => {
        if (!(err instanceof NotSupported)) throw err;
        return mounter.unmount(mountPath);
      });
    }
    await removeUnmounted(mountPath);
  }

  async #podsWith(driver: string, name: string): Promise<boolean> {
    const { podsDir } = this.#options;
    const folder = driver.replaceAll("/", "~");
    for (const uid of await namesIn(podsDir))
      if ((await namesIn(join(podsDir, uid, "volumes", folder))).includes(name)) return true;
    return false;
  }

  /** Unmounts and detaches a volume once no Pod uses it. */
  async #release(id: string): Promise<void> {
    const { drivers, nodeName } = this.#options;
    const unused = this.#used.get(id);
    if (unused === undefined) return;
    const { driver: driverName, name, pods } = unused;
    if (pods.size > 0 || (await this.#podsWith(driverName, name))) return;
    const driver = await drivers.find(driverName);
    if (driver === undefined) throw new Error("no volume plugin matched");
    const step = (operation: string): ReturnType<BeginOperation> => this.#options.operations(driverName, operation);
    await observed(step("unmount_device"), () => this.#unmountDevice(driver, join(this.#mountsOf(driverName), name)));
    if (!this.#options.byController) {
      await observed(step("volume_detach"), () => driver.call("detach", name, nodeName).catch(ifNotSupported(undefined)));
    }
    this.#used.delete(id);
    this.#options.onInUseChange();
  }
}

async function step<T>(name: VolumeError["step"], volume: FlexVolume, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw err instanceof VolumeWaits ? err : new VolumeError(name, volume.name, err);
  }
}

/** An error handler that returns `instead` when the driver does not support the command. */
const ifNotSupported =
  <T>(instead: T) =>
  (err: unknown): T => {
    if (err instanceof NotSupported) return instead;
    throw err;
  };
