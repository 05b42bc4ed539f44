import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { NodeConfigStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type ConfigSource, showSource } from "./config-source.ts";
import { problems } from "./problems.ts";

/** The configuration to start with. */
interface ConfigChoice {
  /** Undefined for the local configuration. */
  config: AgentConfig | undefined;
  /** Initial value of the node's `status.config`. */
  status: NodeConfigStatus;
  /** True when the assigned configuration is in use; it becomes the last known good one after the trial period. */
  onTrial: boolean;
}

/** Reads and validates checkpointed configuration files. */
interface ConfigLoader {
  /** @throws Error when the file cannot be read or decoded */
  read(path: string): unknown;
  /** Merges the file with the flags. @throws ConfigError when the configuration is invalid */
  configure(path: string): AgentConfig;
}

/**
 * Selects the assigned configuration; if it is unusable the last known good one, or without one the local configuration.
 * @throws ConfigError when the fallback is unusable, too
 * Source: pkg/kubelet/kubeletconfig/controller.go Bootstrap
 */
export function chooseConfig(checkpoints: Checkpoints, loader: ConfigLoader, log: Logger): ConfigChoice {
  const cannot = (err: unknown): never => {
    throw new ConfigError(`failed to determine a valid configuration, error: ${messageOf(err)}`);
  };
  let [assigned, lastKnownGood]: (ConfigSource | undefined)[] = [];
  try {
    [assigned, lastKnownGood] = [checkpoints.read("assigned"), checkpoints.read("last-known-good")];
  } catch (err) {
    cannot(err);
  }
  const status: NodeConfigStatus = { ...(assigned && { assigned }), ...(lastKnownGood && { lastKnownGood }) };
  if (assigned === undefined) return { config: undefined, status, onTrial: false };
  const loaded = load(assigned, checkpoints, loader);
  if (loaded.config !== undefined) return { config: loaded.config, status: { ...status, active: assigned }, onTrial: true };
  log.error(loaded.problem, loaded.cause, { source: showSource(assigned) });
  const failed = { ...status, error: loaded.problem };
  if (lastKnownGood === undefined) return { config: undefined, status: failed, onTrial: false };
  const fallback = load(lastKnownGood, checkpoints, loader);
  if (fallback.config === undefined) return cannot(fallback.cause);
  return { config: fallback.config, status: { ...failed, active: lastKnownGood }, onTrial: false };
}

type Loaded = { config: AgentConfig } | { config?: undefined; problem: string; cause: unknown };

function load(source: ConfigSource, checkpoints: Checkpoints, { read, configure }: ConfigLoader): Loaded {
  let path: string;
  try {
    path = checkpoints.fileOf(source);
    read(path);
  } catch (cause) {
    return { problem: problems.load, cause };
  }
  try {
    return { config: configure(path) };
  } catch (cause) {
    return { problem: problems.validate, cause };
  }
}
