import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { type GoType, goChecksum } from "../checkpoint-checksum.ts";
import { type CheckpointForm, corrupt, entriesOf } from "../checkpoint-file.ts";
import { type CpuSet, formatCpus, parseCpus } from "./cpu-set.ts";

/** Exclusive CPU assignments; all other containers use `shared`. */
export interface CpuState {
  policy: string;
  /** Empty before the first start. */
  shared: CpuSet;
  /** Pod UID → container name → its CPUs. */
  assigned: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
}

const text: GoType = { kind: "string", name: "string" };
const checkpoint: GoType = {
  kind: "pointer",
  to: {
    kind: "struct",
    name: "state.CPUManagerCheckpoint",
    fields: [
      ["PolicyName", text],
      ["DefaultCPUSet", text],
      [
        "Entries",
        { kind: "map", name: "map[string]map[string]string", of: { kind: "map", name: "map[string]string", of: text } },
      ],
      ["Checksum", { kind: "number", name: "checksum.Checksum" }],
    ],
  },
};

/** `cpu_manager_state`, in upstream's format. Source: pkg/kubelet/cm/cpumanager/state/checkpoint.go */
export const cpuStateForm: CheckpointForm<CpuState> = {
  encode({ policy, shared, assigned }) {
    const textsOf = (of: ReadonlyMap<string, CpuSet>): Map<string, string> =>
      new Map([...of].map(([name, cpus]) => [name, formatCpus(cpus)]));
    const maps = new Map([...assigned].map(([uid, of]) => [uid, textsOf(of)]));
    const defaultCpuSet = formatCpus(shared);
    return JSON.stringify({
      policyName: policy,
      defaultCpuSet,
      ...(maps.size > 0 && { entries: Object.fromEntries([...maps].map(([uid, of]) => [uid, Object.fromEntries(of)])) }),
      checksum: checksumOf(policy, defaultCpuSet, maps),
    });
  },
  decode(written) {
    const { policyName, defaultCpuSet, entries, checksum }: Record<string, unknown> = JSON.parse(written);
    const maps = new Map(
      entriesOf(entries).map(([uid, of]) => [uid, new Map(entriesOf(of).map(([name, cpus]) => [name, String(cpus)]))]),
    );
    if (checksum !== checksumOf(String(policyName), String(defaultCpuSet), maps)) throw new Error(corrupt);
    const assigned = new Map<string, Map<string, CpuSet>>();
    for (const [uid, of] of maps) {
      const containers = new Map<string, CpuSet>();
      for (const [name, cpus] of of) {
        const where = `could not parse cpuset ${JSON.stringify(cpus)} for container ${JSON.stringify(name)} in pod ${JSON.stringify(uid)}`;
        containers.set(name, parsed(cpus, where));
      }
      assigned.set(uid, containers);
    }
    const where = `could not parse default cpu set ${JSON.stringify(defaultCpuSet)}`;
    return { policy: String(policyName), shared: parsed(String(defaultCpuSet), where), assigned };
  },
};

function checksumOf(
  PolicyName: string,
  DefaultCPUSet: string,
  Entries: ReadonlyMap<string, ReadonlyMap<string, string>>,
): number {
  return goChecksum({ PolicyName, DefaultCPUSet, Entries, Checksum: 0 }, checkpoint);
}

function parsed(cpus: string, what: string): CpuSet {
  try {
    return parseCpus(cpus);
  } catch (err) {
    throw new Error(`${what}: ${messageOf(err)}`);
  }
}
