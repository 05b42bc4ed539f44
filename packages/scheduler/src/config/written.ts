import { fieldsOf } from "@coxswain/apimachinery/flags/settings";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import {
  connectionSettings,
  insecureAddressSettings,
  leaderElectionSettings,
  profilingSettings,
  schedulingSettings,
} from "../settings.ts";
import type { ExtenderConfig } from "./file.ts";
import { type PluginSet, pluginNames, pluginPoints } from "./plugin-sets.ts";
import type { ProfileConfig, SchedulerConfig } from "./scheduler-config.ts";

/** The effective configuration as a YAML file, keys sorted. Source: options/configfile.go LogOrWriteConfig */
export function asYaml(config: SchedulerConfig): string {
  return toYaml(sortKeys(asWritten(config)));
}

/** The effective configuration as JSON of its versioned type, with all defaults. Source: the versioned types' JSON */
export function asWritten(config: SchedulerConfig): Record<string, unknown> {
  const { version, extenders } = config;
  const apiVersion = `kubescheduler.config.k8s.io/${version}`;
  return {
    apiVersion,
    kind: "KubeSchedulerConfiguration",
    ...fieldsOf(connectionSettings, config.clientConnection),
    ...fieldsOf(profilingSettings, config),
    ...(version === "v1beta2" ? fieldsOf(insecureAddressSettings, config) : {}),
    ...fieldsOf(leaderElectionSettings, config.leaderElection),
    ...fieldsOf(schedulingSettings, config),
    profiles: config.profiles.map((profile) => writtenProfile(profile, apiVersion)),
    ...(extenders.length === 0 ? {} : { extenders: extenders.map(writtenExtender) }),
  };
}

function writtenProfile({ schedulerName, plugins, args }: ProfileConfig, apiVersion: string): unknown {
  const used = pluginNames(plugins);
  const pluginConfig = keysOf(args)
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
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys(value[key])]));
}
