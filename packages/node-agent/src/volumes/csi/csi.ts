import { dirname, join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Node, PersistentVolume, PersistentVolumeClaim, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { translated, translatedInline } from "@coxswain/apimachinery/volumes/csi-translation";
import { driverOf, migratedPluginOf, migratedPlugins } from "@coxswain/apimachinery/volumes/migration";
import type { BeginOperation } from "@coxswain/apimachinery/volumes/storage-operations";
import type { PluginHandler } from "../../plugins/plugin-registry.ts";
import type { NodePod } from "../../pod/pod.ts";
import type { PodObjects } from "../../pod/pod-objects.ts";
import type { ContainerEvent } from "../../runtime/containers.ts";
import type { MeasuredVolume } from "../measure.ts";
import type { Mounter } from "../mount.ts";
import { type SetUpVolume, VolumeError } from "../volume.ts";
import { newAttachments } from "./attachment.ts";
import type { OnCsiCall } from "./csi-client.ts";
import { type CsiDrivers, newCsiDrivers } from "./csi-drivers.ts";
import { newCsiPaths } from "./csi-paths.ts";
import { type CsiSource, ephemeralSource, persistentSource } from "./csi-source.ts";
import { CsiVolumes, type PublishedVolume } from "./csi-volumes.ts";
import { type Expand, newExpansion } from "./expansion.ts";
import { CsiNodeInfo } from "./node-info.ts";

/** CSI volumes as used by the volume manager and the node status. */
export interface Csi extends Pick<CsiVolumes, "tearDown" | "collect" | "inUse" | "restore"> {
  /** Handles the registration of drivers. */
  handler: PluginHandler;
  /** The reason why the node is not ready, if any. */
  problem(): string | undefined;
  /** Publishes the node's CSINode object; resolves when that is done. */
  start(signal: AbortSignal): Promise<void>;
  /** @returns undefined for volumes that are neither CSI volumes nor migrated to CSI */
  persistent(
    pod: NodePod,
    volume: PersistentVolume,
    claim: PersistentVolumeClaim,
    readOnly: boolean,
  ): Promise<SetUpVolume | undefined>;
  /**
   * A volume in the Pod's spec: a CSI ephemeral volume, or an in-tree volume that is migrated to CSI.
   * @returns undefined for other volumes
   */
  inline(pod: NodePod, volume: Volume): Promise<SetUpVolume | undefined>;
  close(): void;
}

export interface CsiOptions {
  client: Client;
  csiDrivers: SharedInformer<CSIDriver>;
  recorder: EventRecorder;
  reportPodEvent: ContainerEvent;
  node: () => Node | undefined;
  nodeName: string;
  rootDir: string;
  podsDir: string;
  /** `--enable-controller-attach-detach` */
  controllerAttaches: boolean;
  featureGates: FeatureGates;
  objects: PodObjects;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  onCall?: OnCsiCall;
  operations?: BeginOperation;
  /** Called when the node's status needs an update. */
  onChange: () => void;
}

/** Creates the CSI volume plugin; nothing is sent before `start` or a driver's registration. */
export function newCsi(options: CsiOptions): Csi {
  return new NodeCsi(options);
}

class NodeCsi implements Csi {
  readonly handler: PluginHandler;
  readonly #options: CsiOptions;
  readonly #migrated: string[];
  readonly #watchesHealth: boolean;
  readonly #nodeInfo: CsiNodeInfo;
  readonly #drivers: CsiDrivers;
  readonly #volumes: CsiVolumes;
  readonly #expand: Expand;

  constructor(options: CsiOptions) {
    this.#options = options;
    const { featureGates: gates, client, nodeName, clock, log, csiDrivers } = options;
    this.#migrated = migratedPlugins.map(({ plugin }) => plugin).filter((plugin) => driverOf(plugin, gates) !== undefined);
    this.#watchesHealth = gates.enabled("CSIVolumeHealth");
    this.#nodeInfo = new CsiNodeInfo({
      client,
      nodeName,
      migratedPlugins: this.#migrated,
      clock,
      log,
      onChange: options.onChange,
    });
    this.#drivers = newCsiDrivers({ announcer: this.#nodeInfo, ...(options.onCall && { onCall: options.onCall }) });
    this.#volumes = new CsiVolumes({
      paths: newCsiPaths({ podsDir: options.podsDir, pluginsDir: join(options.rootDir, "plugins") }),
      nodeName,
      drivers: this.#drivers,
      driverObject: (name) => {
        if (!csiDrivers.synced) throw new Error("CSIDrivers has not been synced yet");
        return csiDrivers.lister.get(name);
      },
      attachments: newAttachments({ client, nodeName, node: options.node, byController: options.controllerAttaches }),
      objects: options.objects,
      mounter: options.mounter,
      clock,
      log,
      delegateGroup: gates.enabled("DelegateFSGroupToCSIDriver"),
      onInUseChange: options.onChange,
      operations: options.operations ?? (() => () => {}),
    });
    this.#expand = newExpansion({
      client,
      recorder: options.recorder,
      reportPodEvent: options.reportPodEvent,
      nodeName,
      recovers: gates.enabled("RecoverVolumeExpansionFailure"),
      log,
    });
    this.handler = this.#drivers;
  }

  problem(): string | undefined {
    return this.#nodeInfo.problem();
  }

  start(signal: AbortSignal): Promise<void> {
    return this.#nodeInfo.initialize(signal);
  }

  close(): void {
    this.#drivers.close();
  }

  async persistent(
    pod: NodePod,
    written: PersistentVolume,
    claim: PersistentVolumeClaim,
    readOnly: boolean,
  ): Promise<SetUpVolume | undefined> {
    const volume = this.#csiForm(written);
    const source = persistentSource(volume, readOnly);
    if (source === undefined) return undefined;
    const published = await this.#volumes.setUp(pod, source);
    await this.#expand({ pod, claim, volume, source, published, driver: () => this.#drivers.client(source.driver) }).catch(
      (err) => {
        throw new VolumeError("MountVolume.Setup failed while expanding volume", source.name, err);
      },
    );
    return this.#asSetUp(pod, source, published);
  }

  async inline(pod: NodePod, volume: Volume): Promise<SetUpVolume | undefined> {
    const { featureGates: gates } = this.#options;
    const own = gates.enabled("CSIInlineVolume") ? ephemeralSource(pod, volume) : undefined;
    const source = own ?? this.#takenOver(volume, pod.metadata.namespace);
    return source && this.#asSetUp(pod, source, await this.#volumes.setUp(pod, source));
  }

  tearDown(uid: string): Promise<void> {
    return this.#volumes.tearDown(uid);
  }

  collect(): Promise<void> {
    return this.#volumes.collect();
  }

  inUse(): readonly string[] | undefined {
    return this.#volumes.inUse();
  }

  restore(): Promise<void> {
    return this.#volumes.restore();
  }

  /** The CSI form of a volume; in-tree volumes of migrated plugins are translated. */
  #csiForm(volume: PersistentVolume): PersistentVolume {
    const { featureGates: gates } = this.#options;
    const row = migratedPluginOf(volume.spec, gates);
    return (row && translated(volume, row.plugin)) ?? volume;
  }

  #takenOver(volume: Volume, namespace: string): CsiSource | undefined {
    const { featureGates: gates } = this.#options;
    const row = migratedPluginOf(volume, gates);
    const form = row && translatedInline(volume, row.plugin, namespace);
    const made = form && persistentSource(form, false);
    return made && { ...made, attach: { inlineVolumeSpec: form.spec } };
  }

  async #measure({ driver, handle }: CsiSource, { path }: PublishedVolume): Promise<MeasuredVolume | undefined> {
    const found = this.#drivers.client(driver);
    const capabilities = await found.capabilities();
    if (!capabilities.has("volumeStats")) return undefined;
    const { bytes, inodes, condition } = await found.stats(handle, path);
    const isAbnormal = this.#watchesHealth && capabilities.has("condition") && condition?.abnormal === true;
    return {
      ...(isAbnormal && { abnormal: condition.message }),
      usedBytes: bytes?.used ?? 0,
      availableBytes: bytes?.available ?? 0,
      capacityBytes: bytes?.total ?? 0,
      inodesUsed: inodes?.used ?? 0,
      inodesFree: inodes?.available ?? 0,
      inodes: inodes?.total ?? 0,
    };
  }

  #asSetUp(pod: NodePod, source: CsiSource, published: PublishedVolume): SetUpVolume {
    const { path, again } = published;
    const { readOnly, name } = source;
    if (source.kind === "mount") return { path, readOnly, measure: () => this.#measure(source, published) };
    if (!again) {
      const message = `MapVolume.MapPodDevice succeeded for volume ${JSON.stringify(name)} volumeMapPath ${JSON.stringify(dirname(path))}`;
      this.#options.reportPodEvent(pod, undefined, "Normal", "SuccessfulMountVolume", message);
    }
    return { path, readOnly, device: true };
  }
}
