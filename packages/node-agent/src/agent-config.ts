import type { Written } from "@coxswain/apimachinery/flags/settings";
import type { MetricsRegistryOptions } from "@coxswain/apimachinery/process/metrics/registry";
import type { ReservedMemory, Taint } from "./settings/structures.ts";
import type { AgentSettings } from "./settings/table.ts";

/** Configuration of the agent: the settings, merged from flags and configuration file, and values derived from them. */
export interface AgentConfig extends AgentSettings {
  authorizationMode: "AlwaysAllow" | "Webhook";
  registerWithTaints: readonly Taint[];
  staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  containerLogMaxSizeBytes: number;
  evictionSoftGraceMs: Readonly<Record<string, number>>;
  reservedMemory: readonly ReservedMemory[];
  /** Credential provider plugins; `configFile` is `""` for none. */
  imageCredentialProviders: { configFile: string; binDir: string };
  metrics: MetricsRegistryOptions;

  /** The KubeletConfiguration as read from the file. */
  written: Written;
}
