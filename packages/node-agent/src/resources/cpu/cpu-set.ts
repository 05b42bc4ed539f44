/** CPU numbers in ascending order without duplicates. Read-only: every function returns a new list. */
export type CpuSet = readonly number[];

/** Bound for the expansion of ranges in untrusted input. */
const largestCpu = 65_535;

/**
 * Parses a CPU list.
 * @param text in the kernel's list format, `0-3,8`; empty for none
 * @throws Error when malformed
 * Source: pkg/kubelet/cm/cpuset/cpuset.go
 */
export function parseCpus(text: string): CpuSet {
  const numbers = new Set<number>();
  if (text === "") return [];
  for (const range of text.split(",")) {
    const bounds = range.split("-");
    const [first, last] = [cpuNumber(bounds[0]), cpuNumber(bounds.at(-1))];
    if (bounds.length > 2) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(bounds.slice(1).join("-"))}: invalid syntax`);
    if (first > last) throw new Error(`invalid range ${JSON.stringify(range)} (${first} >= ${last})`);
    for (let cpu = first; cpu <= last; cpu++) numbers.add(cpu);
  }
  return cpuSet(numbers);
}

function cpuNumber(text = ""): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
  const cpu = Number(text);
  if (cpu > largestCpu) throw new Error(`there is no CPU ${cpu}`);
  return cpu;
}

/** The kernel's list format: `0-3,8`. */
export function formatCpus(cpus: CpuSet): string {
  const ranges: string[] = [];
  for (let i = 0; i < cpus.length; i++) {
    const first = cpus[i];
    while (cpus[i + 1] === cpus[i]! + 1) i++;
    ranges.push(first === cpus[i] ? String(first) : `${first}-${cpus[i]}`);
  }
  return ranges.join(",");
}

/** Sorts and removes duplicates. */
export function cpuSet(numbers: Iterable<number>): CpuSet {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** All CPUs of the sets, sorted and without duplicates. */
export function union(...sets: readonly CpuSet[]): CpuSet {
  return cpuSet(sets.flat());
}

/** The difference: CPUs of `all` that are not in `taken`. */
export function without(all: CpuSet, taken: CpuSet): CpuSet {
  return all.filter((cpu) => !taken.includes(cpu));
}

/** The intersection. */
export function both(a: CpuSet, b: CpuSet): CpuSet {
  return a.filter((cpu) => b.includes(cpu));
}

export function sameCpus(a: CpuSet, b: CpuSet): boolean {
  return a.length === b.length && a.every((cpu, i) => cpu === b[i]);
}
