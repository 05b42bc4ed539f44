import { resolve } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import { newAgentConfig, readConfiguration } from "../config.ts";
import { asConfigError } from "../config-error.ts";
import type { KubeletFlags } from "../flags.ts";
import { type Checkpoints, openCheckpoints } from "./checkpoints.ts";
import { chooseConfig } from "./choose-config.ts";
import { newConfigMetrics, newConfigReport } from "./config-report.ts";
import { type ConfigSource, sameSource, showSource } from "./config-source.ts";
import type { FollowOptions } from "./follow-options.ts";
import { followConfigSource } from "./follow-source.ts";

/** Dynamic kubelet configuration: `--dynamic-config-dir` and the node's `spec.configSource`. */
export interface DynamicConfig {
  /** The configuration to start with; undefined for the local configuration. */
  config: AgentConfig | undefined;
  /** Resolves when another configuration is assigned: the agent exits, and the service manager restarts it. */
  replaced: Promise<void>;
  /** Follows the Node and its config map, and reports the configuration in use. */
  follow(options: FollowOptions): void;
}

const reportMs = 10_000;
const trialCheckMs = 10_000;
const trialMs = 10 * 60_000;

/**
 * Selects the configuration to use; flags take precedence over each of them.
 * @param set names of the flags that were given on the command line
 * @param local the local configuration
 * @throws ConfigError when the directory or the selected configuration is unusable
 * Source: pkg/kubelet/kubeletconfig/controller.go
 */
export function openDynamicConfig(
  flags: KubeletFlags,
  set: ReadonlySet<string>,
  local: AgentConfig,
  { clock, log }: { clock: Clock; log: Logger },
): DynamicConfig {
  const checkpoints = asConfigError(() => openCheckpoints(resolve(local.dynamicConfigDir), clock));
  const configure = (file: string): AgentConfig => newAgentConfig({ ...flags, config: file }, set, local.featureGates);
  const { config, status, onTrial } = chooseConfig(checkpoints, { read: readConfiguration, configure }, log);
  const { promise: replaced, resolve: onReplaced } = Promise.withResolvers<void>();
  return {
    config,
    replaced,
    follow({ api, nodeName, notify, metrics, background }) {
      const shown = newConfigMetrics(metrics);
      const report = api && newConfigReport({ client: api.client, nodeName, status, metrics: shown });
      if (onTrial) {
        background.every(trialCheckMs, "trial of the configuration", () => {
          const source = endTrial(checkpoints, clock.now());
          if (source === undefined) return;
          log.info("Updated last-known-good config", { source: showSource(source) });
          report?.setLastKnownGood(source);
        });
      }
      if (api === undefined || report === undefined) return;
      const { assigned } = status;
      followConfigSource({ api, nodeName, assigned, checkpoints, report, notify, background, clock, log, onReplaced });
      background.every(reportMs, "status of the configuration", () => report.write(background.signal));
    },
  };
}

/** @returns the new last known good configuration; undefined when it has not changed */
function endTrial(checkpoints: Checkpoints, now: number): ConfigSource | undefined {
  if (now - checkpoints.writtenAt("assigned") <= trialMs) return undefined;
  const assigned = checkpoints.read("assigned");
  if (assigned === undefined || sameSource(assigned, checkpoints.read("last-known-good"))) return undefined;
  checkpoints.write("last-known-good", assigned);
  return assigned;
}
