import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import type { Settings, SettingValues } from "@coxswain/apimachinery/flags/settings";
import type { connectionSettings, insecureAddressSettings, profilingSettings, schedulingSettings } from "../settings.ts";
import type { ExtenderConfig } from "./file.ts";
import type { PluginArgs } from "./plugin-args.ts";
import type { ConfigVersion, PluginSets } from "./plugin-sets.ts";

type ValuesOf<T extends Settings> = Readonly<SettingValues<T>>;
type OwnSettings = typeof profilingSettings & typeof insecureAddressSettings & typeof schedulingSettings;

/** The effective configuration, with defaults; durations in ms. */
export interface SchedulerConfig extends ValuesOf<OwnSettings> {
  readonly version: ConfigVersion;
  readonly master: string;
  readonly clientConnection: ValuesOf<typeof connectionSettings>;
  readonly leaderElection: LeaderElectionConfig;
  readonly profiles: readonly ProfileConfig[];
  readonly extenders: readonly ExtenderConfig[];
}

export interface ProfileConfig {
  readonly schedulerName: string;
  readonly plugins: PluginSets;
  readonly args: PluginArgs;
  /** Plugin names in the order of `pluginConfig`, duplicates included; for validation. */
  readonly configured: readonly string[];
}
