import { resolve } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Background } from "../background.ts";
import { type AgentConfig, asConfigError, newAgentConfig, readConfiguration } from "../config.ts";
import type { KubeletFlags } from "../flags.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { AgentEvents } from "../status/events.ts";
import { type Checkpoints, openCheckpoints } from "./checkpoints.ts";
import { chooseConfig } from "./choose-config.ts";
import { newConfigMetrics, newConfigReport } from "./config-report.ts";
import { type ConfigSource, sameSource, showSource } from "./config-source.ts";
import { followConfigSource } from "./follow-source.ts";

/** Configuration that comes from the cluster: `--dynamic-config-dir` and the node's `spec.configSource`. */
export interface DynamicConfig {
  /** What to start with; undefined for the machine's own configuration. */
  config: AgentConfig | undefined;
  /** Resolves when there is another configuration: the agent ends, and whoever started it starts it again. */
  replaced: Promise<void>;
  /** Follows the node and its config map, and tells what is used. */
  follow(options: FollowOptions): void;
}

export interface FollowOptions {
  /** Undefined in standalone mode: what is kept here is used, nothing is followed. */
  api: Pick<ApiConnection, "client" | "node" | "recorder"> | undefined;
  nodeName: string;
  tell: Pick<AgentEvents, "node">;
  metrics: MetricsRegistry;
  background: Background;
}

const reportMs = 10_000;
const trialCheckMs = 10_000;
const trialMs = 10 * 60_000;

/**
 * Finds out which configuration is to be used; flags go before each of them.
 * @param set names that stood on the command line
 * @param local the machine's own configuration
 * @throws ConfigError when the folder cannot be used, or nothing in it that should be
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
    follow({ api, nodeName, tell, metrics, background }) {
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
      followConfigSource({ api, nodeName, assigned, checkpoints, report, tell, background, clock, log, onReplaced });
      background.every(reportMs, "status of the configuration", () => report.write(background.signal));
    },
  };
}

/** @returns what is the last known good configuration from now on; undefined when nothing has changed */
function endTrial(checkpoints: Checkpoints, now: number): ConfigSource | undefined {
  if (now - checkpoints.writtenAt("assigned") <= trialMs) return undefined;
  const assigned = checkpoints.read("assigned");
  if (assigned === undefined || sameSource(assigned, checkpoints.read("last-known-good"))) return undefined;
  checkpoints.write("last-known-good", assigned);
  return assigned;
}
