import { readFileSync } from "node:fs";

/** USER_HZ of /proc/<pid>/stat: 100 on all Linux platforms supported by Node. */
const ticksPerSecond = 100;

/** User plus system CPU seconds of all threads of a process. @throws Error when it has exited */
export function cpuSeconds(pid: number): number {
  return cpuSecondsOf(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

/** Parses /proc/<pid>/stat. The program's name is in parentheses and may contain spaces and parentheses. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Like `cpuSeconds`, including exited child processes that were waited for. */
export function cpuSecondsWithChildren(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) / ticksPerSecond;
}

/** Resident set size in MB. */
export function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kb ?? 0) / 1024;
}

/** Proportional set size in MB: each page is divided by the number of processes that map it. */
export function proportionalMb(pid: number): number {
  const kb = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1];
  return Number(kb ?? 0) / 1024;
}

/**
 * Resident memory in MB of several processes together: pages of a file that more than one of them maps, such as the program,
 * count once. (For each file the largest resident set of one process is counted, assuming that it contains the pages of the others.)
 */
export function togetherMb(pids: readonly number[]): number {
  return togetherKb(pids.map((pid) => readFileSync(`/proc/${pid}/smaps`, "utf8"))) / 1024;
}

/** Pure. @param smaps contents of /proc/<pid>/smaps */
export function togetherKb(smaps: readonly string[]): number {
  let privateKb = 0;
  const largest = new Map<string, number>();
  for (const text of smaps) {
    const files = new Map<string, number>();
    for (const mapping of text.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
      const [, file = ""] = /^\S+ \S+ \S+ (\S+ \d+)/.exec(mapping) ?? [];
      const [rss, anonymous] = [kbOf(mapping, "Rss"), kbOf(mapping, "Anonymous")];
      privateKb += anonymous;
      files.set(file, (files.get(file) ?? 0) + rss - anonymous);
    }
    for (const [file, kb] of files) largest.set(file, Math.max(largest.get(file) ?? 0, kb));
  }
  return privateKb + [...largest.values()].reduce((sum, kb) => sum + kb, 0);
}

const kbOf = (mapping: string, name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(mapping)?.[1] ?? 0);
