import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { type Settings, type SettingValues, settingValues } from "@coxswain/apimachinery/flags/settings";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { keysOf, tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { SchedulerFlags } from "../flags.ts";
import {
  connectionSettings,
  formerLockSettings,
  insecureAddressSettings,
  leaderElectionSettings,
  profilingSettings,
  schedulingSettings,
} from "../settings.ts";
import { defaultCapacityShape, defaultPluginArgs } from "./argument-rows.ts";
import { decodeArgs, readSchedulerConfig, type WrittenConfig, type WrittenProfile } from "./file.ts";
import type { PluginArgs } from "./plugin-args.ts";
import { type DefaultsByGate, defaultPluginSets, mergePluginSets, type PluginSet, type PluginSets } from "./plugin-sets.ts";
import type { ProfileConfig, SchedulerConfig } from "./scheduler-config.ts";
import { validateConfig } from "./validation.ts";

interface Gates {
  enabled(name: string): boolean;
}

/**
 * Builds the configuration from the file, with leader election flags taking precedence when set; without a file from
 * the flags alone. Defaults are filled in.
 * @param set names of the flags that the user set
 * @throws ConfigError for an unreadable file and for invalid settings
 * Source: pkg/scheduler/apis/config/v1beta3/defaults.go, cmd/kube-scheduler/app/options
 */
export function completeConfig(flags: SchedulerFlags, set: ReadonlySet<string>, gates: Gates): SchedulerConfig {
  let config: SchedulerConfig;
  try {
    const file = flags.config === "" ? withoutFile(flags, set) : readSchedulerConfig(flags.config);
    config = complete(file, flags, set, gates);
  } catch (err) {
    throw new ConfigError(messageOf(err), { cause: err });
  }
  const errors = validateConfig(config, gates.enabled("VolumeCapacityPriority"));
  if (errors.length > 0) throw new ConfigError(formatFieldErrors(errors));
  return config;
}

/** The equivalent of a configuration file when there is none. */
function withoutFile(flags: SchedulerFlags, set: ReadonlySet<string>): WrittenConfig {
  return { version: "v1beta3", leaderElection: settingValues(formerLockSettings, { flags, set, file: undefined }) };
}

function complete(file: WrittenConfig, flags: SchedulerFlags, set: ReadonlySet<string>, gates: Gates): SchedulerConfig {
  const hasFile = flags.config !== "";
  const honoured = hasFile ? new Set([...set].filter((name) => name.startsWith("leader-elect"))) : set;
  const valuesOf = <T extends Settings>(rows: T): SettingValues<T> => settingValues(rows, { flags, set: honoured, file });
  const written = file.profiles ?? [];
  const profiles: readonly WrittenProfile[] = written.length === 0 ? [{}] : written;
  return {
    version: file.version,
    master: flags.master,
    clientConnection: valuesOf(connectionSettings),
    leaderElection: valuesOf(leaderElectionSettings),
    ...valuesOf(profilingSettings),
    ...valuesOf(insecureAddressSettings),
    ...valuesOf(schedulingSettings),
    // The scheduler name has a default only when there is a single profile.
    profiles: profiles.map((profile, i) =>
      completeProfile(profile, i, profiles.length === 1 ? "default-scheduler" : "", file, gates),
    ),
    extenders: file.extenders ?? [],
  };
}

function completeProfile(
  written: WrittenProfile,
  index: number,
  defaultName: string,
  file: WrittenConfig,
  gates: Gates,
): ProfileConfig {
  const { version, extenders = [] } = file;
  const defaults = {
    spreadByTopology: gates.enabled("DefaultPodTopologySpread"),
    byVolumeCapacity: gates.enabled("VolumeCapacityPriority"),
  };
  const custom: Partial<PluginSets> = Object.fromEntries(
    Object.entries(written.plugins ?? {}).map(([point, { enabled = [], disabled = [] }]): [string, PluginSet] => [
      point,
      {
        enabled: enabled.map(({ name = "", weight = 0 }) => ({ name, weight })),
        disabled: disabled.map(({ name = "" }) => ({ name, weight: 0 })),
      },
    ]),
  );
  const own: Record<string, object> = {};
  const configured: string[] = [];
  for (const [entry, { name = "", args }] of (written.pluginConfig ?? []).entries()) {
    const decoded = decodeArgs(name, args, version, [index, entry]);
    configured.push(name);
    if (decoded !== undefined) own[name] = decoded;
  }
  const args = completeArgs(own, defaults);
  // NodeResourcesFit leaves resources to extenders that manage them with `ignoredByScheduler`; as upstream, these replace the profile's own.
  const ignored = extenders.flatMap(({ managedResources = [] }) =>
    managedResources.flatMap(({ name = "", ignoredByScheduler }) => (ignoredByScheduler ? [name] : [])),
  );
  const fit = args.NodeResourcesFit;
  return {
    schedulerName: written.schedulerName || defaultName,
    plugins: mergePluginSets(version, defaultPluginSets(version, defaults), custom),
    args: {
      ...args,
      NodeResourcesFit: ignored.length === 0 ? fit : { ...fit, ignoredResources: ignored },
    },
    configured,
  };
}

function completeArgs(
  own: Readonly<Record<string, object>>,
  { spreadByTopology, byVolumeCapacity }: Required<DefaultsByGate>,
): PluginArgs {
  // cast: the arguments in `own` were read by the shapes of their plugins
  const args = tableOf(keysOf(defaultPluginArgs), (name): object => ({ ...defaultPluginArgs[name], ...own[name] })) as {
    -readonly [Name in keyof PluginArgs]: PluginArgs[Name];
  };
  const weighted = (resources: readonly { name: string; weight?: number }[]): { name: string; weight: number }[] =>
    resources.map(({ name, weight }) => ({ name, weight: weight || 1 }));
  const { scoringStrategy } = args.NodeResourcesFit;
  const { resources } = scoringStrategy;
  args.NodeResourcesFit = {
    ...args.NodeResourcesFit,
    scoringStrategy: {
      ...scoringStrategy,
      type: scoringStrategy.type ?? "LeastAllocated",
      resources: weighted(resources?.length ? resources : defaultPluginArgs.NodeResourcesFit.scoringStrategy.resources),
    },
  };
  const balanced = args.NodeResourcesBalancedAllocation.resources;
  args.NodeResourcesBalancedAllocation = {
    resources: weighted(balanced.length > 0 ? balanced : defaultPluginArgs.NodeResourcesBalancedAllocation.resources),
  };
  if (own["PodTopologySpread"] === undefined || !("defaultingType" in own["PodTopologySpread"]))
    args.PodTopologySpread = { ...args.PodTopologySpread, defaultingType: spreadByTopology ? "System" : "List" };
  if (byVolumeCapacity && !args.VolumeBinding.shape?.length)
    args.VolumeBinding = { ...args.VolumeBinding, shape: defaultCapacityShape };
  return args;
}
