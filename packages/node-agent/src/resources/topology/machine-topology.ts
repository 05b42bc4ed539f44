import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type CpuSet, cpuSet, parseCpus } from "../cpu/cpu-set.ts";

/** A logical CPU and its position. */
export interface Cpu {
  id: number;
  /** The lowest CPU number of the core; identifies the core among its hyperthreads. */
  core: number;
  socket: number;
  numaNode: number;
}

/** Memory of a NUMA node. */
export interface NumaNode {
  id: number;
  memoryBytes: number;
  /** Page size in bytes → number of pages. */
  hugePages: ReadonlyMap<number, number>;
}

/** CPUs and NUMA nodes of the machine; offline CPUs are not included. */
export interface MachineTopology {
  cpus: readonly Cpu[];
  numaNodes: readonly NumaNode[];
}

/** Reads the topology from sysfs. @param dir `/sys/devices/system`; overridden in tests */
export async function readMachineTopology(memoryBytes: number, dir = "/sys/devices/system"): Promise<MachineTopology> {
  const numaNodes: NumaNode[] = [];
  const nodeOfCpu = new Map<number, number>();
  for (const id of await numbered(join(dir, "node"), "node")) {
    const folder = join(dir, "node", `node${id}`);
    for (const cpu of parseCpus(await text(join(folder, "cpulist")))) nodeOfCpu.set(cpu, id);
    const kib = /MemTotal:\s+(\d+) kB/.exec(await text(join(folder, "meminfo")))?.[1];
    numaNodes.push({
      id,
      memoryBytes: kib === undefined ? 0 : Number(kib) * 1024,
      hugePages: await hugePages(join(folder, "hugepages")),
    });
  }
  // Kernels without NUMA support have no such directory: treat the machine as one node.
  if (numaNodes.length === 0) numaNodes.push({ id: 0, memoryBytes, hugePages: await hugePages() });

  const cpus: Cpu[] = [];
  for (const id of await onlineCpus(dir)) {
    const folder = join(dir, "cpu", `cpu${id}`, "topology");
    const siblings = parseCpus(await text(join(folder, "thread_siblings_list")));
    const socket = Number(await text(join(folder, "physical_package_id")));
    cpus.push({ id, core: siblings[0] ?? id, socket: Math.max(0, socket), numaNode: nodeOfCpu.get(id) ?? numaNodes[0]?.id ?? 0 });
  }
  return { cpus, numaNodes };
}

async function onlineCpus(dir: string): Promise<CpuSet> {
  const online = await text(join(dir, "cpu", "online"));
  return online === "" ? cpuSet(await numbered(join(dir, "cpu"), "cpu")) : parseCpus(online);
}

/** Number of huge pages by page size in bytes. */
export async function hugePages(dir = "/sys/kernel/mm/hugepages"): Promise<Map<number, number>> {
  const pages = new Map<number, number>();
  for (const name of await readdir(dir).catch((): string[] => [])) {
    const kib = /^hugepages-(\d+)kB$/.exec(name)?.[1];
    if (kib !== undefined) pages.set(Number(kib) * 1024, Number(await text(join(dir, name, "nr_hugepages"))));
  }
  return pages;
}

/** The numbers of the entries `<prefix><number>` of a directory, in ascending order. */
async function numbered(dir: string, prefix: string): Promise<number[]> {
  const names = await readdir(dir).catch((): string[] => []);
  const numbers = names.filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)));
  return numbers.map((name) => Number(name.slice(prefix.length))).sort((a, b) => a - b);
}

async function text(path: string): Promise<string> {
  return (await readFile(path, "utf8").catch(() => "")).trim();
}
