import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import { quantityOf, sumOverPod } from "../../pod/pod-resources.ts";
import type { CheckpointFile } from "../checkpoint-file.ts";
import type { Hint, Hints } from "../topology/hints.ts";
import type { HintProvider } from "../topology/topology-manager.ts";
import type { MemoryBlock, MemoryState } from "./memory-state.ts";
import {
  chooseNodes,
  type MemoryRequest,
  memoryHints,
  moveBlock,
  type NodesMemory,
  type ReusableMemory,
  reusableAfter,
  reusableOn,
  sameMemory,
} from "./numa-memory.ts";
import { isMemoryResource } from "./reserved-memory.ts";

interface MemoryManagerOptions {
  /** Memory of the NUMA nodes without reservations for containers; undefined for `None`. */
  machine: NodesMemory | undefined;
  file: CheckpointFile<MemoryState>;
  log: Logger;
}

/**
 * Assigns memory to containers by `--memory-manager-policy`: `None`, or `Static`, which reserves memory of NUMA nodes for
 * containers of Guaranteed Pods.
 * @throws Error when the restored state is from another policy or does not match the machine
 * Source: pkg/kubelet/cm/memorymanager
 */
export class MemoryManager implements HintProvider {
  readonly #options: MemoryManagerOptions;
  readonly #policy: "None" | "Static";
  #state: MemoryState;
  #reusable: { uid: string; memory: ReusableMemory } = { uid: "", memory: new Map() };

  constructor(options: MemoryManagerOptions) {
    this.#options = options;
    const { machine } = options;
    this.#policy = machine === undefined ? "None" : "Static";
    this.#state = this.#restore();
  }

  /** NUMA nodes that can provide the container's memory, by type; empty for Pods that are not Guaranteed. */
  hints(pod: NodePod, container: AnyContainer): Hints {
    if (!this.#cares(pod)) return new Map();
    return this.#hintsOf(pod, requestOf(container), this.#given(pod.metadata.uid, container.name));
  }

  /** As `hints`, for all containers of the Pod together. */
  podHints(pod: NodePod): Hints {
    if (!this.#cares(pod)) return new Map();
    const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
    const has = all.map(({ name }) => this.#given(pod.metadata.uid, name)).find((blocks) => blocks !== undefined);
    return this.#hintsOf(pod, sumOverPod(pod, requestOf), has);
  }

  /** Reserves memory of NUMA nodes for a container of a Guaranteed Pod; idempotent. @throws Error when there is not enough */
  allocate(pod: NodePod, container: AnyContainer, hint: Hint): void {
    const { log } = this.#options;
    if (!this.#cares(pod)) return;
    const { uid } = pod.metadata;
    const initContainers = pod.spec.initContainers ?? [];
    const isInit = initContainers.some(({ name }) => name === container.name);
    let blocks = this.#given(uid, container.name);
    if (blocks === undefined) {
      const request = requestOf(container);
      const from = chooseNodes(this.#state.nodes, request, hint, this.#reusableOf(uid));
      blocks = [...request].map(([type, sizeBytes]) => ({ nodes: from, type, sizeBytes }));
      let { nodes } = this.#state;
      for (const block of blocks) {
        const sizeBytes = Math.max(0, block.sizeBytes - reusableOn(this.#reusableOf(uid), from, block.type));
        nodes = moveBlock(nodes, { ...block, sizeBytes }, 1);
      }
      const own = new Map(this.#state.assigned.get(uid));
      handOver(own, initContainers, container.name, blocks);
      this.#change({ nodes, assigned: new Map(this.#state.assigned).set(uid, own.set(container.name, blocks)) });
      log.info("reserved memory for a container", { podUID: uid, container: container.name, numaNodes: from.join(",") });
    }
    this.#reusable = { uid, memory: reusableAfter(this.#reusableOf(uid), blocks, isInit) };
  }

  /** NUMA nodes that the container's memory comes from; empty for no restriction. */
  nodesOf(uid: string, container: string): readonly number[] {
    return [...new Set((this.#given(uid, container) ?? []).flatMap(({ nodes }) => nodes))].sort((a, b) => a - b);
  }

  /** The memory reserved for a container, in bytes by type and NUMA nodes. */
  blocksOf(uid: string, container: string): readonly MemoryBlock[] {
    return this.#given(uid, container) ?? [];
  }

  /** Allocatable memory by node and type. */
  allocatable(): MemoryBlock[] {
    const { machine } = this.#options;
    return [...(machine ?? [])].flatMap(([id, { tables }]) =>
      [...tables]
        .filter(([, { allocatable }]) => allocatable > 0)
        .map(([type, { allocatable }]) => ({ nodes: [id], type, sizeBytes: allocatable })),
    );
  }

  /** Called when a container was created: releases the memory of the init containers before it, which have exited. */
  started(pod: NodePod, container: AnyContainer): void {
    if (!this.#cares(pod)) return;
    const names = (pod.spec.initContainers ?? []).map(({ name }) => name);
    const place = names.indexOf(container.name);
    const ended = place < 0 ? names : names.slice(0, place);
    this.#remove((uid, name) => uid === pod.metadata.uid && ended.includes(name));
  }

  /** Releases the memory of all Pods except these, and writes the state file. */
  release(pods: readonly NodePod[]): void {
    this.#remove((uid) => !pods.some((pod) => pod.metadata.uid === uid));
  }

  #restore(): MemoryState {
    const { file, machine } = this.#options;
    try {
      const kept = file.load();
      if (kept !== undefined && kept.policy !== this.#policy) {
        throw new Error(
          `[memorymanager] configured policy ${JSON.stringify(this.#policy)} differs from state checkpoint policy ${JSON.stringify(kept.policy)}`,
        );
      }
      const valid = machine === undefined ? (kept ?? emptyState(this.#policy, new Map())) : validState(machine, kept);
      file.save(valid);
      return valid;
    } catch (err) {
      throw new Error(`start memory manager error: ${messageOf(err)}`);
    }
  }

  #change(next: Omit<MemoryState, "policy">): void {
    const { file } = this.#options;
    this.#state = { policy: this.#policy, ...next };
    file.save(this.#state);
  }

  /** Releases the memory of the containers for which `gone` is true. */
  #remove(gone: (uid: string, container: string) => boolean): void {
    let { nodes } = this.#state;
    const assigned = new Map<string, ReadonlyMap<string, readonly MemoryBlock[]>>();
    let changed = false;
    for (const [uid, of] of this.#state.assigned) {
      const kept = new Map<string, readonly MemoryBlock[]>();
      for (const [name, blocks] of of) {
        if (!gone(uid, name)) {
          kept.set(name, blocks);
          continue;
        }
        changed = true;
        for (const block of blocks) nodes = moveBlock(nodes, block, -1);
      }
      if (kept.size > 0) assigned.set(uid, kept);
    }
    if (changed) this.#change({ nodes, assigned });
  }

  #given(uid: string, container: string): readonly MemoryBlock[] | undefined {
    return this.#state.assigned.get(uid)?.get(container);
  }

  #reusableOf(uid: string): ReusableMemory {
    return this.#reusable.uid === uid ? this.#reusable.memory : new Map();
  }

  #cares(pod: NodePod): boolean {
    const { machine } = this.#options;
    return machine !== undefined && qosClass(pod) === "Guaranteed";
  }

  #hintsOf(pod: NodePod, request: MemoryRequest, has: readonly MemoryBlock[] | undefined): Hints {
    if (has !== undefined) return hintsOfBlocks(has, request);
    const hints = memoryHints(this.#state.nodes, request, this.#reusableOf(pod.metadata.uid));
    // Hints are computed for all memory types together; an empty list applies to each of them.
    return new Map([...request.keys()].map((type) => [type, hints]));
  }
}

const emptyState = (policy: string, nodes: NodesMemory): MemoryState => ({ policy, nodes, assigned: new Map() });

/** @throws Error when the restored state does not match the machine. Source: policy_static.go validateState */
function validState(machine: NodesMemory, kept: MemoryState | undefined): MemoryState {
  if (kept === undefined || kept.nodes.size === 0) {
    if (kept !== undefined && kept.assigned.size > 0)
      throw new Error("[memorymanager] machine state can not be empty when it has memory assignments");
    return emptyState("Static", machine);
  }
  let expected = machine;
  for (const [uid, of] of kept.assigned) {
    for (const [name, blocks] of of) {
      for (const block of blocks) {
        const where = `[memorymanager] (pod: ${uid}, container: ${name}) the memory assignment uses`;
        const nodes = block.nodes.map((id) => machine.get(id));
        if (nodes.includes(undefined)) throw new Error(`${where} the NUMA that does not exist`);
        if (nodes.some((node) => !node?.tables.has(block.type))) throw new Error(`${where} memory resource that does not exist`);
        expected = moveBlock(expected, block, 1);
      }
    }
  }
  if (!sameMemory(expected, kept.nodes))
    throw new Error("[memorymanager] the expected machine state is different from the real one");
  return kept;
}

/** Memory that this container reuses from earlier init containers is no longer accounted to them. */
function handOver(
  own: Map<string, readonly MemoryBlock[]>,
  initContainers: readonly AnyContainer[],
  to: string,
  blocks: readonly MemoryBlock[],
): void {
  for (const block of blocks) {
    let left = block.sizeBytes;
    for (const { name } of initContainers) {
      if (name === to) break;
      const before = own.get(name);
      if (before === undefined) continue;
      const after = before.map((one) => {
        if (one.type !== block.type || String(one.nodes) !== String(block.nodes)) return one;
        const taken = Math.min(left, one.sizeBytes);
        left -= taken;
        return { ...one, sizeBytes: one.sizeBytes - taken };
      });
      own.set(name, after);
    }
  }
}

function requestOf(container: AnyContainer): MemoryRequest {
  const requests = ("resources" in container ? container.resources?.requests : undefined) ?? {};
  return new Map(
    Object.keys(requests)
      .filter(isMemoryResource)
      .map((type) => [type, quantityOf(requests, type).value()]),
  );
}

/** Hints for memory that is already assigned, e.g. after a restart: its current nodes. None when the request has changed. */
function hintsOfBlocks(blocks: readonly MemoryBlock[], request: MemoryRequest): Hints {
  if (blocks.length !== request.size || blocks.some(({ type, sizeBytes }) => request.get(type) !== sizeBytes)) return new Map();
  return new Map(blocks.map(({ type, nodes }) => [type, [{ nodes, preferred: true }]]));
}
