import { qosClass } from "@coxswain/apimachinery/quota/qos";
import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import { quantityOf } from "../../pod/pod-resources.ts";
import { choicesOf, type Hint } from "../topology/hints.ts";
import type { Cpu } from "../topology/machine-topology.ts";
import type { CpuPolicyOptions } from "./cpu-policy-options.ts";
import { both, type CpuSet, cpuSet, formatCpus, sameCpus, union, without } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import { cpusOfNodes, takeCpus, takeCpusEvenly, threadsPerCore } from "./take-cpus.ts";

/** Inputs of the static policy. */
export interface StaticCpus {
  machine: readonly Cpu[];
  /** Never assigned exclusively: system daemons run here. */
  reserved: CpuSet;
  options: CpuPolicyOptions;
}

/** With `full-pcpus-only`: the requested number of CPUs is not a multiple of the threads per core. */
class SmtAlignmentError extends Error {
  readonly reason = "SMTAlignmentError";
  constructor(requested: number, perCore: number) {
    super(`SMT Alignment Error: requested ${requested} cpus not multiple cpus per core = ${perCore}`);
  }
}

/**
 * The reserved CPUs: those of `--reserved-cpus`, else as many as the reservation needs, starting with the lowest cores.
 * @throws Error when nothing is reserved, or the number of named CPUs differs from the reservation
 * Source: pkg/kubelet/cm/cpumanager/cpu_manager.go NewManager, policy_static.go NewStaticPolicy
 */
export function reservedCpus(machine: readonly Cpu[], milliCpu: number, named: CpuSet): CpuSet {
  if (milliCpu <= 0)
    throw new Error("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  const count = Math.ceil(milliCpu / 1000);
  const all = machine.map(({ id }) => id);
  const reserved = named.length > 0 ? named : takeCpus(machine, cpuSet(all), Math.min(count, all.length));
  if (reserved.length === count) return reserved;
  throw new Error(
    `[cpumanager] unable to reserve the required amount of CPUs (size of ${formatCpus(reserved)} did not equal ${count})`,
  );
}

/** The number of exclusive CPUs of a container: its request in a Guaranteed Pod if it is a whole number, else 0. */
export function exclusiveCpus(pod: NodePod, container: AnyContainer): number {
  if (qosClass(pod) !== "Guaranteed" || !("resources" in container)) return 0;
  const request = quantityOf(container.resources?.requests, "cpu").milliValue();
  return request % 1000 === 0 ? request / 1000 : 0;
}

/**
 * Pure: checks restored state against the machine. An empty state becomes one where all CPUs are shared.
 * @throws Error when they do not match. Source: policy_static.go validateState
 */
export function validCpuState({ machine, reserved }: StaticCpus, state: CpuState): CpuState {
  const all = cpuSet(machine.map(({ id }) => id));
  const { shared } = state;
  const taken = [...state.assigned].flatMap(([uid, of]) => [...of].map(([name, cpus]) => ({ uid, name, cpus })));
  if (shared.length === 0) {
    if (taken.length > 0) throw new Error("default cpuset cannot be empty");
    return { ...state, shared: all };
  }
  if (!sameCpus(both(reserved, shared), reserved)) {
    throw new Error(`not all reserved cpus: "${formatCpus(reserved)}" are present in defaultCpuSet: "${formatCpus(shared)}"`);
  }
  for (const { uid, name, cpus } of taken) {
    if (both(shared, cpus).length > 0) {
      throw new Error(
        `pod: ${uid}, container: ${name} cpuset: "${formatCpus(cpus)}" overlaps with default cpuset "${formatCpus(shared)}"`,
      );
    }
  }
  const known = union(shared, ...taken.map(({ cpus }) => cpus));
  if (!sameCpus(known, all)) {
    throw new Error(`current set of available CPUs "${formatCpus(all)}" doesn't match with CPUs in state "${formatCpus(known)}"`);
  }
  return state;
}

/**
 * Pure: the CPUs for one container, from the hint's NUMA nodes as far as possible.
 * @param reusable CPUs of init containers of the same Pod, which have exited when this container starts
 * @throws SmtAlignmentError; Error when there are not enough
 * Source: policy_static.go Allocate, allocateCPUs
 */
export function chooseCpus(
  settings: StaticCpus,
  state: CpuState,
  request: { count: number; hint: Hint; reusable: CpuSet },
): CpuSet {
  const { machine, options } = settings;
  const { count, hint, reusable } = request;
  const perCore = threadsPerCore(machine);
  if (options.wholeCoresOnly && count % perCore !== 0) throw new SmtAlignmentError(count, perCore);
  const take = (from: CpuSet, number: number): CpuSet =>
    options.acrossNodes
      ? takeCpusEvenly(machine, from, number, options.wholeCoresOnly ? perCore : 1)
      : takeCpus(machine, from, number);
  let chosen = take(reusable, Math.min(count, reusable.length));
  const assignable = without(union(without(state.shared, settings.reserved), reusable), chosen);
  if (hint.nodes !== undefined) {
    const near = both(assignable, cpusOfNodes(machine, hint.nodes));
    chosen = union(chosen, take(near, Math.min(count - chosen.length, near.length)));
  }
  return union(chosen, take(without(assignable, chosen), count - chosen.length));
}

/**
 * Pure: the sets of NUMA nodes that can provide `count` CPUs. Preferred are sets of the minimum number of nodes that an
 * otherwise empty machine would need. Source: policy_static.go generateCPUTopologyHints
 */
export function cpuHints(machine: readonly Cpu[], available: CpuSet, reusable: CpuSet, count: number): Hint[] {
  const nodes = cpuSet(machine.map((cpu) => cpu.numaNode));
  let fewest = nodes.length;
  const possible: number[][] = [];
  for (const choice of choicesOf(nodes)) {
    const here = cpusOfNodes(machine, choice);
    if (here.length >= count) fewest = Math.min(fewest, choice.length);
    // CPUs of init containers are reused first: a set of nodes that lacks some of them would leave those unused.
    if (both(reusable, here).length < reusable.length) continue;
    if (both(union(available, reusable), here).length >= count) possible.push(choice);
  }
  return possible.map((choice) => ({ nodes: choice, preferred: choice.length === fewest }));
}
