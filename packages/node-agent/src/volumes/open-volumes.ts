import { join } from "node:path";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type BeginOperation, newOperations, storageOperations } from "@coxswain/apimachinery/volumes/storage-operations";
import type { AgentConfig } from "../agent-config.ts";
import type { Background } from "../background.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { OwnNode } from "../node/own-node.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import { type Csi, type CsiOptions, newCsi } from "./csi/csi.ts";
import { type FlexVolumes, newFlexVolumes } from "./flex/flex.ts";
import type { Mounter } from "./mount.ts";
import { type FolderQuotas, newFolderQuotas } from "./quota/folder-quotas.ts";
import { newVolumeManager, type VolumeManager } from "./volume-manager.ts";
import { countVolumes, newVolumeOperations } from "./volume-operations.ts";

interface OpenVolumesOptions extends Required<Pick<CsiOptions, "onCall">> {
  config: AgentConfig;
  featureGates: FeatureGates;
  nodeName: string;
  node: Pick<OwnNode, "registered" | "hurry">;
  podsDir: string;
  objects: PodObjects;
  /** Undefined in standalone mode, which has no CSI volumes. */
  api: ApiConnection | undefined;
  reportPodEvent: ContainerEvent;
  metrics: MetricsRegistry;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  turns: Turns;
}

/** The volume manager and the volume plugins. */
export interface OpenedVolumes {
  volumes: VolumeManager;
  csi: Csi | undefined;
  flex: FlexVolumes;
  /** With the feature gate LocalStorageCapacityIsolationFSQuotaMonitoring. */
  quotas: FolderQuotas | undefined;
}

/** Creates the volume manager and the volume plugins; resolves when the state on disk is restored. */
export async function openVolumes(options: OpenVolumesOptions): Promise<OpenedVolumes> {
  const { config, node, nodeName, podsDir, objects, api, metrics, mounter, clock, log } = options;
  const begin = newOperations(storageOperations(metrics), clock);
  const operations = newVolumeOperations(begin);
  countVolumes(metrics, operations);
  const csi = api && openCsi(options, api, begin);
  await csi?.restore();
  const flex = newFlexVolumes({
    pluginDir: config.volumePluginDir,
    pluginsDir: join(config.rootDir, "plugins"),
    podsDir,
    nodeName,
    node: () => node.registered(),
    byController: api !== undefined && config.controllerAttachDetach,
    objects,
    mounter,
    clock,
    log,
    onInUseChange: () => node.hurry(),
    operations: begin,
  });
  await flex.restore();
  const nodeLabels = () => node.registered()?.metadata.labels;
  const isCounted = options.featureGates.enabled("LocalStorageCapacityIsolationFSQuotaMonitoring");
  const quotas = isCounted ? newFolderQuotas({ log }) : undefined;
  const sizesMemory = options.featureGates.enabled("SizeMemoryBackedVolumes");
  const { reportPodEvent } = options;
  const parts = { csi, flex, quotas, operations, nodeLabels, reportPodEvent, turns: options.turns };
  const volumes = newVolumeManager({ podsDir, objects, mounter, clock, log, ...parts, sizesMemory });
  return { csi, flex, quotas, volumes };
}

function openCsi(options: OpenVolumesOptions, api: ApiConnection, operations: BeginOperation): Csi {
  const { config, featureGates, nodeName, node, podsDir, objects, mounter, clock, log, onCall } = options;
  return newCsi({
    client: api.client,
    csiDrivers: api.csiDrivers,
    recorder: api.recorder,
    reportPodEvent: options.reportPodEvent,
    node: () => node.registered(),
    nodeName,
    rootDir: config.rootDir,
    podsDir,
    controllerAttaches: config.controllerAttachDetach,
    featureGates,
    objects,
    mounter,
    clock,
    log,
    onCall,
    operations,
    onChange: () => node.hurry(),
  });
}

const volumeCheckMs = 2_000;

/** IDs of volumes that must stay attached to this node, sorted; undefined until CSIDrivers are synced. */
export function volumesInUse({ csi, flex }: OpenedVolumes): readonly string[] | undefined {
  const known = csi === undefined ? [] : csi.inUse();
  return known === undefined ? undefined : [...known, ...flex.inUse()].toSorted();
}

/** Publishes the node's CSI drivers and releases unused volumes until the agent stops. */
export function startVolumes({ csi, flex }: OpenedVolumes, background: Background): void {
  const { signal } = background;
  // Not awaited: a driver that hangs must delay neither the next pass nor the agent's shutdown.
  background.every(volumeCheckMs, "unused volumes", () => {
    void flex.collect();
    void csi?.collect();
  });
  if (csi === undefined) return;
  background.add(csi.start(signal));
  signal.addEventListener("abort", () => csi.close(), { once: true });
}
