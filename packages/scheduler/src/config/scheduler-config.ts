import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import type { ExtenderConfig } from "./file.ts";
import type { PluginArgs } from "./plugin-args.ts";
import type { ConfigVersion, PluginSets } from "./plugin-sets.ts";

/** The effective configuration, with defaults; durations in ms. */
export interface SchedulerConfig {
  readonly version: ConfigVersion;
  readonly master: string;
  readonly clientConnection: {
    readonly kubeconfig: string;
    readonly acceptContentTypes: string;
    readonly contentType: string;
    readonly qps: number;
    readonly burst: number;
  };
  readonly leaderElection: LeaderElectionConfig;
  readonly enableProfiling: boolean;
  readonly enableContentionProfiling: boolean;
  readonly healthzBindAddress: string;
  readonly metricsBindAddress: string;
  /** Validated but without effect: filters run in a single thread. */
  readonly parallelism: number;
  readonly profiles: readonly ProfileConfig[];
  readonly extenders: readonly ExtenderConfig[];
  readonly percentageOfNodesToScore: number;
  readonly podInitialBackoffSeconds: number;
  readonly podMaxBackoffSeconds: number;
}

export interface ProfileConfig {
  readonly schedulerName: string;
  readonly plugins: PluginSets;
  readonly args: PluginArgs;
  /** Plugin names in the order of `pluginConfig`, duplicates included; for validation. */
  readonly configured: readonly string[];
}
