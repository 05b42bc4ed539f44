import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { type GoType, goChecksum } from "../checkpoint-checksum.ts";
import { type CheckpointForm, corrupt, entriesOf } from "../checkpoint-file.ts";

/** Memory of one type (`memory`, `hugepages-2Mi`) that is assigned to a container from a group of NUMA nodes. */
export interface MemoryBlock {
  nodes: readonly number[];
  type: string;
  sizeBytes: number;
}

/** Amounts of one memory type on a NUMA node, in bytes; `allocatable` = `reserved` (by containers) + `free`. */
export interface MemoryTable {
  total: number;
  systemReserved: number;
  allocatable: number;
  reserved: number;
  free: number;
}

/** Memory of one NUMA node by type. */
export interface NumaNodeMemory {
  /** Number of blocks that use this node. */
  assignments: number;
  /** The nodes that provide memory together with this one; only itself when it is not part of a group. */
  group: readonly number[];
  tables: ReadonlyMap<string, MemoryTable>;
}

/** Persistent state of the memory manager. */
export interface MemoryState {
  policy: string;
  nodes: ReadonlyMap<number, NumaNodeMemory>;
  /** Pod UID → container name → its blocks. */
  assigned: ReadonlyMap<string, ReadonlyMap<string, readonly MemoryBlock[]>>;
}

const text: GoType = { kind: "string", name: "string" };
const int: GoType = { kind: "number", name: "int" };
const bytes: GoType = { kind: "number", name: "uint64" };
const resource: GoType = { kind: "string", name: "v1.ResourceName" };
const ints: GoType = { kind: "list", name: "[]int", of: int };
const table: GoType = {
  kind: "struct",
  name: "state.MemoryTable",
  fields: ["TotalMemSize", "SystemReserved", "Allocatable", "Reserved", "Free"].map((name) => [name, bytes] as const),
};
const node: GoType = {
  kind: "struct",
  name: "state.NUMANodeState",
  fields: [
    ["NumberOfAssignments", int],
    ["MemoryMap", { kind: "map", name: "map[v1.ResourceName]*state.MemoryTable", of: { kind: "pointer", to: table } }],
    ["Cells", ints],
  ],
};
const block: GoType = {
  kind: "struct",
  name: "state.Block",
  fields: [
    ["NUMAAffinity", ints],
    ["Type", resource],
    ["Size", bytes],
  ],
};
const blocks: GoType = { kind: "list", name: "[]state.Block", of: block };
const checkpoint: GoType = {
  kind: "pointer",
  to: {
    kind: "struct",
    name: "state.MemoryManagerCheckpoint",
    fields: [
      ["PolicyName", text],
      ["MachineState", { kind: "map", name: "state.NUMANodeMap", numericKeys: true, of: { kind: "pointer", to: node } }],
      [
        "Entries",
        {
          kind: "map",
          name: "state.ContainerMemoryAssignments",
          of: { kind: "map", name: "map[string][]state.Block", of: blocks },
        },
      ],
      ["Checksum", { kind: "number", name: "checksum.Checksum" }],
    ],
  },
};

/** `memory_manager_state`, in upstream's format. Source: pkg/kubelet/cm/memorymanager/state/checkpoint.go */
export const memoryStateForm: CheckpointForm<MemoryState> = {
  encode(state) {
    const machineState = [...state.nodes].map(([id, { assignments, group, tables }]) => [
      String(id),
      { numberOfAssignments: assignments, memoryMap: Object.fromEntries(tables), cells: group },
    ]);
    const entries = [...state.assigned].map(([uid, of]) => [
      uid,
      Object.fromEntries([...of].map(([name, list]) => [name, list.map(writtenBlock)])),
    ]);
    return JSON.stringify({
      policyName: state.policy,
      machineState: Object.fromEntries(machineState),
      ...(entries.length > 0 && { entries: Object.fromEntries(entries) }),
      checksum: checksumOf(state),
    });
  },
  decode(written) {
    const { policyName, machineState, entries, checksum }: Record<string, unknown> = JSON.parse(written);
    const nodes = new Map(entriesOf(machineState).map(([id, one]) => [Number(id), readNode(one)]));
    const assigned = new Map(
      entriesOf(entries).map(([uid, of]) => [uid, new Map(entriesOf(of).map(([name, list]) => [name, readBlocks(list)]))]),
    );
    const state: MemoryState = { policy: String(policyName), nodes, assigned };
    if (checksum !== checksumOf(state)) throw new Error(corrupt);
    return state;
  },
};

const writtenBlock = ({ nodes, type, sizeBytes }: MemoryBlock) => ({ numaAffinity: nodes, type, size: sizeBytes });

function readNode(written: unknown): NumaNodeMemory {
  const { numberOfAssignments, memoryMap, cells } = fieldsOf(written);
  const tables = entriesOf(memoryMap).map(([type, one]) => {
    const { total, systemReserved, allocatable, reserved, free } = fieldsOf(one);
    const table = {
      total: Number(total),
      systemReserved: Number(systemReserved),
      allocatable: Number(allocatable),
      reserved: Number(reserved),
      free: Number(free),
    };
    return [type, table] as const;
  });
  return { assignments: Number(numberOfAssignments), group: listIn(cells).map(Number), tables: new Map(tables) };
}

function readBlocks(written: unknown): MemoryBlock[] {
  return listIn(written).map((block) => {
    const { numaAffinity, type, size } = fieldsOf(block);
    return { nodes: listIn(numaAffinity).map(Number), type: String(type), sizeBytes: Number(size) };
  });
}

const fieldsOf = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {});
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function checksumOf({ policy, nodes, assigned }: MemoryState): number {
  const machine = [...nodes].map(([id, node]) => [String(id), goNode(node)] as const);
  const entries = [...assigned].map(
    ([uid, of]) => [uid, new Map([...of].map(([name, list]) => [name, list.map(goBlock)]))] as const,
  );
  const value = { PolicyName: policy, MachineState: new Map(machine), Entries: new Map(entries), Checksum: 0 };
  return goChecksum(value, checkpoint);
}

function goNode({ assignments, group, tables }: NumaNodeMemory): object {
  const map = [...tables].map(([type, { total, systemReserved, allocatable, reserved, free }]) => {
    const table = {
      TotalMemSize: total,
      SystemReserved: systemReserved,
      Allocatable: allocatable,
      Reserved: reserved,
      Free: free,
    };
    return [type, table] as const;
  });
  return { NumberOfAssignments: assignments, MemoryMap: new Map(map), Cells: group };
}

const goBlock = ({ nodes, type, sizeBytes }: MemoryBlock): object => ({ NUMAAffinity: nodes, Type: type, Size: sizeBytes });
