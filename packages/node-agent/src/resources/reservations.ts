import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { AgentConfig } from "../config.ts";
import type { EvictionThresholds, Reserved } from "./allocatable.ts";
import { parseCpus } from "./cpu/cpu-set.ts";

/** What of the node is not for Pods. */
export interface Reservations {
  kube: Reserved;
  system: Reserved;
  /** What eviction keeps free; empty with `--experimental-allocatable-ignore-eviction`. */
  evictionHard: EvictionThresholds;
}

const reservable = ["cpu", "memory", "ephemeral-storage", "pid"];

/**
 * Pure: `--kube-reserved` and `--system-reserved`; CPUs that are reserved by number (`--reserved-cpus`) take the place of
 * the amounts in both. @throws Error for what cannot be reserved
 * Source: cmd/kubelet/app/server.go run, parseResourceList
 */
export function reservationsOf(
  config: Pick<AgentConfig, "kubeReserved" | "systemReserved" | "reservedCpus" | "evictionHard" | "allocatableIgnoresEviction">,
  machine: { cpuCount: number },
): Reservations {
  const evictionHard = config.allocatableIgnoresEviction ? {} : config.evictionHard;
  const kube = checked(config.kubeReserved);
  const system = checked(config.systemReserved);
  if (config.reservedCpus === "") return { kube, system, evictionHard };
  const cpus = parseCpus(config.reservedCpus);
  if ((cpus.at(-1) ?? 0) >= machine.cpuCount) throw new Error(`invalid cpuset: ${JSON.stringify(config.reservedCpus)}`);
  const { cpu: _, ...kubeWithoutCpu } = kube;
  return { kube: kubeWithoutCpu, system: { ...system, cpu: String(cpus.length) }, evictionHard };
}

function checked(reserved: Readonly<Record<string, string>> | undefined): Reserved {
  for (const [name, amount] of Object.entries(reserved ?? {})) {
    if (!reservable.includes(name)) throw new Error(`cannot reserve ${JSON.stringify(name)} resource`);
    const quantity = Quantity.parse(String(amount));
    if (quantity.sign < 0) throw new Error(`resource quantity for ${JSON.stringify(name)} cannot be negative: ${amount}`);
  }
  return reserved ?? {};
}
