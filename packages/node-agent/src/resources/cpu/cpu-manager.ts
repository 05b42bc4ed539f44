import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import type { CheckpointFile } from "../checkpoint-file.ts";
import type { Hint, Hints } from "../topology/hints.ts";
import type { HintProvider } from "../topology/topology-manager.ts";
import { type CpuSet, cpuSet, formatCpus, union, without } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import { chooseCpus, cpuHints, exclusiveCpus, type StaticCpus, validCpuState } from "./static-cpus.ts";

/** Assigns CPUs to containers. */
export interface CpuManager extends HintProvider {
  /** Assigns exclusive CPUs to the container if it qualifies; idempotent. @throws Error when there are not enough */
  allocate(pod: NodePod, container: AnyContainer, hint: Hint): void;
  /** The CPUs that a container may run on: its exclusive CPUs or the shared pool; empty with the policy `none`. */
  cpusOf(uid: string, container: string): CpuSet;
  /** The container's exclusive CPUs. */
  exclusiveCpusOf(uid: string, container: string): CpuSet;
  /** CPUs that can be assigned exclusively. */
  allocatable(): CpuSet;
  /** Releases the CPUs of all Pods that are not in `pods`. */
  release(pods: readonly NodePod[]): void;
}

/**
 * `--cpu-manager-policy`: `none` does not restrict CPUs. `static` assigns exclusive CPUs to containers of Guaranteed Pods
 * that request whole CPUs; all other containers share the rest.
 * @param settings undefined for `none`
 * @throws Error when the restored state is from another policy or does not match the machine
 * Source: pkg/kubelet/cm/cpumanager
 */
export function newCpuManager(options: {
  settings: StaticCpus | undefined;
  file: CheckpointFile<CpuState>;
  path: string;
  log: Logger;
}): CpuManager {
  const { settings, file, log } = options;
  const policy = settings === undefined ? "none" : "static";
  let state = restore();
  /** CPUs of init containers that later containers of the same Pod can reuse, for the Pod being admitted. */
  let reusable: { uid: string; cpus: CpuSet } = { uid: "", cpus: [] };

  function restore(): CpuState {
    const advice = `please drain this node and delete the CPU manager checkpoint file ${JSON.stringify(options.path)} before restarting Kubelet`;
    let kept: CpuState | undefined;
    try {
      kept = file.load();
      if (kept !== undefined && kept.policy !== policy) {
        const differ = `configured policy ${JSON.stringify(policy)} differs from state checkpoint policy ${JSON.stringify(kept.policy)}`;
        throw new Error(differ);
      }
    } catch (err) {
      throw new Error(`start cpu manager error: could not restore state from checkpoint: ${(err as Error).message}, ${advice}`);
    }
    const empty: CpuState = { policy, shared: [], assigned: new Map() };
    try {
      const valid = settings === undefined ? (kept ?? empty) : validCpuState(settings, kept ?? empty);
      file.save(valid);
      return valid;
    } catch (err) {
      throw new Error(`start cpu manager error: ${(err as Error).message}`);
    }
  }

  function change(assigned: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>): void {
    const all = cpuSet(settings?.machine.map(({ id }) => id) ?? []);
    const taken = [...assigned.values()].flatMap((of) => [...of.values()]);
    state = { policy, shared: without(all, union(...taken)), assigned };
    file.save(state);
  }

  const given = (uid: string, container: string): CpuSet | undefined => state.assigned.get(uid)?.get(container);
  const reusableOf = (uid: string): CpuSet => (reusable.uid === uid ? reusable.cpus : []);
  const noWay: Hints = new Map([["cpu", []]]);

  return {
    hints(pod, container) {
      const count = exclusiveCpus(pod, container);
      if (settings === undefined || count === 0) return new Map();
      const { uid } = pod.metadata;
      const has = given(uid, container.name);
      if (has !== undefined && has.length !== count) return noWay;
      if (has !== undefined) return new Map([["cpu", cpuHints(settings.machine, has, [], count)]]);
      const available = without(state.shared, settings.reserved);
      return new Map([["cpu", cpuHints(settings.machine, available, reusableOf(uid), count)]]);
    },
    podHints(pod) {
      if (settings === undefined) return new Map();
      const { uid } = pod.metadata;
      const wants = (containers: readonly AnyContainer[]): number[] => containers.map((one) => exclusiveCpus(pod, one));
      const total = wants(pod.spec.containers).reduce((sum, count) => sum + count, 0);
      const count = Math.max(total, ...wants(pod.spec.initContainers ?? []));
      if (count === 0) return new Map();
      let has: CpuSet = [];
      for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        const own = given(uid, container.name);
        if (own !== undefined && own.length !== exclusiveCpus(pod, container)) return noWay;
        has = union(has, own ?? []);
      }
      if (has.length === count) return new Map([["cpu", cpuHints(settings.machine, has, [], count)]]);
      const available = without(state.shared, settings.reserved);
      return new Map([["cpu", cpuHints(settings.machine, available, union(reusableOf(uid), has), count)]]);
    },
    allocate(pod, container, hint) {
      const count = exclusiveCpus(pod, container);
      if (settings === undefined || count === 0) return;
      const { uid } = pod.metadata;
      let cpus = given(uid, container.name);
      if (cpus === undefined) {
        cpus = chooseCpus(settings, state, { count, hint, reusable: reusableOf(uid) });
        const assigned = new Map(state.assigned);
        assigned.set(uid, new Map(assigned.get(uid)).set(container.name, cpus));
        change(assigned);
        log.info("gave a container CPUs of its own", { podUID: uid, container: container.name, cpus: formatCpus(cpus) });
      }
      const isInit = (pod.spec.initContainers ?? []).some(({ name }) => name === container.name);
      reusable = { uid, cpus: isInit ? union(reusableOf(uid), cpus) : without(reusableOf(uid), cpus) };
    },
    cpusOf: (uid, container) => given(uid, container) ?? state.shared,
    exclusiveCpusOf: (uid, container) => given(uid, container) ?? [],
    allocatable: () => (settings === undefined ? [] : without(cpuSet(settings.machine.map(({ id }) => id)), settings.reserved)),
    release(pods) {
      const kept = new Map([...state.assigned].filter(([uid]) => pods.some((pod) => pod.metadata.uid === uid)));
      if (kept.size !== state.assigned.size) change(kept);
    },
  };
}
