import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { AgentConfig } from "../agent-config.ts";
import { quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import { type EvictionThresholds, type Reserved, thresholdAmount } from "./allocatable.ts";
import { parseCpus } from "./cpu/cpu-set.ts";

/** Node resources that are not available to Pods. */
export interface Reservations {
  kube: Reserved;
  system: Reserved;
  /** Hard eviction thresholds; empty with `--experimental-allocatable-ignore-eviction`. */
  evictionHard: EvictionThresholds;
}

const reservable = ["cpu", "memory", "ephemeral-storage", "pid"];

/**
 * Pure: the reservations of `--kube-reserved` and `--system-reserved`. With `--reserved-cpus`, the number of those CPUs
 * replaces the CPU amounts of both. @throws Error for resources that cannot be reserved, and for invalid amounts
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

/**
 * Pure: total CPU and memory that are not allocatable.
 * Source: pkg/kubelet/cm/node_container_manager_linux.go GetNodeAllocatableReservation
 */
export function reservedInAll(capacity: ResourceList, { kube, system, evictionHard }: Reservations): ResourceList {
  const sum = (name: string): Quantity => quantityOf(kube, name).add(quantityOf(system, name));
  const threshold = evictionHard["memory.available"];
  const kept = threshold === undefined ? Quantity.parse("0") : thresholdAmount(threshold, quantityOf(capacity, "memory"));
  return { cpu: sum("cpu").toString(), memory: sum("memory").add(kept).toString() };
}

function checked(reserved: Readonly<Record<string, string>> | undefined): Reserved {
  for (const [name, amount] of Object.entries(reserved ?? {})) {
    if (!reservable.includes(name)) throw new Error(`cannot reserve ${JSON.stringify(name)} resource`);
    const quantity = Quantity.parse(String(amount));
    if (quantity.sign < 0) throw new Error(`resource quantity for ${JSON.stringify(name)} cannot be negative: ${amount}`);
  }
  return reserved ?? {};
}
