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
    const { policyName, machineState, entries, checksum } = JSON.parse(written) as Record<string, unknown>;
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
  const { numberOfAssignments, memoryMap, cells } = (written ?? {}) as Record<string, unknown>;
  const tables = entriesOf(memoryMap).map(([type, one]) => {
    const { total, systemReserved, allocatable, reserved, free } = (one ?? {}) as Record<string, unknown>;
    const [t, s, a, r, f] = [total, systemReserved, allocatable, reserved, free].map(Number) as [
      number,
      number,
      number,
      number,
      number,
    ];
    return [type, { total: t, systemReserved: s, allocatable: a, reserved: r, free: f }] as const;
  });
  return { assignments: Number(numberOfAssignments), group: (cells ?? []) as number[], tables: new Map(tables) };
}

function readBlocks(written: unknown): MemoryBlock[] {
  const list = Array.isArray(written) ? (written as Record<string, unknown>[]) : [];
  return list.map(({ numaAffinity, type, size }) => ({
    nodes: (numaAffinity ?? []) as number[],
    type: String(type),
    sizeBytes: Number(size),
  }));
}

function checksumOf({ policy, nodes, assigned }: MemoryState): number {
  const machine = [...nodes].map(([id, { assignments, group, tables }]) => [
    String(id),
    {
      NumberOfAssignments: assignments,
      MemoryMap: new Map(
        [...tables].map(([type, { total, systemReserved, allocatable, reserved, free }]) => [
          type,
          { TotalMemSize: total, SystemReserved: systemReserved, Allocatable: allocatable, Reserved: reserved, Free: free },
        ]),
      ),
      Cells: group,
    },
  ]);
  const entries = [...assigned].map(([uid, of]) => [
    uid,
    new Map(
      [...of].map(([name, list]) => [
        name,
        list.map((one) => ({ NUMAAffinity: one.nodes, Type: one.type, Size: one.sizeBytes })),
      ]),
    ),
  ]);
  const value = {
    PolicyName: policy,
    MachineState: new Map(machine as [string, unknown][]),
    Entries: new Map(entries as [string, unknown][]),
    Checksum: 0,
  };
  return goChecksum(value, checkpoint);
}
