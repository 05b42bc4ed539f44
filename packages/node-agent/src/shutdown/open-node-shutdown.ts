import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { AgentConfig } from "../agent-config.ts";
import { connectToLogind } from "./logind.ts";
import { NodeShutdown, type NodeShutdownOptions } from "./node-shutdown.ts";
import { groupsOf } from "./shutdown-groups.ts";

interface OpenShutdownOptions extends Omit<NodeShutdownOptions, "groups" | "connect"> {
  config: Pick<AgentConfig, "shutdownGroups" | "shutdownGraceMs" | "shutdownGraceCriticalMs">;
  featureGates: FeatureGates;
}

/** @returns undefined when no grace period is configured: the shutdown is not delayed */
export function openNodeShutdown(options: OpenShutdownOptions): NodeShutdown | undefined {
  if (!options.featureGates.enabled("GracefulNodeShutdown")) return undefined;
  const { shutdownGroups, shutdownGraceMs, shutdownGraceCriticalMs } = options.config;
  const groups = shutdownGroups.length > 0 ? shutdownGroups : groupsOf(shutdownGraceMs, shutdownGraceCriticalMs);
  if (groups.length === 0) return undefined;
  return new NodeShutdown({ ...options, groups, connect: () => connectToLogind({ clock: options.clock }) });
}
