import type { Cpu } from "../topology/machine-topology.ts";
import { type CpuSet, cpuSet } from "./cpu-set.ts";

/** Levels of the CPU topology. */
type Level = "numaNode" | "socket" | "core";

/**
 * Pure: takes CPUs and avoids fragmentation: first whole NUMA nodes and sockets, then whole cores, then single threads;
 * within each level, the units with the fewest free CPUs first.
 * @param machine all CPUs, including allocated ones; defines the size of a complete unit
 * @throws Error when there are not enough
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go takeByTopologyNUMAPacked
 */
export function takeCpus(machine: readonly Cpu[], available: CpuSet, count: number): CpuSet {
  if (count < 1) return [];
  if (count > available.length) throw new Error("not enough cpus available to satisfy request");
  const numaFirst = distinct(machine, "socket").length >= distinct(machine, "numaNode").length;
  // Ordered from the larger to the smaller unit; which of socket and NUMA node is larger depends on the machine.
  const [outer, inner]: readonly [Level, Level] = numaFirst ? ["numaNode", "socket"] : ["socket", "numaNode"];
  const levels: readonly Level[] = [outer, inner, "core"];
  let free = machine.filter(({ id }) => available.includes(id));
  const taken: number[] = [];
  const take = (ids: CpuSet): void => {
    taken.push(...ids);
    free = free.filter(({ id }) => !ids.includes(id));
  };

  for (const [depth, level] of levels.entries()) {
    for (const id of inOrder(free, levels.slice(0, depth + 1))) {
      const whole = idsOf(machine.filter((cpu) => cpu[level] === id));
      const isFree = free.filter((cpu) => cpu[level] === id).length === whole.length;
      if (isFree && whole.length <= count - taken.length) take(whole);
    }
    if (taken.length === count) return cpuSet(taken);
  }
  for (const core of inOrder(free, levels)) {
    for (const cpu of idsOf(free.filter((candidate) => candidate.core === core))) {
      take([cpu]);
      if (taken.length === count) return cpuSet(taken);
    }
  }
  throw new Error("failed to allocate cpus");
}

/** IDs of the innermost level, grouped by the outer levels; those with the fewest free CPUs first, then by number. */
function inOrder(cpus: readonly Cpu[], [level, ...inside]: readonly Level[]): number[] {
  if (level === undefined) return [];
  const size = (id: number): number => cpus.filter((cpu) => cpu[level] === id).length;
  const ids = distinct(cpus, level).sort((a, b) => size(a) - size(b) || a - b);
  if (inside.length === 0) return ids;
  return [
    ...new Set(
      ids.flatMap((id) =>
        inOrder(
          cpus.filter((cpu) => cpu[level] === id),
          inside,
        ),
      ),
    ),
  ];
}

const idsOf = (cpus: readonly Cpu[]): CpuSet => cpuSet(cpus.map(({ id }) => id));
const distinct = (cpus: readonly Cpu[], level: Level): number[] => [...new Set(cpus.map((cpu) => cpu[level]))];

/**
 * Pure: like `takeCpus`, but when one NUMA node is not enough, takes an equal number from each node used, in groups of
 * `groupSize` CPUs (`distribute-cpus-across-numa`). Uses the fewest nodes possible; among equals, those that leave the free
 * CPUs most evenly balanced.
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go takeByTopologyNUMADistributed, KEP-2902
 */
export function takeCpusEvenly(machine: readonly Cpu[], available: CpuSet, count: number, groupSize: number): CpuSet {
  if (count < 1) return [];
  if (count % groupSize !== 0) return takeCpus(machine, available, count);
  const freeOn = new Map<number, CpuSet>();
  for (const node of distinct(machine, "numaNode").sort((a, b) => a - b)) {
    freeOn.set(node, idsOf(machine.filter((cpu) => cpu.numaNode === node && available.includes(cpu.id))));
  }
  const nodes = [...freeOn.keys()].filter((node) => (freeOn.get(node) ?? []).length > 0);
  const freeCount = (node: number): number => freeOn.get(node)?.length ?? 0;
  const groups = count / groupSize;
  for (let width = 1; width <= Math.min(nodes.length, groups); width++) {
    let best: { shares: Map<number, number>; balance: number } | undefined;
    for (const choice of combinations(nodes, width)) {
      const each = Math.floor(groups / width) * groupSize;
      if (choice.some((node) => freeCount(node) < each)) continue;
      for (const withMore of combinations(choice, groups % width)) {
        const shares = new Map(choice.map((node) => [node, each + (withMore.includes(node) ? groupSize : 0)]));
        if (choice.some((node) => freeCount(node) < (shares.get(node) ?? 0))) continue;
        const balance = deviation([...freeOn.keys()].map((node) => freeCount(node) - (shares.get(node) ?? 0)));
        if (best === undefined || balance < best.balance) best = { shares, balance };
      }
    }
    if (best !== undefined)
      return cpuSet([...best.shares].flatMap(([node, share]) => takeCpus(machine, freeOn.get(node) ?? [], share)));
  }
  return takeCpus(machine, available, count);
}

function* combinations(items: readonly number[], size: number): Generator<number[]> {
  if (size === 0) yield [];
  else {
    for (const [i, item] of items.entries()) for (const rest of combinations(items.slice(i + 1), size - 1)) yield [item, ...rest];
  }
}

function deviation(numbers: readonly number[]): number {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return Math.round(1000 * Math.sqrt(numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0) / numbers.length)) / 1000;
}

/** The CPUs of the given NUMA nodes. */
export function cpusOfNodes(machine: readonly Cpu[], nodes: readonly number[]): CpuSet {
  return idsOf(machine.filter((cpu) => nodes.includes(cpu.numaNode)));
}

/** Hardware threads per physical core; 1 when no CPU is known. */
export function threadsPerCore(machine: readonly Cpu[]): number {
  const cores = distinct(machine, "core").length;
  return cores === 0 ? 1 : machine.length / cores;
}
