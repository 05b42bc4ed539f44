import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import { type FlexDriver, type FlexDrivers, NotSupported } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { pluginVolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { attachedHere } from "../attached-here.ts";
import { newSerial } from "../csi/serial.ts";
import { formatAndMount } from "../format-and-mount.ts";
import { isMounted, type Mounter } from "../mount.ts";
import { namesIn } from "../names-in.ts";
import { newReleaseUnused } from "../release-unused.ts";
import { VolumeError, VolumeWaits } from "../volume.ts";
import { removeUnmounted } from "./remove-unmounted.ts";

/** Disks that drivers attach to this node, and mount once for all Pods that use them. */
export interface FlexDevices {
  /**
   * Has a disk that a Pod wants attached and mounted, and gives it to the Pod.
   * @param give mounts it for the Pod; gets where it is mounted
   * @throws VolumeWaits while it is not attached; VolumeError with the step that failed
   */
  use<T>(uid: string, driver: FlexDriver, volume: FlexVolume, give: (mountPath: string) => Promise<T>): Promise<T>;
  /** A Pod wants a disk, whether it is mounted for it already or not: the node says that it uses it from now on. */
  want(uid: string, volume: FlexVolume): void;
  /** A Pod has none of its volumes any more. */
  leave(uid: string): void;
  /**
   * Unmounts what no Pod uses any more; what fails is tried again at a later call, and what hangs keeps no other waiting.
   * @returns resolves when all that was tried has come to its end
   */
  collect(): Promise<void>;
  /** Volumes that must stay attached to this node, as its status lists them. */
  inUse(): readonly string[];
  /** Learns from the disk what an agent before this one has left; before the node says what is in use. */
  restore(): Promise<void>;
}

export interface FlexDevicesOptions {
  readonly drivers: FlexDrivers;
  /** `<root-dir>/plugins` */
  readonly pluginsDir: string;
  readonly podsDir: string;
  readonly nodeName: string;
  /** As the API server has it. */
  readonly node: () => Node | undefined;
  /** The controller attaches; otherwise the agent does (`--enable-controller-attach-detach=false`, or no API server). */
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

/** Source: pkg/volume/flexvolume attacher.go, detacher.go; pkg/kubelet/volumemanager/reconciler */
export function newFlexDevices(options: FlexDevicesOptions): FlexDevices {
  const { drivers, podsDir, nodeName, mounter, clock, log } = options;
  const mountsOf = (driver: string): string => join(options.pluginsDir, "kubernetes.io/flexvolume", driver, "mounts");
  /** From the moment a Pod wants them until they are unmounted. */
  const used = new Map<string, Used>();
  const serial = newSerial();
  const releaseUnused = newReleaseUnused({ serial, release, clock, log });

  function note(driver: string, name: string): Used {
    const id = pluginVolumeId(driver, name);
    const known = used.get(id);
    if (known !== undefined) return known;
    const made: Used = { driver, name, pods: new Set() };
    used.set(id, made);
    options.onInUseChange();
    return made;
  }

  function want(uid: string, volume: FlexVolume): void {
    note(volume.driver, volume.name).pods.add(uid);
  }

  async function step<T>(name: VolumeError["step"], volume: FlexVolume, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (err) {
      throw err instanceof VolumeWaits ? err : new VolumeError(name, volume.name, err);
    }
  }

  /** @returns the device that attaching gave; empty for none */
  async function attach(driver: FlexDriver, volume: FlexVolume): Promise<string> {
    if (options.byController) return attachedHere(options.node(), pluginVolumeId(volume.driver, volume.name)).devicePath;
    const { device } = await observed(options.operations(volume.driver, "volume_attach"), () =>
      driver.call("attach", driverOptions(volume), nodeName).catch(ifNotSupported({ device: "" })),
    );
    return device;
  }

  async function mountDevice(driver: FlexDriver, volume: FlexVolume, device: string, mountPath: string): Promise<void> {
    // What the name is the driver has no say in, but it may refuse the volume.
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

  async function unmountDevice(driver: FlexDriver, mountPath: string): Promise<void> {
    if (await isMounted(mountPath, mounter)) {
      await driver.call("unmountdevice", mountPath).catch((err) => {
        if (!(err instanceof NotSupported)) throw err;
        return mounter.unmount(mountPath);
      });
    }
    await removeUnmounted(mountPath);
  }

  async function podsWith(driver: string, name: string): Promise<boolean> {
    const folder = driver.replaceAll("/", "~");
    for (const uid of await namesIn(podsDir))
      if ((await namesIn(join(podsDir, uid, "volumes", folder))).includes(name)) return true;
    return false;
  }

  /** Undoes what was done for all Pods of a volume, once none is left. */
  async function release(id: string): Promise<void> {
    const unused = used.get(id);
    if (unused === undefined) return;
    const { driver: driverName, name, pods } = unused;
    if (pods.size > 0 || (await podsWith(driverName, name))) return;
    const driver = await drivers.find(driverName);
    if (driver === undefined) throw new Error("no volume plugin matched");
    const step = (operation: string): ReturnType<BeginOperation> => options.operations(driverName, operation);
    await observed(step("unmount_device"), () => unmountDevice(driver, join(mountsOf(driverName), name)));
    if (!options.byController) {
      await observed(step("volume_detach"), () => driver.call("detach", name, nodeName).catch(ifNotSupported(undefined)));
    }
    used.delete(id);
    options.onInUseChange();
  }

  return {
    want,
    use: (uid, driver, volume, give) =>
      serial(pluginVolumeId(volume.driver, volume.name), async () => {
        want(uid, volume); // again: it may have been unmounted for the Pod before while this waited
        const device = await step(
          options.byController ? "MountVolume.WaitForAttach failed" : "AttachVolume.Attach failed",
          volume,
          () => attach(driver, volume),
        );
        const found = await step("MountVolume.WaitForAttach failed", volume, () =>
          driver.call("waitforattach", device, driverOptions(volume)).then((answer) => answer.device, ifNotSupported(device)),
        );
        const mountPath = join(mountsOf(volume.driver), volume.name);
        await step("MountVolume.MountDevice failed", volume, () => mountDevice(driver, volume, found, mountPath));
        return give(mountPath);
      }),
    leave(uid) {
      for (const { pods } of used.values()) pods.delete(uid);
    },
    collect: () => releaseUnused(used.keys()),
    inUse: () => [...used.keys()],
    async restore() {
      const uids = await namesIn(podsDir);
      for (const name of await drivers.names()) {
        const folders = [mountsOf(name), ...uids.map((uid) => join(podsDir, uid, "volumes", name.replaceAll("/", "~")))];
        const left = (await Promise.all(folders.map(namesIn))).flat();
        // A driver is asked only where there is something that may be its.
        if (left.length === 0 || (await drivers.find(name))?.capabilities.attach !== true) continue;
        for (const volume of left) note(name, volume);
      }
    },
  };
}

/** @returns `instead` where the driver does not know the command */
const ifNotSupported =
  <T>(instead: T) =>
  (err: unknown): T => {
    if (err instanceof NotSupported) return instead;
    throw err;
  };
