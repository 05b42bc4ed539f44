import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { type BeginOperation, newOperations, storageOperations } from "@coxswain/apimachinery/volumes/storage-operations";
import type { Background } from "../background.ts";
import type { AgentConfig } from "../config.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { OwnNode } from "../node/own-node.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import { type Csi, type CsiOptions, newCsi } from "./csi/csi.ts";
import { type FlexVolumes, newFlexVolumes } from "./flex/flex.ts";
import type { Mounter } from "./mount.ts";
import { type FolderQuotas, newFolderQuotas } from "./quota/folder-quotas.ts";
import { newVolumeManager, type VolumeManager } from "./volume-manager.ts";
import { countVolumes, newVolumeOperations } from "./volume-operations.ts";

export interface OpenVolumesOptions extends Required<Pick<CsiOptions, "onCall">> {
  config: AgentConfig;
  featureGates: FeatureGates;
  nodeName: string;
  node: Pick<OwnNode, "registered" | "hurry">;
  podsDir: string;
  objects: PodObjects;
  /** Undefined in standalone mode: then there are no CSI volumes. */
  api: ApiConnection | undefined;
  tellPod: ContainerEvent;
  metrics: MetricsRegistry;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
}

export interface OpenedVolumes {
  volumes: VolumeManager;
  csi: Csi | undefined;
  flex: FlexVolumes;
  /** With the gate LocalStorageCapacityIsolationFSQuotaMonitoring. */
  quotas: FolderQuotas | undefined;
}

/** Makes what mounts volumes; resolves when it knows what an agent before this one has mounted. */
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
    node: node.registered,
    byController: api !== undefined && config.controllerAttachDetach,
    objects,
    mounter,
    clock,
    log,
    onInUseChange: node.hurry,
    operations: begin,
  });
  await flex.restore();
  const nodeLabels = () => node.registered()?.metadata.labels;
  const isCounted = options.featureGates.enabled("LocalStorageCapacityIsolationFSQuotaMonitoring");
  const quotas = isCounted ? newFolderQuotas({ log }) : undefined;
  const sizesMemory = options.featureGates.enabled("SizeMemoryBackedVolumes");
  const parts = { csi, flex, quotas, operations, nodeLabels };
  const volumes = newVolumeManager({ podsDir, objects, mounter, clock, log, ...parts, sizesMemory });
  return { csi, flex, quotas, volumes };
}

function openCsi(options: OpenVolumesOptions, api: ApiConnection, operations: BeginOperation): Csi {
  const { config, featureGates, nodeName, node, podsDir, objects, mounter, clock, log, onCall } = options;
  return newCsi({
    client: api.client,
    csiDrivers: api.csiDrivers,
    recorder: api.recorder,
    tellPod: options.tellPod,
    node: node.registered,
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
    onChange: node.hurry,
  });
}

const volumeCheckMs = 2_000;

/** Volumes that must stay attached to this node, sorted; undefined while that is not known. */
export function volumesInUse({ csi, flex }: OpenedVolumes): readonly string[] | undefined {
  const known = csi === undefined ? [] : csi.inUse();
  return known === undefined ? undefined : [...known, ...flex.inUse()].toSorted();
}

/** Tells the cluster of the node's drivers, and takes unused volumes away, until the agent stops. */
export function startVolumes({ csi, flex }: OpenedVolumes, background: Background): void {
  const { signal } = background;
  // Nobody waits for a driver that hangs: neither the next look nor the agent's end.
  background.every(volumeCheckMs, "unused volumes", () => {
    void flex.collect();
    void csi?.collect();
  });
  if (csi === undefined) return;
  background.add(csi.start(signal));
  signal.addEventListener("abort", csi.close, { once: true });
}
