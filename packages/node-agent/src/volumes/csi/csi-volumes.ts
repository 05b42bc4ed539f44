import { symlink, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { attachmentName } from "@coxswain/apimachinery/volumes/volume-id";
import type { NodePod } from "../../pod/pod.ts";
import type { PodObjects } from "../../pod/pod-objects.ts";
import { isMounted, type Mounter } from "../mount.ts";
import { setVolumeOwnership } from "../ownership.ts";
import type { ReleaseUnused } from "../release-unused.ts";
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

/** Result of setting up a volume. */
export interface PublishedVolume {
  /** Path given to containers: a directory to mount, or a link to a device. */
  path: string;
  /** Target path of NodePublishVolume. */
  targetPath: string;
  /** Empty when the driver does not stage. */
  stagingPath: string;
  /** True when the volume was published before this call. */
  again: boolean;
}

interface CsiVolumesOptions {
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

/**
 * Node-side lifecycle of CSI volumes: attach, stage, publish and the reverse.
 * Source: pkg/volume/csi csi_attacher.go, csi_mounter.go; pkg/kubelet/volumemanager/reconciler
 */
export class CsiVolumes {
  readonly #options: CsiVolumesOptions;
  readonly #layouts: Readonly<Record<"block" | "mount", VolumeLayout>>;
  /** Volumes published by this process, by `<uid>/<name>`. */
  readonly #published = new Map<string, { stagingPath: string }>();
  /** Keys of NodePublishVolume calls that may have had an effect: these must be unpublished even if the call failed. */
  readonly #attempted = new Set<string>();
  /** Persistent volumes by name, from the first use by a Pod until they are unstaged. */
  readonly #used = new Map<string, Pick<CsiSource, "driver" | "handle">>();
  /** Serializes stage, publish and their reverse per volume. */
  readonly #serial = newSerial();
  readonly #releaseUnused: ReleaseUnused;

  constructor(options: CsiVolumesOptions) {
    this.#options = options;
    const { paths, clock, log } = options;
    const { layouts } = paths;
    this.#layouts = layouts;
    this.#releaseUnused = newReleaseUnused({ serial: this.#serial, release: (name) => this.#unstage(name), clock, log });
  }

  /**
   * Attaches, stages and publishes a volume for a Pod, as far as the driver requires each step. A published volume is not
   * published again unless the driver sets `requiresRepublish`.
   * @throws VolumeWaits while the volume is not attached; VolumeError with the failed step
   */
  setUp(pod: NodePod, source: CsiSource): Promise<PublishedVolume> {
    return this.#serial(source.mode === "Persistent" ? source.name : `${pod.metadata.uid}/${source.name}`, () =>
      this.#setUp(pod, source),
    );
  }

  /** Unpublishes all volumes of a Pod; works from the files on disk. @throws Error the first failure */
  async tearDown(uid: string): Promise<void> {
    const failures: Error[] = [];
    for (const [kind, name] of await this.#volumesOf(uid)) {
      try {
        const mode = (await loadVolumeData(this.#layouts[kind].dataOfPod(uid, name)))?.volumeLifecycleMode;
        await this.#serial(mode === "Ephemeral" ? `${uid}/${name}` : name, () => this.#unpublish(kind, uid, name));
        if (mode !== "Ephemeral") void this.#releaseUnused([name]);
      } catch (err) {
        const what = kind === "mount" ? "UnmountVolume.TearDown" : "UnmapVolume.UnmapPodDevice";
        const message = `${what} failed for volume ${JSON.stringify(name)} : ${messageOf(err)}`;
        failures.push(new Error(message, { cause: err }));
      }
    }
    if (failures[0] !== undefined) throw failures[0];
  }

  /** Unstages volumes that no Pod uses any more; failures are retried by a later call. */
  async collect(): Promise<void> {
    const { log } = this.#options;
    let names: Set<string>;
    try {
      names = new Set([...this.#used.keys(), ...(await this.#layouts.mount.names()), ...(await this.#layouts.block.names())]);
    } catch (err) {
      log.error("cannot check unused volumes", err);
      return;
    }
    await this.#releaseUnused(names);
  }

  /**
   * IDs of volumes that must stay attached to this node, sorted, for the node's status; undefined until CSIDrivers are synced.
   */
  inUse(): readonly string[] | undefined {
    try {
      const attached = [...this.#used.values()].filter(({ driver }) => this.#needsAttach(driver));
      return attached.map(idOf).toSorted();
    } catch {
      return undefined; // CSIDrivers are not synced yet
    }
  }

  /** Restores state from disk after a restart. Call before the node's status reports volumes in use. */
  async restore(): Promise<void> {
    const { log, paths } = this.#options;
    const claim = async (name: string, dir: string): Promise<void> => {
      const data = await loadVolumeData(dir).catch((err) => {
        log.error("cannot read the stored data of a CSI volume", err, { path: dir });
        return undefined;
      });
      if (data === undefined || data.volumeLifecycleMode === "Ephemeral") return;
      this.#used.set(name, { driver: data.driverName, handle: data.volumeHandle });
    };
    for (const layout of Object.values(this.#layouts))
      for (const name of await layout.names()) await claim(name, layout.data(name));
    for (const uid of await paths.pods())
      for (const [kind, name] of await this.#volumesOf(uid)) await claim(name, this.#layouts[kind].dataOfPod(uid, name));
  }

  #use(source: CsiSource): void {
    if (source.mode !== "Persistent" || this.#used.has(source.name)) return;
    this.#used.set(source.name, { driver: source.driver, handle: source.handle });
    this.#options.onInUseChange();
  }

  #needsAttach(driver: string): boolean {
    return this.#options.driverObject(driver)?.spec.attachRequired !== false;
  }

  #clientFor(source: CsiSource, caller: string): CsiClient {
    const { drivers } = this.#options;
    try {
      return drivers.client(source.driver);
    } catch (err) {
      throw new Error(`kubernetes.io/csi: ${caller}: ${messageOf(err)}`);
    }
  }

  async #stage(
    client: CsiClient,
    source: CsiSource,
    capability: Capability,
    publishContext: Record<string, string>,
  ): Promise<string> {
    const { objects, mounter } = this.#options;
    if (!(await client.capabilities()).has("stageUnstage")) return "";
    const layout = this.#layouts[source.kind];
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

  async #publish(
    pod: NodePod,
    source: CsiSource,
    driver: CSIDriver | undefined,
    rest: { stagingPath: string; publishContext: Record<string, string>; capability: Capability },
  ): Promise<void> {
    const { objects, mounter } = this.#options;
    const client = this.#clientFor(source, steps[source.kind].publishClient);
    const key = `${pod.metadata.uid}/${source.name}`;
    const targetPath = this.#layouts[source.kind].target(pod.metadata.uid, source.name);
    await makeFolder(dirname(targetPath), 0o750);
    const context = {
      ...source.attributes,
      ...podAttributes(source, pod, driver),
      ...(await tokenAttributes(objects, pod, driver)),
    };
    const secrets = await readSecret(objects, source.publishSecret, "NodePublishSecretRef");
    const again = this.#published.has(key);
    this.#attempted.add(key);
    try {
      await client.publish({ ...rest, handle: source.handle, targetPath, readOnly: source.readOnly, secrets, context });
    } catch (err) {
      if (isFinal(err) && !again && !(await isMounted(targetPath, mounter))) this.#attempted.delete(key);
      throw err;
    }
    if (
      !again &&
      source.kind === "mount" &&
      rest.capability.group === undefined &&
      takesGroup(source, driver?.spec.fsGroupPolicy ?? "")
    ) {
      const { operations, log } = this.#options;
      const plugin = csiPlugin(source.driver);
      await setVolumeOwnership(targetPath, pod, { readOnly: false, policy: true, plugin, operations, log }).catch(
        (err: Error) => {
          throw new Error(`applyFSGroup failed for vol ${source.handle}: ${err.message}`);
        },
      );
    }
    this.#published.set(key, { stagingPath: rest.stagingPath });
  }

  async #setUp(pod: NodePod, source: CsiSource): Promise<PublishedVolume> {
    const { attachments } = this.#options;
    const { uid } = pod.metadata;
    const layout = this.#layouts[source.kind];
    const names = steps[source.kind];
    const driver = await step(names.begin, source, async () => {
      const object = this.#options.driverObject(source.driver);
      const problem = lifecycleProblem(source, object);
      if (problem !== undefined) throw new Error(problem);
      return object;
    });
    const targetPath = layout.target(uid, source.name);
    const path = source.kind === "mount" ? targetPath : layout.ofPod(uid, source.name);
    const before = this.#published.get(`${uid}/${source.name}`);
    if (before !== undefined && driver?.spec.requiresRepublish !== true) return { path, targetPath, ...before, again: true };
    await step(names.begin, source, async () => {
      await saveVolumeData(layout.dataOfPod(uid, source.name), {
        specVolID: source.name,
        volumeHandle: source.handle,
        driverName: source.driver,
        nodeName: this.#options.nodeName,
        volumeLifecycleMode: source.mode,
        attachmentID: attachmentName(idOf(source), this.#options.nodeName),
      });
      if (source.kind === "block" && !(await exists(path))) {
        await makeFolder(dirname(path), 0o750);
        await symlink(targetPath, path);
      }
    });
    this.#use(source);
    const attach = source.mode === "Persistent" && this.#needsAttach(source.driver);
    const publishContext = await step(names.attach, source, async () => (attach ? await attachments.contextOf(source) : {}));
    const capabilityFor = async (client: CsiClient): Promise<Capability> => {
      const fsGroup = pod.spec.securityContext?.fsGroup;
      const delegated = fsGroup !== undefined && this.#options.delegateGroup && (await client.capabilities()).has("mountGroup");
      const { kind, fsType, mountOptions } = source;
      const accessMode = source.accessModes[0] ?? "ReadWriteOnce";
      return { kind, fsType, mountOptions, accessMode, ...(delegated && { group: fsGroup }) };
    };
    const stagingPath =
      source.mode === "Ephemeral"
        ? ""
        : await step(names.stage, source, async () => {
            const client = this.#clientFor(source, names.stageClient);
            return this.#stage(client, source, await capabilityFor(client), publishContext);
          });
    await step(names.publish, source, async () => {
      const capability = await capabilityFor(this.#clientFor(source, names.publishClient));
      await this.#publish(pod, source, driver, { stagingPath, publishContext, capability });
    });
    return { path, targetPath, stagingPath, again: before !== undefined };
  }

  async #unpublish(kind: Kind, uid: string, name: string): Promise<void> {
    const { drivers, mounter } = this.#options;
    const layout = this.#layouts[kind];
    const targetPath = layout.target(uid, name);
    const data = await loadVolumeData(layout.dataOfPod(uid, name));
    const key = `${uid}/${name}`;
    if (data !== undefined && (this.#attempted.has(key) || (await exists(targetPath)))) {
      let client: CsiClient;
      try {
        client = drivers.client(data.driverName);
      } catch (err) {
        throw new Error(`kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: ${messageOf(err)}`);
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
    this.#published.delete(key);
    this.#attempted.delete(key);
  }

  /** Unstages and detaches a volume once no Pod uses it. */
  async #unstage(name: string): Promise<void> {
    const { attachments } = this.#options;
    for (const layout of Object.values(this.#layouts)) if ((await layout.usersOf(name)).length > 0) return;
    for (const kind of kinds) await this.#unstageFrom(kind, name);
    const source = this.#used.get(name);
    if (source !== undefined && this.#needsAttach(source.driver)) await attachments.release(source);
    if (this.#used.delete(name)) this.#options.onInUseChange();
  }

  async #unstageFrom(kind: Kind, name: string): Promise<void> {
    const { drivers } = this.#options;
    const layout = this.#layouts[kind];
    const data = await loadVolumeData(layout.data(name));
    if (data === undefined) return this.#removeStaged(layout, name);
    await observed(this.#options.operations(csiPlugin(data.driverName), steps[kind].unstageOperation), async () => {
      const client = drivers.client(data.driverName);
      if ((await client.capabilities()).has("stageUnstage")) await client.unstage(data.volumeHandle, layout.staging(name));
      await this.#removeStaged(layout, name);
    });
  }

  async #removeStaged(layout: VolumeLayout, name: string): Promise<void> {
    const { mounter } = this.#options;
    const path = layout.staging(name);
    if (await isMounted(path, mounter)) throw new Error(`kubernetes.io/csi: ${path} is still mounted`);
    await removeFolder(path);
    await removeVolumeData(layout.data(name));
    for (const rest of layout.rest(name)) await removeFolder(rest);
  }

  async #volumesOf(uid: string): Promise<[Kind, string][]> {
    const found = await Promise.all(
      kinds.map(async (kind) => (await this.#layouts[kind].podVolumes(uid)).map((name): [Kind, string] => [kind, name])),
    );
    return found.flat();
  }
}

/** Runs one step; failures become VolumeErrors with the step's name. */
async function step<T>(name: VolumeError["step"], source: CsiSource, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw err instanceof VolumeWaits ? err : new VolumeError(name, source.name, err);
  }
}
