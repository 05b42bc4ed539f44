import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { ResourceList } from "../../pod/pod-resources.ts";
import type { ReservedMemory } from "../../settings/structures.ts";
import { choicesOf, type Hint, narrowerFirst } from "../topology/hints.ts";
import type { NumaNode } from "../topology/machine-topology.ts";
import type { MemoryBlock, MemoryState, MemoryTable, NumaNodeMemory } from "./memory-state.ts";
import { isMemoryResource } from "./reserved-memory.ts";

/** NUMA node → its memory. */
export type NodesMemory = MemoryState["nodes"];
/** Memory type → bytes. */
export type MemoryRequest = ReadonlyMap<string, number>;
/** Bytes that a Pod's exited init containers leave for later containers, by nodes (`0,1`) and type. */
export type ReusableMemory = ReadonlyMap<string, MemoryRequest>;

const keyOf = (nodes: readonly number[]): string => nodes.join(",");

/**
 * Pure: the memory of each node without reservations for containers.
 * @throws Error when the per-node reservations do not add up to the node's total, or no memory is reserved
 * Source: pkg/kubelet/cm/memorymanager/memory_manager.go validateReservedMemory, policy_static.go getDefaultMachineState
 */
export function emptyMemory(
  machine: readonly NumaNode[],
  reserved: readonly ReservedMemory[],
  reservedInAll: ResourceList,
): NodesMemory {
  checkReserved(machine, reserved, reservedInAll);
  const reservedOf = (node: number, type: string): number =>
    reserved
      .filter(({ numaNode }) => numaNode === node)
      .reduce((sum, { limits }) => sum + (limits[type] === undefined ? 0 : Quantity.parse(limits[type]).value()), 0);
  const nodes = new Map<number, NumaNodeMemory>();
  for (const { id, memoryBytes, hugePages } of machine) {
    const tables = new Map<string, MemoryTable>();
    const add = (type: string, total: number, elsewhere = 0): void => {
      const systemReserved = reservedOf(id, type);
      const allocatable = total - systemReserved - elsewhere;
      tables.set(type, { total, systemReserved, allocatable, reserved: 0, free: allocatable });
    };
    let huge = 0;
    for (const [pageBytes, count] of hugePages) {
      add(`hugepages-${Quantity.fromValue(pageBytes, "BinarySI")}`, pageBytes * count);
      huge += pageBytes * count;
    }
    add("memory", memoryBytes, huge);
    nodes.set(id, { assignments: 0, group: [id], tables });
  }
  return nodes;
}

function checkReserved(machine: readonly NumaNode[], reserved: readonly ReservedMemory[], inAll: ResourceList): void {
  const sums = new Map<string, Quantity>();
  for (const { numaNode, limits } of reserved) {
    if (!machine.some(({ id }) => id === numaNode)) {
      throw new Error(`the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`);
    }
    for (const [type, amount] of Object.entries(limits)) {
      const quantity = Quantity.parse(amount);
      sums.set(type, sums.get(type)?.add(quantity) ?? quantity);
    }
  }
  const zero = Quantity.parse("0");
  for (const type of new Set([...sums.keys(), ...Object.keys(inAll).filter(isMemoryResource)])) {
    const sum = sums.get(type) ?? zero;
    const wanted = inAll[type] === undefined ? zero : Quantity.parse(inAll[type]);
    if (sum.cmp(wanted) !== 0) {
      throw new Error(
        `the total amount ${JSON.stringify(sum.toString())} of type ${JSON.stringify(type)} is not equal to the value ${JSON.stringify(wanted.toString())} determined by Node Allocatable feature`,
      );
    }
  }
  if ((sums.get("memory") ?? zero).isZero) throw new Error("[memorymanager] you should specify the system reserved memory");
}

/**
 * Pure: reserves (direction 1) or releases (direction -1) a block, taking as much as possible from each node in order.
 * Source: policy_static.go updateMachineState, RemoveContainer
 */
export function moveBlock(nodes: NodesMemory, { nodes: from, type, sizeBytes }: MemoryBlock, direction: 1 | -1): NodesMemory {
  const next = new Map(nodes);
  let left = sizeBytes;
  for (const id of from) {
    const node = next.get(id);
    const table = node?.tables.get(type);
    if (node === undefined || table === undefined) continue;
    const moved = Math.min(left, Math.max(0, direction === 1 ? table.free : table.reserved));
    left -= moved;
    const assignments = node.assignments + direction;
    next.set(id, {
      assignments,
      group: direction === 1 ? from : assignments === 0 ? [id] : node.group,
      tables: new Map(node.tables).set(type, {
        ...table,
        free: table.free - direction * moved,
        reserved: table.reserved + direction * moved,
      }),
    });
  }
  return next;
}

const sumOf = (nodes: NodesMemory, ids: readonly number[], type: string, field: "free" | "allocatable"): number =>
  ids.reduce((sum, id) => sum + (nodes.get(id)?.tables.get(type)?.[field] ?? 0), 0);

/**
 * Pure: the sets of nodes that can satisfy a request. A node that is used on its own is not combined with others, and the
 * nodes of a group are only used together. Source: policy_static.go calculateHints
 */
export function memoryHints(nodes: NodesMemory, request: MemoryRequest, reusable: ReusableMemory): Hint[] {
  const ids = [...nodes.keys()].sort((a, b) => a - b);
  let fewest = ids.length;
  const possible: number[][] = [];
  for (const choice of choicesOf(ids)) {
    const fits = (has: (type: string) => number): boolean => [...request].every(([type, size]) => has(type) >= size);
    if (!fits((type) => sumOf(nodes, choice, type, "allocatable"))) continue;
    fewest = Math.min(fewest, choice.length);
    const members = choice.map((id) => nodes.get(id)!);
    const alone = choice.length === 1;
    if (alone && members.some(({ group }) => group.length > 1)) continue;
    const used = members.filter(({ assignments }) => assignments > 0);
    if (!alone && used.some(({ group }) => keyOf([...group].sort((a, b) => a - b)) !== keyOf(choice))) continue;
    if (!fits((type) => sumOf(nodes, choice, type, "free") + (reusable.get(keyOf(choice))?.get(type) ?? 0))) continue;
    possible.push(choice);
  }
  return possible.map((choice) => ({ nodes: choice, preferred: choice.length === fewest }));
}

/**
 * Pure: the nodes to allocate from: the hint's if they have enough memory, else the best superset.
 * @throws Error when no set has enough, or only sets that are not preferred while the hint was
 * Source: policy_static.go Allocate, getDefaultHint, extendTopologyManagerHint
 */
export function chooseNodes(nodes: NodesMemory, request: MemoryRequest, hint: Hint, reusable: ReusableMemory): readonly number[] {
  const hints = memoryHints(nodes, request, reusable);
  const { nodes: wanted, preferred } = hint.nodes === undefined ? defaultHint(hints, hint) : { ...hint, nodes: hint.nodes };
  if ([...request].every(([type, size]) => sumOf(nodes, wanted, type, "free") >= size)) return wanted;
  const wider = bestOf(hints.filter((other) => wanted.every((id) => other.nodes?.includes(id))));
  if (wider?.nodes === undefined)
    throw new Error("[memorymanager] failed to find NUMA nodes to extend the current topology hint");
  if (!wider.preferred && preferred) throw new Error("[memorymanager] failed to find the extended preferred hint");
  return wider.nodes;
}

/** Without an affinity in the hint: the best set of nodes, which must be preferred if the hint was. */
function defaultHint(hints: readonly Hint[], { preferred }: Hint): { nodes: readonly number[]; preferred: boolean } {
  const best = bestOf(hints);
  if (best?.nodes === undefined)
    throw new Error("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
  if (!best.preferred && preferred) throw new Error("[memorymanager] failed to find the default preferred hint");
  return { nodes: best.nodes, preferred: best.preferred };
}

/** Preferred before not preferred, then the smallest set. */
function bestOf(hints: readonly Hint[]): Hint | undefined {
  return [...hints].sort((a, b) => Number(b.preferred) - Number(a.preferred) || narrowerFirst(a.nodes ?? [], b.nodes ?? []))[0];
}

/** Pure: the reusable memory after an allocation. Blocks of init containers are added; those of other containers are used up. */
export function reusableAfter(reusable: ReusableMemory, blocks: readonly MemoryBlock[], isInit: boolean): ReusableMemory {
  const next = new Map<string, Map<string, number>>([...reusable].map(([key, of]) => [key, new Map(of)]));
  for (const { nodes, type, sizeBytes } of blocks) {
    const of = next.get(keyOf(nodes)) ?? new Map<string, number>();
    const before = of.get(type) ?? 0;
    of.set(type, isInit ? Math.max(before, sizeBytes) : Math.max(0, before - sizeBytes));
    next.set(keyOf(nodes), of);
  }
  return next;
}

/** Reusable bytes of one type on exactly these nodes. */
export const reusableOn = (reusable: ReusableMemory, nodes: readonly number[], type: string): number =>
  reusable.get(keyOf(nodes))?.get(type) ?? 0;

/** Whether both have the same memory and the same assignments. */
export function sameMemory(a: NodesMemory, b: NodesMemory): boolean {
  const shown = (nodes: NodesMemory): string =>
    JSON.stringify(
      [...nodes]
        .sort(([x], [y]) => x - y)
        .map(([id, { assignments, group, tables }]) => [
          id,
          assignments,
          [...group].sort((x, y) => x - y),
          [...tables]
            .sort(([x], [y]) => (x < y ? -1 : 1))
            .map(([type, t]) => [type, t.total, t.systemReserved, t.allocatable, t.reserved, t.free]),
        ]),
    );
  return shown(a) === shown(b);
}
