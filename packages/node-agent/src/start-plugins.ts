import { join } from "node:path";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AgentConfig } from "./agent-config.ts";
import type { Background } from "./background.ts";
import { countPlugins } from "./plugins/plugin-metrics.ts";
import { type PluginHandler, PluginRegistry, type PluginRegistryOptions } from "./plugins/plugin-registry.ts";
import type { NodePod } from "./pod/pod.ts";
import type { OpenedManagers } from "./resources/open-resource-managers.ts";
import { servePodResources } from "./server/pod-resources.ts";

interface PluginsOptions extends Pick<PluginRegistryOptions, "clock" | "log"> {
  readonly config: AgentConfig;
  readonly featureGates: FeatureGates;
  readonly background: Background;
  readonly managers: Pick<OpenedManagers, "cpu" | "memory" | "devices">;
  /** Handler of CSI drivers; undefined in standalone mode. */
  readonly csiHandler: PluginHandler | undefined;
  readonly activePods: () => readonly NodePod[];
  readonly metrics: MetricsRegistry;
  /** Called for each request to the pod resources API. */
  readonly onResourcesRequest: (version: string) => void;
}

const checkMs = 1_000;

/**
 * Starts plugin registration and the pod resources API. Failures are only logged: without these sockets (e.g. because their
 * path is too long for a unix socket) the node still runs Pods.
 */
export async function startPlugins(options: PluginsOptions): Promise<void> {
  const { config, featureGates, background, managers, csiHandler, clock, log } = options;
  const { signal } = background;
  const { devices } = managers;
  const takesDevices = featureGates.enabled("DevicePlugins");
  if (takesDevices) await devices.start(signal).catch((err) => log.error("Device plugins cannot register", err));
  const registry = new PluginRegistry({
    dir: join(config.rootDir, "plugins_registry"),
    handlers: { ...(csiHandler && { CSIPlugin: csiHandler }), ...(takesDevices && { DevicePlugin: devices.handler }) },
    clock,
    log,
  });
  countPlugins(options.metrics, registry);
  background.every(checkMs, "plugins", () => registry.reconcile());
  if (!featureGates.enabled("KubeletPodResources")) return;
  try {
    const { close } = await servePodResources({
      dir: join(config.rootDir, "pod-resources"),
      managers,
      pods: options.activePods,
      allocatable: featureGates.enabled("KubeletPodResourcesGetAllocatable"),
      onRequest: options.onResourcesRequest,
      log,
    });
    signal.addEventListener("abort", close, { once: true });
  } catch (err) {
    log.error("The pod resources socket cannot be served", err);
  }
}
