import { symlink, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { CSIDriver } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { attachmentName } from "@coxswain/apimachinery/volumes/volume-id";
import type { NodePod } from "../../pod/pod.ts";
import type { PodObjects } from "../../pod/pod-objects.ts";
import { isMounted, type Mounter } from "../mount.ts";
import { setVolumeOwnership } from "../ownership.ts";
import { newReleaseUnused } from "../release-unused.ts";
import { VolumeError, VolumeWaits } from "../volume.ts";
import { csiPlugin } from "../volume-operations.ts";
import type { Attachments } from "./attachment.ts";
import { type Capability, type CsiClient, isFinal } from "./csi-client.ts";
import type { CsiDrivers } from "./csi-drivers.ts";
import { type CsiPaths, exists, type VolumeLayout } from "./csi-paths.ts";
import { readSecret, tokenAttributes } from "./csi-secrets.ts";
import { type CsiSource, idOf, lifecycleProblem, podAttributes, takesGroup } from "./csi-source.ts";
import { newSerial } from "./serial.ts";
import { loadVolumeData, removeFolder, removeVolumeData, saveVolumeData } from "./volume-data.ts";

/** Node-side lifecycle of CSI volumes: attach, stage, publish and the reverse. */
export interface CsiVolumes {
  /**
   * Attaches, stages and publishes a volume for a Pod, as far as the driver requires each step. A published volume is not
   * published again unless the driver sets `requiresRepublish`.
   * @throws VolumeWaits while the volume is not attached; VolumeError with the failed step
   */
  setUp(pod: NodePod, source: CsiSource): Promise<PublishedVolume>;
  /** Unpublishes all volumes of a Pod; works from the files on disk. @throws Error the first failure */
  tearDown(uid: string): Promise<void>;
  /** Unstages volumes that no Pod uses any more; failures are retried by a later call. */
  collect(): Promise<void>;
  /**
   * IDs of volumes that must stay attached to this node, sorted, for the node's status; undefined until CSIDrivers are synced.
   */
  inUse(): readonly string[] | undefined;
  /** Restores state from disk after a restart. Call before the node's status reports volumes in use. */
  restore(): Promise<void>;
}

/** Result of setting up a volume. */
export interface PublishedVolume {
  /** What containers get: a directory to mount, or a link to a device. */
  path: string;
  /** Target path of NodePublishVolume. */
  targetPath: string;
  /** Empty when the driver does not stage. */
  stagingPath: string;
  /** True when the volume was published before this call. */
  again: boolean;
}

export interface CsiVolumesOptions {
  paths: CsiPaths;
  nodeName: string;
  drivers: Pick<CsiDrivers, "client">;
  /** @throws Error until CSIDrivers are synced */
  driverObject: (name: string) => CSIDriver | undefined;
  attachments: Attachments;
  objects: PodObjects;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  /** Pass the fsGroup to drivers that support it (DelegateFSGroupToCSIDriver). */
  delegateGroup: boolean;
  onInUseChange: () => void;
  operations: BeginOperation;
}

type Kind = CsiSource["kind"];
const kinds: readonly Kind[] = ["mount", "block"];

/** Names of the steps in events and errors. */
const steps = {
  mount: {
    begin: "MountVolume.NewMounter initialization failed",
    attach: "MountVolume.WaitForAttach failed",
    stage: "MountVolume.MountDevice failed",
    publish: "MountVolume.SetUp failed",
    stageClient: "attacher.MountDevice failed to create newCsiDriverClient",
    publishClient: "mounter.SetUpAt failed to get CSI client",
    unstageOperation: "unmount_device",
  },
  block: {
    begin: "MapVolume.NewBlockVolumeMapper initialization failed",
    attach: "MapVolume.WaitForAttach failed",
    stage: "MapVolume.SetUpDevice failed",
    publish: "MapVolume.MapPodDevice failed",
    stageClient: "blockMapper.SetUpDevice failed to get CSI client",
    publishClient: "blockMapper.MapPodDevice failed to get CSI client",
    unstageOperation: "unmap_device",
  },
} as const satisfies Record<Kind, Record<string, string>>;

/** Source: pkg/volume/csi csi_attacher.go, csi_mounter.go; pkg/kubelet/volumemanager/reconciler */
export function newCsiVolumes(options: CsiVolumesOptions): CsiVolumes {
  const { paths, drivers, attachments, objects, mounter, clock, log } = options;
  /** Volumes published by this process, by `<uid>/<name>`. */
  const published = new Map<string, { stagingPath: string }>();
  /** Keys of NodePublishVolume calls that may have had an effect: these must be unpublished even if the call failed. */
  const attempted = new Set<string>();
  /** Persistent volumes by name, from the first use by a Pod until they are unstaged. */
  const used = new Map<string, Pick<CsiSource, "driver" | "handle">>();
  const { layouts } = paths;
  /** Serializes stage, publish and their reverse per volume. */
  const serial = newSerial();
  const releaseUnused = newReleaseUnused({ serial, release: unstage, clock, log });

  function use(source: CsiSource): void {
    if (source.mode !== "Persistent" || used.has(source.name)) return;
    used.set(source.name, { driver: source.driver, handle: source.handle });
    options.onInUseChange();
  }

  function needsAttach(driver: string): boolean {
    return options.driverObject(driver)?.spec.attachRequired !== false;
  }

  function clientFor(source: CsiSource, caller: string): CsiClient {
    try {
      return drivers.client(source.driver);
    } catch (err) {
      throw new Error(`kubernetes.io/csi: ${caller}: ${(err as Error).message}`);
    }
  }

  async function stage(client: CsiClient, source: CsiSource, capability: Capability, publishContext: Record<string, string>) {
    if (!(await client.capabilities()).has("stageUnstage")) return "";
    const layout = layouts[source.kind];
    const stagingPath = layout.staging(source.name);
    const secrets = await readSecret(objects, source.stageSecret, "NodeStageSecretRef");
    await makeFolder(stagingPath, 0o750);
    // Written before the call to the driver, so that a restarted kubelet can undo a call of unknown outcome.
    if (source.kind === "mount") {
      await saveVolumeData(layout.data(source.name), { driverName: source.driver, volumeHandle: source.handle });
    }
    const { handle, attributes: context } = source;
    try {
      await client.stage({ handle, stagingPath, capability, publishContext, secrets, context });
    } catch (err) {
      if (isFinal(err) && !(await isMounted(stagingPath, mounter))) {
        await removeFolder(stagingPath).catch(() => undefined);
        if (source.kind === "mount") await removeVolumeData(layout.data(source.name)).catch(() => undefined);
      }
      throw err;
    }
    return stagingPath;
  }

  async function publish(
    pod: NodePod,
    source: CsiSource,
    driver: CSIDriver | undefined,
    rest: { stagingPath: string; publishContext: Record<string, string>; capability: Capability },
  ): Promise<void> {
    const client = clientFor(source, steps[source.kind].publishClient);
    const key = `${pod.metadata.uid}/${source.name}`;
    const targetPath = layouts[source.kind].target(pod.metadata.uid, source.name);
    await makeFolder(dirname(targetPath), 0o750);
    const context = {
      ...source.attributes,
      ...podAttributes(source, pod, driver),
      ...(await tokenAttributes(objects, pod, driver)),
    };
    const secrets = await readSecret(objects, source.publishSecret, "NodePublishSecretRef");
    const again = published.has(key);
    attempted.add(key);
    try {
      await client.publish({ ...rest, handle: source.handle, targetPath, readOnly: source.readOnly, secrets, context });
    } catch (err) {
      if (isFinal(err) && !again && !(await isMounted(targetPath, mounter))) attempted.delete(key);
      throw err;
    }
    if (
      !again &&
      source.kind === "mount" &&
      rest.capability.group === undefined &&
      takesGroup(source, driver?.spec.fsGroupPolicy ?? "")
    ) {
      const { operations } = options;
      const plugin = csiPlugin(source.driver);
      await setVolumeOwnership(targetPath, pod, { readOnly: false, policy: true, plugin, operations }).catch((err: Error) => {
        throw new Error(`applyFSGroup failed for vol ${source.handle}: ${err.message}`);
      });
    }
    published.set(key, { stagingPath: rest.stagingPath });
  }

  /** Runs one step; failures become VolumeErrors with the step's name. */
  async function step<T>(name: VolumeError["step"], source: CsiSource, work: () => T | Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (err) {
      throw err instanceof VolumeWaits ? err : new VolumeError(name, source.name, err);
    }
  }

  async function setUp(pod: NodePod, source: CsiSource): Promise<PublishedVolume> {
    const { uid } = pod.metadata;
    const layout = layouts[source.kind];
    const names = steps[source.kind];
    const driver = await step(names.begin, source, async () => {
      const object = options.driverObject(source.driver);
      const problem = lifecycleProblem(source, object);
      if (problem !== undefined) throw new Error(problem);
      return object;
    });
    const targetPath = layout.target(uid, source.name);
    const path = source.kind === "mount" ? targetPath : layout.ofPod(uid, source.name);
    const before = published.get(`${uid}/${source.name}`);
    if (before !== undefined && driver?.spec.requiresRepublish !== true) return { path, targetPath, ...before, again: true };
    await step(names.begin, source, async () => {
      await saveVolumeData(layout.dataOfPod(uid, source.name), {
        specVolID: source.name,
        volumeHandle: source.handle,
        driverName: source.driver,
        nodeName: options.nodeName,
        volumeLifecycleMode: source.mode,
        attachmentID: attachmentName(idOf(source), options.nodeName),
      });
      if (source.kind === "block" && !(await exists(path))) {
        await makeFolder(dirname(path), 0o750);
        await symlink(targetPath, path);
      }
    });
    use(source);
    const attach = source.mode === "Persistent" && needsAttach(source.driver);
    const publishContext = await step(names.attach, source, async () => (attach ? await attachments.contextOf(source) : {}));
    const capabilityFor = async (client: CsiClient): Promise<Capability> => {
      const fsGroup = pod.spec.securityContext?.fsGroup;
      const delegated = fsGroup !== undefined && options.delegateGroup && (await client.capabilities()).has("mountGroup");
      const { kind, fsType, mountOptions } = source;
      const accessMode = source.accessModes[0] ?? "ReadWriteOnce";
      return { kind, fsType, mountOptions, accessMode, ...(delegated && { group: fsGroup }) };
    };
    const stagingPath =
      source.mode === "Ephemeral"
        ? ""
        : await step(names.stage, source, async () => {
            const client = clientFor(source, names.stageClient);
            return stage(client, source, await capabilityFor(client), publishContext);
          });
    await step(names.publish, source, async () => {
      const capability = await capabilityFor(clientFor(source, names.publishClient));
      await publish(pod, source, driver, { stagingPath, publishContext, capability });
    });
    return { path, targetPath, stagingPath, again: before !== undefined };
  }

  async function unpublish(kind: Kind, uid: string, name: string): Promise<void> {
    const layout = layouts[kind];
    const targetPath = layout.target(uid, name);
    const data = await loadVolumeData(layout.dataOfPod(uid, name));
    const key = `${uid}/${name}`;
    if (data !== undefined && (attempted.has(key) || (await exists(targetPath)))) {
      let client: CsiClient;
      try {
        client = drivers.client(data.driverName);
      } catch (err) {
        throw new Error(`kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: ${(err as Error).message}`);
      }
      await client.unpublish(data.volumeHandle, targetPath).catch((err: Error) => {
        throw new Error(`kubernetes.io/csi: Unmounter.TearDownAt failed: ${err.message}`);
      });
    }
    if (await isMounted(targetPath, mounter)) throw new Error(`kubernetes.io/csi: ${targetPath} is still mounted`);
    if (kind === "mount") {
      await removeFolder(targetPath);
      await removeVolumeData(layout.dataOfPod(uid, name));
    } else await unlink(layout.ofPod(uid, name));
    published.delete(key);
    attempted.delete(key);
  }

  /** Unstages and detaches a volume once no Pod uses it. */
  async function unstage(name: string): Promise<void> {
    for (const layout of Object.values(layouts)) if ((await layout.usersOf(name)).length > 0) return;
    for (const kind of kinds) await unstageFrom(kind, name);
    const source = used.get(name);
    if (source !== undefined && needsAttach(source.driver)) await attachments.release(source);
    if (used.delete(name)) options.onInUseChange();
  }

  async function unstageFrom(kind: Kind, name: string): Promise<void> {
    const layout = layouts[kind];
    const data = await loadVolumeData(layout.data(name));
    if (data === undefined) return removeStaged(layout, name);
    await observed(options.operations(csiPlugin(data.driverName), steps[kind].unstageOperation), async () => {
      const client = drivers.client(data.driverName);
      if ((await client.capabilities()).has("stageUnstage")) await client.unstage(data.volumeHandle, layout.staging(name));
      await removeStaged(layout, name);
    });
  }

  async function removeStaged(layout: VolumeLayout, name: string): Promise<void> {
    const path = layout.staging(name);
    if (await isMounted(path, mounter)) throw new Error(`kubernetes.io/csi: ${path} is still mounted`);
    await removeFolder(path);
    await removeVolumeData(layout.data(name));
    for (const rest of layout.rest(name)) await removeFolder(rest);
  }

  async function volumesOf(uid: string): Promise<[Kind, string][]> {
    const found = await Promise.all(
      kinds.map(async (kind) => (await layouts[kind].podVolumes(uid)).map((name): [Kind, string] => [kind, name])),
    );
    return found.flat();
  }

  async function collect(): Promise<void> {
    let names: Set<string>;
    try {
      names = new Set([...used.keys(), ...(await layouts.mount.names()), ...(await layouts.block.names())]);
    } catch (err) {
      log.error("unused volumes cannot be looked at", err);
      return;
    }
    await releaseUnused(names);
  }

  return {
    setUp: (pod, source) =>
      serial(source.mode === "Persistent" ? source.name : `${pod.metadata.uid}/${source.name}`, () => setUp(pod, source)),
    async tearDown(uid) {
      const failures: Error[] = [];
      for (const [kind, name] of await volumesOf(uid)) {
        try {
          const mode = (await loadVolumeData(layouts[kind].dataOfPod(uid, name)))?.volumeLifecycleMode;
          await serial(mode === "Ephemeral" ? `${uid}/${name}` : name, () => unpublish(kind, uid, name));
          if (mode !== "Ephemeral") void releaseUnused([name]);
        } catch (err) {
          const what = kind === "mount" ? "UnmountVolume.TearDown" : "UnmapVolume.UnmapPodDevice";
          const message = `${what} failed for volume ${JSON.stringify(name)} : ${(err as Error).message}`;
          failures.push(new Error(message, { cause: err }));
        }
      }
      if (failures[0] !== undefined) throw failures[0];
    },
    collect,
    inUse() {
      try {
        const attached = [...used.values()].filter(({ driver }) => needsAttach(driver));
        return attached.map(idOf).toSorted();
      } catch {
        return undefined; // CSIDrivers are not synced yet
      }
    },
    async restore() {
      const claim = async (name: string, dir: string): Promise<void> => {
        const data = await loadVolumeData(dir).catch((err) => {
          log.error("what is known of a CSI volume cannot be read", err, { path: dir });
          return undefined;
        });
        if (data === undefined || data.volumeLifecycleMode === "Ephemeral") return;
        used.set(name, { driver: data.driverName, handle: data.volumeHandle });
      };
      for (const layout of Object.values(layouts)) for (const name of await layout.names()) await claim(name, layout.data(name));
      for (const uid of await paths.pods())
        for (const [kind, name] of await volumesOf(uid)) await claim(name, layouts[kind].dataOfPod(uid, name));
    },
  };
}
