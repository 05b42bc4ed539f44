import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Background } from "../background.ts";
import type { AgentConfig } from "../config.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { OwnNode } from "../node/own-node.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import { type Csi, type CsiOptions, newCsi } from "./csi/csi.ts";
import { newFlexVolumes } from "./flex/flex.ts";
import type { Mounter } from "./mount.ts";
import { newVolumeManager, type VolumeManager } from "./volume-manager.ts";

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
  mounter: Mounter;
  clock: Clock;
  log: Logger;
}

export interface OpenedVolumes {
  volumes: VolumeManager;
  csi: Csi | undefined;
}

/** Makes what mounts volumes; resolves when it knows what an agent before this one has mounted. */
export async function openVolumes(options: OpenVolumesOptions): Promise<OpenedVolumes> {
  const { config, node, podsDir, objects, api, mounter, clock, log } = options;
  const csi = api && openCsi(options, api);
  await csi?.restore();
  const flex = newFlexVolumes({ pluginDir: config.volumePluginDir, podsDir, objects, mounter });
  const nodeLabels = () => node.registered()?.metadata.labels;
  return { csi, volumes: newVolumeManager({ podsDir, objects, mounter, clock, log, csi, flex, nodeLabels }) };
}

function openCsi(options: OpenVolumesOptions, api: ApiConnection): Csi {
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
    onChange: node.hurry,
  });
}

const volumeCheckMs = 2_000;

/** Tells the cluster of the node's drivers, and takes unused volumes away, until the agent stops. */
export function startCsi(csi: Csi, background: Background): void {
  const { signal } = background;
  background.add(csi.start(signal));
  background.every(volumeCheckMs, "unused volumes", csi.collect);
  signal.addEventListener("abort", csi.close, { once: true });
}
