import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { FlexDrivers } from "@coxswain/apimachinery/flex-volumes/driver";
import { type FlexDriver, NotSupported, newFlexDrivers } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume, flexVolumeOf } from "@coxswain/apimachinery/flex-volumes/volume";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type {
  FlexPersistentVolumeSource,
  FlexVolumeSource,
  PersistentVolume,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { NodePod } from "../../pod/pod.ts";
import type { PodObjects } from "../../pod/pod-objects.ts";
import { filesystemSize } from "../measure.ts";
import { isMounted } from "../mount.ts";
import { namesIn } from "../names-in.ts";
import { setVolumeOwnership } from "../ownership.ts";
import { type SetUpVolume, VolumeError, VolumeWaits } from "../volume.ts";
import { FlexDevices, type FlexDevicesOptions } from "./flex-devices.ts";
import { removeUnmounted } from "./remove-unmounted.ts";

/** Volumes that external executables attach and mount. */
export interface FlexVolumes extends Pick<FlexDevices, "collect" | "inUse" | "restore"> {
  /** @returns undefined when the volume is not a FlexVolume or its driver is not installed */
  inline(pod: NodePod, volume: Volume): Promise<SetUpVolume | undefined>;
  persistent(pod: NodePod, volume: PersistentVolume, readOnly: boolean): Promise<SetUpVolume | undefined>;
  /** Calls the drivers to unmount all FlexVolumes of a Pod; works from the directories on disk. */
  tearDown(uid: string): Promise<void>;
}

interface FlexOptions extends Omit<FlexDevicesOptions, "drivers"> {
  /** `--volume-plugin-dir` */
  readonly pluginDir: string;
  readonly objects: PodObjects;
}

/** A FlexVolume from a Pod's spec or from a PersistentVolume. */
interface Source {
  readonly flex: FlexVolumeSource | FlexPersistentVolumeSource;
  readonly name: string;
  readonly readOnly: boolean;
  readonly secretNamespace: string;
}

/**
 * Creates the FlexVolumes of the node; drivers are found in `pluginDir` whenever a volume needs one.
 * Source: pkg/volume/flexvolume mounter.go, unmounter.go
 */
export function newFlexVolumes(options: FlexOptions): FlexVolumes {
  return new NodeFlexVolumes(options);
}

class NodeFlexVolumes implements FlexVolumes {
  readonly #options: FlexOptions;
  readonly #drivers: FlexDrivers;
  readonly #devices: FlexDevices;

  constructor(options: FlexOptions) {
    this.#options = options;
    this.#drivers = newFlexDrivers(options.pluginDir);
    this.#devices = new FlexDevices({ ...options, drivers: this.#drivers });
  }

  async inline(pod: NodePod, { name, flexVolume }: Volume): Promise<SetUpVolume | undefined> {
    if (flexVolume === undefined) return undefined;
    const { readOnly = false } = flexVolume;
    return this.#setUp(pod, { flex: flexVolume, name, readOnly, secretNamespace: pod.metadata.namespace });
  }

  async persistent(pod: NodePod, { metadata, spec }: PersistentVolume, readOnly: boolean): Promise<SetUpVolume | undefined> {
    if (spec.flexVolume === undefined) return undefined;
    const secretNamespace = spec.flexVolume.secretRef?.namespace || pod.metadata.namespace;
    return this.#setUp(pod, { flex: spec.flexVolume, name: metadata.name ?? "", readOnly, secretNamespace });
  }

  async tearDown(uid: string): Promise<void> {
    const { podsDir } = this.#options;
    const volumesDir = join(podsDir, uid, "volumes");
    for (const folder of await namesIn(volumesDir)) {
      const driver = folder.startsWith("kubernetes.io~") ? undefined : await this.#drivers.find(folder.replaceAll("~", "/"));
      if (driver === undefined) continue;
      for (const name of await namesIn(join(volumesDir, folder))) await this.#takeAway(driver, join(volumesDir, folder, name));
    }
    this.#devices.leave(uid);
  }

  collect(): Promise<void> {
    return this.#devices.collect();
  }

  inUse(): readonly string[] {
    return this.#devices.inUse();
  }

  restore(): Promise<void> {
    return this.#devices.restore();
  }

  async #setUp(pod: NodePod, source: Source): Promise<SetUpVolume | undefined> {
    const { podsDir, mounter } = this.#options;
    const driver = await this.#drivers.find(source.flex.driver);
    if (driver === undefined) return undefined;
    const { uid } = pod.metadata;
    try {
      const volume = flexVolumeOf(source.flex, { name: partOfPath(source.name), readOnly: source.readOnly });
      const dir = join(podsDir, uid, "volumes", volume.driver.replaceAll("/", "~"), volume.name);
      if (driver.capabilities.attach) this.#devices.want(uid, volume);
      if (!(await isMounted(dir, mounter))) {
        if (driver.capabilities.attach)
          await this.#devices.use(uid, driver, volume, (mountPath) =>
            this.#mount(driver, pod, source, { volume, dir, mountPath }),
          );
        else await this.#mount(driver, pod, source, { volume, dir });
      }
      const { supportsMetrics } = driver.capabilities;
      return { path: dir, readOnly: source.readOnly, ...(supportsMetrics && { measure: () => filesystemSize(dir) }) };
    } catch (err) {
      if (err instanceof VolumeWaits || err instanceof VolumeError) throw err;
      throw new VolumeError("MountVolume.SetUp failed", source.name, err);
    }
  }

  /** @param mountPath the global mount path, for attachable volumes */
  async #mount(
    driver: FlexDriver,
    pod: NodePod,
    source: Source,
    { volume, dir, mountPath }: { volume: FlexVolume; dir: string; mountPath?: string },
  ): Promise<void> {
    const { mounter } = this.#options;
    await makeFolder(dir, 0o750);
    try {
      const more = await this.#podOptions(pod, source);
      await driver.call("mount", dir, driverOptions(volume, more)).catch((err) => {
        if (mountPath === undefined || !(err instanceof NotSupported)) throw err;
        return mounter.mount(mountPath, dir, { type: "auto", options: ["bind"] });
      });
    } catch (err) {
      await rmdir(dir).catch(() => {});
      throw err;
    }
    if (source.readOnly || !driver.capabilities.fsGroup) return;
    const { operations, log } = this.#options;
    await setVolumeOwnership(dir, pod, { readOnly: false, policy: true, plugin: volume.driver, operations, log });
  }

  /** Options that drivers get for `mount` only. */
  async #podOptions(pod: NodePod, source: Source): Promise<Record<string, string>> {
    const { fsGroup } = pod.spec.securityContext ?? {};
    return {
      "kubernetes.io/pod.name": pod.metadata.name,
      "kubernetes.io/pod.namespace": pod.metadata.namespace,
      "kubernetes.io/pod.uid": pod.metadata.uid,
      "kubernetes.io/serviceAccount.name": pod.spec.serviceAccountName ?? "",
      ...(await this.#secretOptions(source)),
      ...(fsGroup !== undefined && { "kubernetes.io/mounterArgs.FsGroup": String(fsGroup) }),
    };
  }

  async #secretOptions({ flex, secretNamespace }: Source): Promise<Record<string, string>> {
    const { objects } = this.#options;
    const { name = "" } = flex.secretRef ?? {};
    if (name === "" || secretNamespace === "") return {};
    try {
      const secret = await objects.secret(secretNamespace, name);
      if (secret?.type !== flex.driver) throw new Error(`cannot get secret of type ${flex.driver}`);
      return Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, data]) => [`kubernetes.io/secret/${key}`, data]));
    } catch (err) {
      throw new Error(`couldn't get secret ${secretNamespace}/${name} err: ${messageOf(err)}`, { cause: err });
    }
  }

  async #takeAway(driver: FlexDriver, dir: string): Promise<void> {
    const { mounter } = this.#options;
    try {
      await driver.call("unmount", dir);
    } catch (err) {
      if (!(err instanceof NotSupported)) throw err;
      if (await isMounted(dir, mounter)) await mounter.unmount(dir);
    }
    await removeUnmounted(dir);
  }
}

/** The API server validates names; static Pods from files and URLs are not validated there. */
function partOfPath(name: string): string {
  if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
    throw new Error(`FlexVolume path: ${JSON.stringify(name)} cannot be the name of a folder`);
  return name;
}
