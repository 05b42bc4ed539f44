import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import type { CheckpointFile } from "../checkpoint-file.ts";
import type { Hint, Hints } from "../topology/hints.ts";
import type { HintProvider } from "../topology/topology-manager.ts";
import { type CpuSet, cpuSet, formatCpus, union, without } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import { chooseCpus, cpuHints, exclusiveCpus, type StaticCpus, validCpuState } from "./static-cpus.ts";

interface CpuManagerOptions {
  /** Undefined for the policy `none`. */
  settings: StaticCpus | undefined;
  file: CheckpointFile<CpuState>;
  path: string;
  log: Logger;
}

/**
 * Assigns CPUs to containers by `--cpu-manager-policy`: `none` does not restrict CPUs. `static` assigns exclusive CPUs to containers of Guaranteed Pods
 * that request whole CPUs; all other containers share the rest.
 * @throws Error when the restored state is from another policy or does not match the machine
 * Source: pkg/kubelet/cm/cpumanager
 */
export class CpuManager implements HintProvider {
  readonly #options: CpuManagerOptions;
  readonly #policy: "none" | "static";
  #state: CpuState;
  /** CPUs of init containers that later containers of the same Pod can reuse, for the Pod being admitted. */
  #reusable: { uid: string; cpus: CpuSet } = { uid: "", cpus: [] };
  readonly #noWay: Hints = new Map([["cpu", []]]);

  constructor(options: CpuManagerOptions) {
    this.#options = options;
    const { settings } = options;
    this.#policy = settings === undefined ? "none" : "static";
    this.#state = this.#restore();
  }

  /**
   * NUMA nodes that can provide the container's exclusive CPUs. Empty without exclusive CPUs; without any choice when the
   * container holds another number of CPUs than it requests.
   */
  hints(pod: NodePod, container: AnyContainer): Hints {
    const { settings } = this.#options;
    const count = exclusiveCpus(pod, container);
    if (settings === undefined || count === 0) return new Map();
    const { uid } = pod.metadata;
    const has = this.#given(uid, container.name);
    if (has !== undefined && has.length !== count) return this.#noWay;
    if (has !== undefined) return new Map([["cpu", cpuHints(settings.machine, has, [], count)]]);
    const available = without(this.#state.shared, settings.reserved);
    return new Map([["cpu", cpuHints(settings.machine, available, this.#reusableOf(uid), count)]]);
  }

  /** As `hints`, for all containers of the Pod together: the sum of the containers, or the largest init container. */
  podHints(pod: NodePod): Hints {
    const { settings } = this.#options;
    if (settings === undefined) return new Map();
    const { uid } = pod.metadata;
    const wants = (containers: readonly AnyContainer[]): number[] => containers.map((one) => exclusiveCpus(pod, one));
    const total = wants(pod.spec.containers).reduce((sum, count) => sum + count, 0);
    const count = Math.max(total, ...wants(pod.spec.initContainers ?? []));
    if (count === 0) return new Map();
    let has: CpuSet = [];
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const own = this.#given(uid, container.name);
      if (own !== undefined && own.length !== exclusiveCpus(pod, container)) return this.#noWay;
      has = union(has, own ?? []);
    }
    if (has.length === count) return new Map([["cpu", cpuHints(settings.machine, has, [], count)]]);
    const available = without(this.#state.shared, settings.reserved);
    return new Map([["cpu", cpuHints(settings.machine, available, union(this.#reusableOf(uid), has), count)]]);
  }

  /** Assigns exclusive CPUs to the container if it qualifies; idempotent. @throws Error when there are not enough */
  allocate(pod: NodePod, container: AnyContainer, hint: Hint): void {
    const { settings, log } = this.#options;
    const count = exclusiveCpus(pod, container);
    if (settings === undefined || count === 0) return;
    const { uid } = pod.metadata;
    let cpus = this.#given(uid, container.name);
    if (cpus === undefined) {
      cpus = chooseCpus(settings, this.#state, { count, hint, reusable: this.#reusableOf(uid) });
      const assigned = new Map(this.#state.assigned);
      assigned.set(uid, new Map(assigned.get(uid)).set(container.name, cpus));
      this.#change(assigned);
      log.info("allocated exclusive CPUs to a container", { podUID: uid, container: container.name, cpus: formatCpus(cpus) });
    }
    const isInit = (pod.spec.initContainers ?? []).some(({ name }) => name === container.name);
    this.#reusable = { uid, cpus: isInit ? union(this.#reusableOf(uid), cpus) : without(this.#reusableOf(uid), cpus) };
  }

  /** The CPUs that a container may run on: its exclusive CPUs or the shared pool; empty with the policy `none`. */
  cpusOf(uid: string, container: string): CpuSet {
    return this.#given(uid, container) ?? this.#state.shared;
  }

  /** The CPUs assigned to the container alone; empty when it uses the shared pool. */
  exclusiveCpusOf(uid: string, container: string): CpuSet {
    return this.#given(uid, container) ?? [];
  }

  /** CPUs that can be assigned exclusively. */
  allocatable(): CpuSet {
    const { settings } = this.#options;
    return settings === undefined ? [] : without(cpuSet(settings.machine.map(({ id }) => id)), settings.reserved);
  }

  /** Releases the CPUs of all Pods that are not in `pods`. */
  release(pods: readonly NodePod[]): void {
    const kept = new Map([...this.#state.assigned].filter(([uid]) => pods.some((pod) => pod.metadata.uid === uid)));
    if (kept.size !== this.#state.assigned.size) this.#change(kept);
  }

  #restore(): CpuState {
    const { file, settings } = this.#options;
    const advice = `please drain this node and delete the CPU manager checkpoint file ${JSON.stringify(this.#options.path)} before restarting Kubelet`;
    let kept: CpuState | undefined;
    try {
      kept = file.load();
      if (kept !== undefined && kept.policy !== this.#policy) {
        const differ = `configured policy ${JSON.stringify(this.#policy)} differs from state checkpoint policy ${JSON.stringify(kept.policy)}`;
        throw new Error(differ);
      }
    } catch (err) {
      throw new Error(`start cpu manager error: could not restore state from checkpoint: ${messageOf(err)}, ${advice}`);
    }
    const empty: CpuState = { policy: this.#policy, shared: [], assigned: new Map() };
    try {
      const valid = settings === undefined ? (kept ?? empty) : validCpuState(settings, kept ?? empty);
      file.save(valid);
      return valid;
    } catch (err) {
      throw new Error(`start cpu manager error: ${messageOf(err)}`);
    }
  }

  #change(assigned: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>): void {
    const { settings, file } = this.#options;
    const all = cpuSet(settings?.machine.map(({ id }) => id) ?? []);
    const taken = [...assigned.values()].flatMap((of) => [...of.values()]);
    this.#state = { policy: this.#policy, shared: without(all, union(...taken)), assigned };
    file.save(this.#state);
  }

  #given(uid: string, container: string): CpuSet | undefined {
    return this.#state.assigned.get(uid)?.get(container);
  }

  #reusableOf(uid: string): CpuSet {
    return this.#reusable.uid === uid ? this.#reusable.cpus : [];
  }
}
