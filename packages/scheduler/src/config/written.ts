import { toYaml } from "@coxswain/apimachinery/codec/yaml";
import { formatDuration } from "@coxswain/apimachinery/meta/time";
import type { ExtenderConfig } from "./file.ts";
import type { PluginArgs } from "./plugin-args.ts";
import { type PluginSet, pluginNames, pluginPoints } from "./plugin-sets.ts";
import type { ProfileConfig, SchedulerConfig } from "./scheduler-config.ts";

/** The effective configuration as a YAML file, keys sorted. Source: options/configfile.go LogOrWriteConfig */
export function asYaml(config: SchedulerConfig): string {
  return toYaml(sortKeys(asWritten(config)));
}

/** The effective configuration as JSON of its versioned type, with all defaults. Source: the versioned types' JSON */
export function asWritten(config: SchedulerConfig): Record<string, unknown> {
  const { version, leaderElection, extenders } = config;
  const apiVersion = `kubescheduler.config.k8s.io/${version}`;
  const addresses = { healthzBindAddress: config.healthzBindAddress, metricsBindAddress: config.metricsBindAddress };
  return {
    apiVersion,
    kind: "KubeSchedulerConfiguration",
    clientConnection: config.clientConnection,
    enableContentionProfiling: config.enableContentionProfiling,
    enableProfiling: config.enableProfiling,
    ...(version === "v1beta2" ? addresses : {}),
    leaderElection: {
      leaderElect: leaderElection.enabled,
      leaseDuration: formatDuration(leaderElection.leaseDurationMs),
      renewDeadline: formatDuration(leaderElection.renewDeadlineMs),
      retryPeriod: formatDuration(leaderElection.retryPeriodMs),
      resourceLock: leaderElection.resourceLock,
      resourceName: leaderElection.resourceName,
      resourceNamespace: leaderElection.resourceNamespace,
    },
    parallelism: config.parallelism,
    percentageOfNodesToScore: config.percentageOfNodesToScore,
    podInitialBackoffSeconds: config.podInitialBackoffSeconds,
    podMaxBackoffSeconds: config.podMaxBackoffSeconds,
    profiles: config.profiles.map((profile) => writtenProfile(profile, apiVersion)),
    ...(extenders.length === 0 ? {} : { extenders: extenders.map(writtenExtender) }),
  };
}

function writtenProfile({ schedulerName, plugins, args }: ProfileConfig, apiVersion: string): unknown {
  const used = pluginNames(plugins);
  const pluginConfig = (Object.keys(args) as (keyof PluginArgs)[])
    .filter((name) => used.has(name))
    .sort()
    .map((name) => ({ name, args: { apiVersion, kind: `${name}Args`, ...args[name] } }));
  return {
    ...(pluginConfig.length === 0 ? {} : { pluginConfig }),
    plugins: Object.fromEntries(pluginPoints.map((point) => [point, writtenSet(plugins[point])])),
    schedulerName,
  };
}

const writtenSet = ({ enabled, disabled }: PluginSet): unknown => ({
  ...(enabled.length === 0 ? {} : { enabled }),
  ...(disabled.length === 0 ? {} : { disabled }),
});

function writtenExtender({ httpTimeout = 0, ...extender }: ExtenderConfig): unknown {
  return { ...extender, httpTimeout: formatDuration(httpTimeout) };
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys((value as Record<string, unknown>)[key])]));
}
