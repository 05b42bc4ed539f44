import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { AgentConfig } from "../config.ts";
import { connectToLogind } from "./logind.ts";
import { type NodeShutdown, type NodeShutdownOptions, newNodeShutdown } from "./node-shutdown.ts";
import { groupsOf } from "./shutdown-groups.ts";

/** @returns undefined when the configuration gives Pods no time: the machine goes down at once */
export function openNodeShutdown(
  config: AgentConfig,
  gates: FeatureGates,
  options: Omit<NodeShutdownOptions, "groups" | "connect">,
): NodeShutdown | undefined {
  if (!gates.enabled("GracefulNodeShutdown")) return undefined;
  const { shutdownGroups, shutdownGraceMs, shutdownGraceCriticalMs } = config;
  const groups = shutdownGroups.length > 0 ? shutdownGroups : groupsOf(shutdownGraceMs, shutdownGraceCriticalMs);
  if (groups.length === 0) return undefined;
  return newNodeShutdown({ ...options, groups, connect: () => connectToLogind({ clock: options.clock }) });
}
