import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import { containersOf, type NodePod, usedVolumes } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import { removeTree } from "../resources/user-files.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import { configMap } from "./config-map.ts";
import type { Csi } from "./csi/csi.ts";
import { csiInline } from "./csi-inline.ts";
import { downwardApi } from "./downward-api.ts";
import { emptyDir } from "./empty-dir.ts";
import type { FlexVolumes } from "./flex/flex.ts";
import { flexInline } from "./flex-inline.ts";
import { gitRepo } from "./git-repo.ts";
import { hostPath } from "./host-path.ts";
import { type LocalVolumes, newLocalVolumes } from "./local-volumes.ts";
import { walked, walkedOnChange } from "./measure.ts";
import type { Mounter } from "./mount.ts";
import { namesNow } from "./names-in.ts";
import { persistentClaim } from "./persistent-claim.ts";
import { projected } from "./projected.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";
import { secret } from "./secret.ts";
import type { SetUpVolume } from "./volume.ts";
import { newVolumeOperations, pluginOf, type VolumeOperations } from "./volume-operations.ts";
import type { VolumeContext, VolumePlugin } from "./volume-plugin.ts";

export interface VolumeManagerOptions {
  /** `/var/lib/kubelet/pods`. */
  podsDir: string;
  objects: PodObjects;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  reportPodEvent?: ContainerEvent;
  csi?: Csi | undefined;
  flex?: FlexVolumes | undefined;
  quotas?: FolderQuotas | undefined;
  operations?: VolumeOperations | undefined;
  nodeLabels?: () => Readonly<Record<string, string>> | undefined;
  /** Feature gate SizeMemoryBackedVolumes; default true. */
  sizesMemory?: boolean;
  turns?: Turns | undefined;
}

/** A volume that could not be set up or refreshed. */
export interface VolumeFailure {
  volume: string;
  message: string;
  cause: unknown;
}

/** Sets up and tears down the volumes of Pods. */
export interface VolumeManager {
  /**
   * Sets up or refreshes every volume of the Pod. Failures are returned per volume. A volume whose refresh failed is still
   * included in `volumes`.
   */
  setUp(
    pod: NodePod,
    downward: DownwardContext,
  ): Promise<{ volumes: ReadonlyMap<string, SetUpVolume>; failures: readonly VolumeFailure[] }>;
  /** Volumes that this process has set up for a Pod. */
  of(uid: string): ReadonlyMap<string, SetUpVolume>;
  /** Unmounts and deletes the volumes; keeps the rest of the Pod's directory (e.g. termination messages). */
  unmount(uid: string): Promise<void>;
  /** Unmounts the volumes and deletes the Pod's directory. @throws Error when a mount is left */
  remove(uid: string): Promise<void>;
  /** UIDs of Pods that have a directory. */
  list(): Promise<string[]>;
  exists(uid: string): Promise<boolean>;
  podDir(uid: string): string;
  /** Whether the Pod has volumes whose contents follow API objects. */
  isRefreshed(pod: NodePod): boolean;
}

const plugins: readonly VolumePlugin[] = [
  emptyDir,
  hostPath,
  gitRepo,
  configMap,
  secret,
  projected,
  downwardApi,
  persistentClaim,
  csiInline,
  flexInline,
];

/** Creates a volume manager with all volume plugins. */
export function newVolumeManager(options: VolumeManagerOptions): VolumeManager {
  return new NodeVolumeManager(options);
}

class NodeVolumeManager implements VolumeManager {
  readonly #options: VolumeManagerOptions;
  readonly #nodeLabels: () => Readonly<Record<string, string>> | undefined;
  readonly #operations: VolumeOperations;
  readonly #locals: LocalVolumes;
  readonly #setUpVolumes = new Map<string, ReadonlyMap<string, SetUpVolume>>();

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
    const { nodeLabels = () => undefined, operations = newVolumeOperations(() => () => {}) } = options;
    this.#nodeLabels = nodeLabels;
    this.#operations = operations;
    this.#locals = newLocalVolumes(options);
  }

  podDir(uid: string): string {
    return join(this.#options.podsDir, safeName(uid));
  }

  of(uid: string): ReadonlyMap<string, SetUpVolume> {
    return this.#setUpVolumes.get(uid) ?? new Map();
  }

  isRefreshed(pod: NodePod): boolean {
    return usedVolumes(pod).some((volume) => plugins.some((plugin) => plugin.refreshed === true && plugin.supports(volume)));
  }

  async setUp(
    pod: NodePod,
    downward: DownwardContext,
  ): Promise<{ volumes: ReadonlyMap<string, SetUpVolume>; failures: readonly VolumeFailure[] }> {
    const { csi, flex, quotas } = this.#options;
    const volumes = new Map<string, SetUpVolume>();
    const failures: VolumeFailure[] = [];
    const present = this.#setUpVolumes.get(pod.metadata.uid);
    const devices = new Set(
      [...containersOf(pod)].flatMap(({ container }) => (container.volumeDevices ?? []).map(({ name }) => name)),
    );
    await Promise.all(
      usedVolumes(pod).map(async (volume) => {
        const turn = this.#options.turns?.next(); // a Pod may have thousands
        if (turn !== undefined) await turn;
        const plugin = plugins.find((candidate) => candidate.supports(volume));
        try {
          // A volume without source is an emptyDir, as in API defaulting.
          const chosen = plugin ?? (Object.keys(volume).length === 1 ? emptyDir : undefined);
          if (chosen === undefined) throw new Error("no volume plugin matched");
          const dir = join(this.podDir(pod.metadata.uid), "volumes", chosen.name, safeName(volume.name));
          const { objects, mounter, clock, log } = this.#options;
          const kind = devices.has(volume.name) ? "block" : "mount";
          const isRefreshed = chosen.refreshed === true;
          const observed: VolumeContext["observed"] = (plugin, work) =>
            this.#operations.setUp({ uid: pod.metadata.uid, name: volume.name, kind, plugin, isRefreshed }, work);
          const context = {
            pod,
            volume,
            isThere: present?.has(volume.name) ?? false,
            dir,
            objects,
            mounter,
            locals: this.#locals,
            downward,
            csi,
            flex,
            quotas,
            nodeLabels: this.#nodeLabels,
            now: clock.now(),
            sizesMemory: this.#options.sizesMemory ?? true,
            observed,
            operations: this.#operations.begin,
            turns: this.#options.turns,
            log,
          };
          const setUp = (): Promise<SetUpVolume> => chosen.setUp(context);
          const made = await (chosen.delegates ? setUp() : observed(pluginOf(volume), setUp));
          const measure = isRefreshed ? (present?.get(volume.name)?.measure ?? walkedOnChange(dir)) : () => walked(dir, quotas);
          volumes.set(volume.name, made.path === dir ? { ...made, measure } : made);
        } catch (err) {
          const before = present?.get(volume.name);
          if (before !== undefined) volumes.set(volume.name, before);
          failures.push({ volume: volume.name, message: messageOf(err), cause: err });
        }
      }),
    );
    this.#setUpVolumes.set(pod.metadata.uid, volumes);
    return { volumes, failures };
  }

  async unmount(uid: string): Promise<void> {
    await this.#unmountAll(uid);
    for (const name of ["volumes", "volume-subpaths"]) await removeTree(join(this.podDir(uid), name));
  }

  async remove(uid: string): Promise<void> {
    await this.#unmountAll(uid);
    await removeTree(this.podDir(uid));
  }

  async list(): Promise<string[]> {
    try {
      return namesNow(this.#options.podsDir);
    } catch {
      return [];
    }
  }

  async exists(uid: string): Promise<boolean> {
    return (await stat(this.podDir(uid)).catch(() => undefined)) !== undefined;
  }

  /** Recursive deletion would delete the contents of mounted volumes, so no mount may be left. */
  #unmountAll(uid: string): Promise<void> {
    return this.#operations.tearDown(uid, () => this.#unmountEach(uid));
  }

  async #unmountEach(uid: string): Promise<void> {
    const { csi, flex } = this.#options;
    const dir = this.podDir(uid);
    const unmountBelow = async (path: string): Promise<void> => {
      for (const mountPoint of await this.#options.mounter.mountsBelow(path)) {
        try {
          await this.#options.mounter.unmount(mountPoint);
        } catch (err) {
          this.#options.log.error("cannot unmount", err, { path: mountPoint });
        }
      }
    };
    // subPath mounts first; mounts made by drivers are unmounted by the drivers only.
    await unmountBelow(join(dir, "volume-subpaths"));
    await csi?.tearDown(safeName(uid));
    await flex?.tearDown(safeName(uid));
    await unmountBelow(dir);
    this.#setUpVolumes.delete(uid);
    await this.#clearQuotas(dir);
    const left = await this.#options.mounter.mountsBelow(dir);
    if (left.length > 0) throw new Error(`${left.length} mounts are left below ${dir}`);
  }

  async #clearQuotas(dir: string): Promise<void> {
    const { quotas } = this.#options;
    if (quotas === undefined) return;
    const folder = join(dir, "volumes", emptyDir.name);
    for (const name of await readdir(folder).catch(() => [])) await quotas.clear(join(folder, name));
  }
}

/** UIDs and volume names become path components. The API server validates them, but not those of static Pods. */
function safeName(name: string): string {
  if (name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0")) {
    throw new Error(`volume path: ${JSON.stringify(name)} cannot be the name of a folder`);
  }
  return name;
}
