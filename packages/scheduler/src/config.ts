import { checkDurations } from "@coxswain/apimachinery/controller/leader-election";
import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { parseDuration } from "@coxswain/apimachinery/meta/time";
import type { SchedulerFlags } from "./flags.ts";
import { defaultWeights, missingPlugins, plugins } from "./plugins/catalogue.ts";

/** What the scheduler runs with; times in ms. */
export interface SchedulerConfig {
  readonly kubeconfig: string;
  readonly master: string;
  readonly qps: number;
  readonly burst: number;
  readonly leaderElection: LeaderElectionConfig;
  readonly profiles: readonly ProfileConfig[];
  readonly percentageOfNodesToScore: number;
  readonly podInitialBackoffMs: number;
  readonly podMaxBackoffMs: number;
}

export interface LeaderElectionConfig {
  readonly enabled: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly resourceLock: string;
  readonly resourceName: string;
  readonly resourceNamespace: string;
}

export interface ProfileConfig {
  readonly schedulerName: string;
  /** Names in the order they run. */
  readonly plugins: readonly string[];
  readonly weights: Readonly<Record<string, number>>;
}

const apiVersions = [
  "kubescheduler.config.k8s.io/v1beta2",
  "kubescheduler.config.k8s.io/v1beta3",
  "kubescheduler.config.k8s.io/v1beta1",
];
const points = [
  "queueSort",
  "preFilter",
  "filter",
  "postFilter",
  "preScore",
  "score",
  "reserve",
  "permit",
  "preBind",
  "bind",
  "postBind",
  "multiPoint",
];

/**
 * The configuration file with leader election flags that were set on top; without a file the flags alone.
 * @throws ConfigError for what cannot be honoured
 * Source: pkg/scheduler/apis/config/v1beta3, cmd/kube-scheduler/app/options
 */
export function completeConfig(flags: SchedulerFlags, set: ReadonlySet<string>): SchedulerConfig {
  let file: Fields = {};
  try {
    if (flags.config !== "") file = readConfigFile(flags.config, "KubeSchedulerConfiguration", apiVersions) as Fields;
  } catch (err) {
    throw new ConfigError((err as Error).message, { cause: err });
  }
  const connection = fields(file["clientConnection"]);
  const config: SchedulerConfig = {
    kubeconfig: text(connection["kubeconfig"]) ?? flags.kubeconfig,
    master: flags.master,
    qps: number(connection["qps"]) ?? flags["kube-api-qps"],
    burst: number(connection["burst"]) ?? flags["kube-api-burst"],
    leaderElection: leaderElection(flags, set, fields(file["leaderElection"])),
    profiles: profilesOf(file["profiles"]),
    percentageOfNodesToScore: number(file["percentageOfNodesToScore"]) ?? 0,
    podInitialBackoffMs: (number(file["podInitialBackoffSeconds"]) ?? 1) * 1000,
    podMaxBackoffMs: (number(file["podMaxBackoffSeconds"]) ?? 10) * 1000,
  };
  const problem = config.leaderElection.enabled ? checkDurations(config.leaderElection) : undefined;
  if (problem !== undefined) throw new ConfigError(problem);
  if (config.podMaxBackoffMs < config.podInitialBackoffMs)
    throw new ConfigError("podMaxBackoffSeconds must be greater than or equal to podInitialBackoffSeconds");
  if (config.percentageOfNodesToScore < 0 || config.percentageOfNodesToScore > 100)
    throw new ConfigError("percentageOfNodesToScore must be in the range [0, 100]");
  return config;
}

type Fields = Readonly<Record<string, unknown>>;
const fields = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

function leaderElection(flags: SchedulerFlags, set: ReadonlySet<string>, file: Fields): LeaderElectionConfig {
  const pick = <T>(flag: keyof SchedulerFlags & string, written: T | undefined): T =>
    written === undefined || set.has(flag) ? (flags[flag] as T) : written;
  const time = (value: unknown): number | undefined => (typeof value === "string" ? parseDuration(value) : undefined);
  return {
    enabled: pick("leader-elect", typeof file["leaderElect"] === "boolean" ? file["leaderElect"] : undefined),
    leaseDurationMs: pick("leader-elect-lease-duration", time(file["leaseDuration"])),
    renewDeadlineMs: pick("leader-elect-renew-deadline", time(file["renewDeadline"])),
    retryPeriodMs: pick("leader-elect-retry-period", time(file["retryPeriod"])),
    resourceLock: pick("leader-elect-resource-lock", text(file["resourceLock"])),
    resourceName: pick("leader-elect-resource-name", text(file["resourceName"])),
    resourceNamespace: pick("leader-elect-resource-namespace", text(file["resourceNamespace"])),
  };
}

function profilesOf(written: unknown): ProfileConfig[] {
  const list = Array.isArray(written) && written.length > 0 ? written.map(fields) : [{}];
  const profiles = list.map((profile) =>
    profileOf(text(profile["schedulerName"]) ?? "default-scheduler", fields(profile["plugins"])),
  );
  if (new Set(profiles.map(({ schedulerName }) => schedulerName)).size < profiles.length)
    throw new ConfigError("profiles: two have the same schedulerName");
  return profiles;
}

/** The default plugins, less what is disabled at every point named, plus what is enabled. */
function profileOf(schedulerName: string, written: Fields): ProfileConfig {
  const enabled = new Set(Object.keys(plugins));
  const weights: Record<string, number> = { ...defaultWeights };
  for (const point of Object.keys(written)) {
    if (!points.includes(point)) throw new ConfigError(`profile ${schedulerName}: unknown extension point ${point}`);
    const { disabled, enabled: added } = fields(written[point]);
    for (const { name } of pluginList(disabled)) {
      const names = name === "*" ? [...enabled] : [name];
      for (const each of names) {
        if (point === "score") weights[each] = 0;
        else if (each !== "PrioritySort" && each !== "DefaultBinder") enabled.delete(each);
      }
    }
    for (const { name, weight } of pluginList(added)) {
      if (missingPlugins.includes(name)) throw new ConfigError(`profile ${schedulerName}: plugin ${name} is not built yet`);
      if (plugins[name] === undefined) throw new ConfigError(`profile ${schedulerName}: plugin ${name} does not exist`);
      enabled.add(name);
      if (point === "score" || point === "multiPoint") weights[name] = weight || weights[name] || 1;
    }
  }
  return { schedulerName, plugins: [...enabled], weights };
}

function pluginList(written: unknown): { name: string; weight: number }[] {
  return (Array.isArray(written) ? written : []).map((each) => ({
    name: String(fields(each)["name"] ?? ""),
    weight: number(fields(each)["weight"]) ?? 0,
  }));
}
