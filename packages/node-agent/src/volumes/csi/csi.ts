import { dirname, join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSource,
  Volume,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSIDriver } from "@coxswain/apimachinery/schema/kinds/storage/v1";
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
import { type CsiVolumes, newCsiVolumes, type PublishedVolume } from "./csi-volumes.ts";
import { type Expand, newExpansion } from "./expansion.ts";
import { newCsiNodeInfo } from "./node-info.ts";

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
  tellPod: ContainerEvent;
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
  const { client, csiDrivers, nodeName, featureGates: gates, clock, log } = options;
  const migrated = migratedPlugins.map(({ plugin }) => plugin).filter((plugin) => driverOf(plugin, gates) !== undefined);
  const watchesHealth = gates.enabled("CSIVolumeHealth");
  const nodeInfo = newCsiNodeInfo({
    client,
    nodeName,
    migratedPlugins: migrated,
    clock,
    log,
    onChange: options.onChange,
  });
  const drivers: CsiDrivers = newCsiDrivers({ announcer: nodeInfo, ...(options.onCall && { onCall: options.onCall }) });
  const volumes = newCsiVolumes({
    paths: newCsiPaths({ podsDir: options.podsDir, pluginsDir: join(options.rootDir, "plugins") }),
    nodeName,
    drivers,
    driverObject(name) {
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
  const expand: Expand = newExpansion({
    client,
    recorder: options.recorder,
    tellPod: options.tellPod,
    nodeName,
    recovers: gates.enabled("RecoverVolumeExpansionFailure"),
    log,
  });

  /** The CSI form of a volume; in-tree volumes of migrated plugins are translated. */
  function csiForm(volume: PersistentVolume): PersistentVolume {
    const row = migratedPluginOf(volume.spec, gates);
    return (row && translated(volume, row.plugin)) ?? volume;
  }

  function takenOver(volume: Volume, namespace: string): CsiSource | undefined {
    const row = migratedPluginOf(volume as PersistentVolumeSource, gates);
    const form = row && translatedInline(volume, row.plugin, namespace);
    const made = form && persistentSource(form, false);
    return made && { ...made, attach: { inlineVolumeSpec: form.spec } };
  }

  async function measure({ driver, handle }: CsiSource, { path }: PublishedVolume): Promise<MeasuredVolume | undefined> {
    const found = drivers.client(driver);
    const capabilities = await found.capabilities();
    if (!capabilities.has("volumeStats")) return undefined;
    const { bytes, inodes, condition } = await found.stats(handle, path);
    const isAbnormal = watchesHealth && capabilities.has("condition") && condition?.abnormal === true;
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

  function asSetUp(pod: NodePod, source: CsiSource, published: PublishedVolume): SetUpVolume {
    const { path, again } = published;
    const { readOnly, name } = source;
    if (source.kind === "mount") return { path, readOnly, measure: () => measure(source, published) };
    if (!again) {
      const message = `MapVolume.MapPodDevice succeeded for volume ${JSON.stringify(name)} volumeMapPath ${JSON.stringify(dirname(path))}`;
      options.tellPod(pod, undefined, "Normal", "SuccessfulMountVolume", message);
    }
    return { path, readOnly, device: true };
  }

  return {
    handler: drivers,
    problem: nodeInfo.problem,
    start: nodeInfo.initialize,
    tearDown: volumes.tearDown,
    collect: volumes.collect,
    inUse: volumes.inUse,
    restore: volumes.restore,
    async persistent(pod, written, claim, readOnly) {
      const volume = csiForm(written);
      const source = persistentSource(volume, readOnly);
      if (source === undefined) return undefined;
      const published = await volumes.setUp(pod, source);
      await expand({ pod, claim, volume, source, published, driver: () => drivers.client(source.driver) }).catch((err) => {
        throw new VolumeError("MountVolume.Setup failed while expanding volume", source.name, err);
      });
      return asSetUp(pod, source, published);
    },
    async inline(pod, volume) {
      const own = gates.enabled("CSIInlineVolume") ? ephemeralSource(pod, volume) : undefined;
      const source = own ?? takenOver(volume, pod.metadata.namespace);
      return source && asSetUp(pod, source, await volumes.setUp(pod, source));
    },
    close: drivers.close,
  };
}
