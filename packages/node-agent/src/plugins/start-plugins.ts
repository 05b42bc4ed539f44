import { join } from "node:path";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Background } from "../background.ts";
import type { AgentConfig } from "../config.ts";
import type { NodePod } from "../pods/pod.ts";
import type { OpenedManagers } from "../resources/open-resource-managers.ts";
import { servePodResources } from "../server/pod-resources.ts";
import { newPluginRegistry, type PluginHandler, type PluginRegistryOptions } from "./plugin-registry.ts";

export interface PluginsOptions extends Pick<PluginRegistryOptions, "clock" | "log"> {
  readonly config: AgentConfig;
  readonly featureGates: FeatureGates;
  readonly background: Background;
  readonly managers: Pick<OpenedManagers, "cpu" | "memory" | "devices">;
  /** Of drivers of volumes; undefined without an API server. */
  readonly csiHandler: PluginHandler | undefined;
  readonly activePods: () => readonly NodePod[];
  /** Told of each question about the resources of Pods. */
  readonly onResourcesRequest: (version: string) => void;
}

const checkMs = 1_000;

/**
 * Starts what plugins talk to: where device plugins and drivers register, and where they ask what containers were given.
 * A node without these sockets (their path may be too long for one) still runs Pods.
 */
export async function startPlugins(options: PluginsOptions): Promise<void> {
  const { config, featureGates, background, managers, csiHandler, clock, log } = options;
  const { signal } = background;
  const { devices } = managers;
  const takesDevices = featureGates.enabled("DevicePlugins");
  if (takesDevices) await devices.start(signal).catch((err) => log.error("Device plugins cannot register", err));
  const registry = newPluginRegistry({
    dir: join(config.rootDir, "plugins_registry"),
    handlers: { ...(csiHandler && { CSIPlugin: csiHandler }), ...(takesDevices && { DevicePlugin: devices.handler }) },
    clock,
    log,
  });
  background.every(checkMs, "plugins", registry.reconcile);
  if (!featureGates.enabled("KubeletPodResources")) return;
  try {
    const { close } = await servePodResources({
      dir: join(config.rootDir, "pod-resources"),
      managers,
      pods: options.activePods,
      allocatable: featureGates.enabled("KubeletPodResourcesGetAllocatable"),
      onRequest: options.onResourcesRequest,
    });
    signal.addEventListener("abort", close, { once: true });
  } catch (err) {
    log.error("The pod resources socket cannot be served", err);
  }
}
