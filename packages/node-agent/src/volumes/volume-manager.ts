import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import { containersOf, type NodePod, usedVolumes } from "../pods/pod.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import { configMap } from "./config-map.ts";
import type { Csi } from "./csi/csi.ts";
import { csiInline } from "./csi-inline.ts";
import { downwardApi } from "./downward-api.ts";
import { emptyDir } from "./empty-dir.ts";
import type { FlexVolumes } from "./flex/flex.ts";
import { flexInline } from "./flex-inline.ts";
import { hostPath } from "./host-path.ts";
import { walked } from "./measure.ts";
import type { Mounter } from "./mount.ts";
import { persistentClaim } from "./persistent-claim.ts";
import { projected } from "./projected.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";
import { secret } from "./secret.ts";
import type { SetUpVolume, VolumeContext, VolumePlugin } from "./volume.ts";
import { newVolumeOperations, pluginOf, type VolumeOperations } from "./volume-operations.ts";

export interface VolumeManagerOptions {
  /** `/var/lib/kubelet/pods`. */
  podsDir: string;
  objects: PodObjects;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  csi?: Csi | undefined;
  flex?: FlexVolumes | undefined;
  quotas?: FolderQuotas | undefined;
  operations?: VolumeOperations | undefined;
  nodeLabels?: () => Readonly<Record<string, string>> | undefined;
  /** SizeMemoryBackedVolumes; on where nothing is said. */
  sizesMemory?: boolean;
}

export interface VolumeFailure {
  volume: string;
  message: string;
  cause: Error;
}

export interface VolumeManager {
  /**
   * Brings every volume of the Pod up, or up to date. Failures are returned, one for each volume; one that is there
   * though it could not be brought up to date is among the volumes all the same.
   */
  setUp(
    pod: NodePod,
    downward: DownwardContext,
  ): Promise<{ volumes: ReadonlyMap<string, SetUpVolume>; failures: readonly VolumeFailure[] }>;
  /** What was set up of a Pod by this agent. */
  of(uid: string): ReadonlyMap<string, SetUpVolume>;
  /** Takes mounts away, then the volumes; what else the Pod has stays (last words of its containers). */
  unmount(uid: string): Promise<void>;
  /** Takes mounts away, then the Pod's whole folder. @throws Error when something is still mounted. */
  remove(uid: string): Promise<void>;
  /** Pods that have a folder here. */
  list(): Promise<string[]>;
  exists(uid: string): Promise<boolean>;
  podDir(uid: string): string;
  /** Whether contents follow objects that may change. */
  isRefreshed(pod: NodePod): boolean;
}

const plugins: readonly VolumePlugin[] = [
  emptyDir,
  hostPath,
  configMap,
  secret,
  projected,
  downwardApi,
  persistentClaim,
  csiInline,
  flexInline,
];

export function newVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const podDir = (uid: string): string => join(options.podsDir, safeName(uid));
  const setUpVolumes = new Map<string, ReadonlyMap<string, SetUpVolume>>();
  const { csi, flex, quotas, nodeLabels = () => undefined, operations = newVolumeOperations(() => () => {}) } = options;

  /** Removing below a mount would remove what is mounted, so nothing may be left. */
  const unmountAll = (uid: string): Promise<void> => operations.tearDown(uid, () => unmountEach(uid));

  async function unmountEach(uid: string): Promise<void> {
    const dir = podDir(uid);
    const unmountBelow = async (path: string): Promise<void> => {
      for (const mountPoint of await options.mounter.mountsBelow(path)) {
        try {
          await options.mounter.unmount(mountPoint);
        } catch (err) {
          options.log.error("cannot unmount", err, { path: mountPoint });
        }
      }
    };
    // Parts of volumes go before the volumes; what a driver has mounted only the driver takes away.
    await unmountBelow(join(dir, "volume-subpaths"));
    await csi?.tearDown(safeName(uid));
    await flex?.tearDown(safeName(uid));
    await unmountBelow(dir);
    setUpVolumes.delete(uid);
    await clearQuotas(dir);
    const left = await options.mounter.mountsBelow(dir);
    if (left.length > 0) throw new Error(`${left.length} mounts are left below ${dir}`);
  }

  async function clearQuotas(dir: string): Promise<void> {
    if (quotas === undefined) return;
    const folder = join(dir, "volumes", emptyDir.name);
    for (const name of await readdir(folder).catch(() => [])) await quotas.clear(join(folder, name));
  }

  return {
    podDir,
    of: (uid) => setUpVolumes.get(uid) ?? new Map(),
    isRefreshed: (pod) =>
      usedVolumes(pod).some((volume) => plugins.some((plugin) => plugin.refreshed === true && plugin.supports(volume))),
    async setUp(pod, downward) {
      const volumes = new Map<string, SetUpVolume>();
      const failures: VolumeFailure[] = [];
      const present = setUpVolumes.get(pod.metadata.uid);
      await Promise.all(
        usedVolumes(pod).map(async (volume) => {
          const plugin = plugins.find((candidate) => candidate.supports(volume));
          try {
            // Without any source a volume is an emptyDir, as the API's defaults say.
            const chosen = plugin ?? (Object.keys(volume).length === 1 ? emptyDir : undefined);
            if (chosen === undefined) throw new Error("no volume plugin matched");
            const dir = join(podDir(pod.metadata.uid), "volumes", chosen.name, safeName(volume.name));
            const { objects, mounter, clock } = options;
            const kind = isDevice(pod, volume.name) ? "block" : "mount";
            const isRefreshed = chosen.refreshed === true;
            const observed: VolumeContext["observed"] = (plugin, work) =>
              operations.setUp({ uid: pod.metadata.uid, name: volume.name, kind, plugin, isRefreshed }, work);
            const context = {
              pod,
              volume,
              isThere: present?.has(volume.name) ?? false,
              dir,
              objects,
              mounter,
              downward,
              csi,
              flex,
              quotas,
              nodeLabels,
              now: clock.now(),
              sizesMemory: options.sizesMemory ?? true,
              observed,
              operations: operations.begin,
            };
            const setUp = (): Promise<SetUpVolume> => chosen.setUp(context);
            const made = await (chosen.delegates ? setUp() : observed(pluginOf(volume), setUp));
            volumes.set(volume.name, made.path === dir ? { ...made, measure: () => walked(dir, quotas) } : made);
          } catch (err) {
            const before = present?.get(volume.name);
            if (before !== undefined) volumes.set(volume.name, before);
            failures.push({ volume: volume.name, message: (err as Error).message, cause: err as Error });
          }
        }),
      );
      setUpVolumes.set(pod.metadata.uid, volumes);
      return { volumes, failures };
    },
    async unmount(uid) {
      await unmountAll(uid);
      for (const name of ["volumes", "volume-subpaths"]) await rm(join(podDir(uid), name), { recursive: true, force: true });
    },
    async remove(uid) {
      await unmountAll(uid);
      await rm(podDir(uid), { recursive: true, force: true });
    },
    async list() {
      try {
        return await readdir(options.podsDir);
      } catch {
        return [];
      }
    },
    async exists(uid) {
      return (await stat(podDir(uid)).catch(() => undefined)) !== undefined;
    },
  };
}

function isDevice(pod: NodePod, volume: string): boolean {
  return containersOf(pod).some(({ container }) => (container.volumeDevices ?? []).some(({ name }) => name === volume));
}

/** Uids and names of volumes become parts of paths; validation allows no slash, but files and URLs are not validated by the API server. */
function safeName(name: string): string {
  if (name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0")) {
    throw new Error(`${JSON.stringify(name)} cannot be the name of a folder`);
  }
  return name;
}
