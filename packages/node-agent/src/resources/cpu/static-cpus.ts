import { qosClass } from "@coxswain/apimachinery/quota/qos";
import type { AnyContainer, NodePod } from "../../pods/pod.ts";
import { quantityOf } from "../pod-resources.ts";
import { choicesOf, type Hint } from "../topology/hints.ts";
import type { Cpu } from "../topology/machine-topology.ts";
import type { CpuPolicyOptions } from "./cpu-policy-options.ts";
import { both, type CpuSet, cpuSet, formatCpus, sameCpus, union, without } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import { cpusOfNodes, takeCpus, takeCpusEvenly, threadsPerCore } from "./take-cpus.ts";

/** What the static policy works with. */
export interface StaticCpus {
  machine: readonly Cpu[];
  /** Never given to one container alone: what is reserved for the system runs there. */
  reserved: CpuSet;
  options: CpuPolicyOptions;
}

/** Whole cores are wanted, and the number of CPUs is not that of whole cores. */
class SmtAlignmentError extends Error {
  readonly reason = "SMTAlignmentError";
  constructor(requested: number, perCore: number) {
    super(`SMT Alignment Error: requested ${requested} cpus not multiple cpus per core = ${perCore}`);
  }
}

/**
 * The CPUs that are reserved: those named, else as many as are reserved, from the lowest cores.
 * @throws Error. Source: pkg/kubelet/cm/cpumanager/cpu_manager.go NewManager, policy_static.go NewStaticPolicy
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

/** How many CPUs a container has to itself: those of a Guaranteed Pod that asks for whole ones. */
export function exclusiveCpus(pod: NodePod, container: AnyContainer): number {
  if (qosClass(pod) !== "Guaranteed" || !("resources" in container)) return 0;
  const request = quantityOf(container.resources?.requests, "cpu").milliValue();
  return request % 1000 === 0 ? request / 1000 : 0;
}

/**
 * Pure: whether a state that was kept is one of this machine; an empty one becomes "all CPUs are shared".
 * @throws Error. Source: policy_static.go validateState
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
 * Pure: the CPUs for one more container, near the hint's nodes as far as there are.
 * @param reusable of init containers of the same Pod, which have ended when this one starts
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
 * Pure: from which nodes so many CPUs could come. Preferred are those of as few nodes as the machine would need if it
 * were empty. Source: policy_static.go generateCPUTopologyHints
 */
export function cpuHints(machine: readonly Cpu[], available: CpuSet, reusable: CpuSet, count: number): Hint[] {
  const nodes = cpuSet(machine.map((cpu) => cpu.numaNode));
  let fewest = nodes.length;
  const possible: number[][] = [];
  for (const choice of choicesOf(nodes)) {
    const here = cpusOfNodes(machine, choice);
    if (here.length >= count) fewest = Math.min(fewest, choice.length);
    // What an init container had is used first: a choice without all of it would leave some of it behind.
    if (both(reusable, here).length < reusable.length) continue;
    if (both(union(available, reusable), here).length >= count) possible.push(choice);
  }
  return possible.map((choice) => ({ nodes: choice, preferred: choice.length === fewest }));
}
