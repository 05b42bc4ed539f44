import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Cri } from "../runtime/cri-schema.ts";
import { type ContainerRuntime, RuntimeError, sandboxState } from "../runtime/runtime.ts";
import type { CpuStats, InterfaceStats, MemoryStats, NetworkStats } from "./usage-stats.ts";

type SandboxStats = Cri<"PodSandboxStats">;

/** Pod-level statistics from the runtime; includes processes that belong to no container. */
export interface SandboxSummary {
  cpu?: CpuStats;
  memory?: MemoryStats;
  network?: NetworkStats;
  process_stats?: { process_count: number };
}

/**
 * Statistics of running sandboxes and their containers.
 * @returns undefined when the runtime supports container statistics only
 */
export async function listSandboxStats(runtime: ContainerRuntime): Promise<SandboxStats[] | undefined> {
  const [stats, sandboxes] = await Promise.all([
    runtime.listPodSandboxStats().catch((err) => {
      if (err instanceof RuntimeError && err.code === "Unimplemented") return undefined;
      throw err;
    }),
    runtime.listPodSandboxes(),
  ]);
  const running = new Set(sandboxes.filter(({ state }) => state === sandboxState.ready).map(({ id }) => id));
  return stats?.filter(({ attributes }) => running.has(attributes?.id ?? ""));
}

/**
 * Converts CRI sandbox statistics to the fields of the summary.
 * Source: pkg/kubelet/stats/cri_stats_provider.go listPodStatsStrictlyFromCRI
 */
export function sandboxSummary({ linux }: SandboxStats): SandboxSummary {
  const { cpu, memory, network, process } = linux ?? {};
  return {
    ...(cpu && { cpu: { time: timeOf(cpu), ...values(cpu, ["usageNanoCores", "usageCoreNanoSeconds"]) } }),
    ...(memory && { memory: { time: timeOf(memory), ...values(memory, memoryFields) } }),
    ...(network && {
      network: {
        time: timeOf(network),
        ...(network.defaultInterface && interfaceStats(network.defaultInterface)),
        ...(network.interfaces.length > 0 && { interfaces: network.interfaces.map(interfaceStats) }),
      },
    }),
    ...(process?.processCount && { process_stats: { process_count: process.processCount.value } }),
  };
}

const memoryFields = ["availableBytes", "usageBytes", "workingSetBytes", "rssBytes", "pageFaults", "majorPageFaults"] as const;

function interfaceStats(usage: Cri<"NetworkInterfaceUsage">): InterfaceStats {
  return { name: usage.name, ...values(usage, ["rxBytes", "rxErrors", "txBytes", "txErrors"]) };
}

function timeOf({ timestamp }: { timestamp: number }): string {
  return formatTime(timestamp / 1e6);
}

/** The fields that the runtime reported. */
function values<Name extends string>(
  usage: { readonly [key in Name]: { readonly value: number } | null },
  names: readonly Name[],
): { [key in Name]?: number } {
  const found: { [key in Name]?: number } = {};
  for (const name of names) {
    const reported = usage[name];
    if (reported !== null) found[name] = reported.value;
  }
  return found;
}
