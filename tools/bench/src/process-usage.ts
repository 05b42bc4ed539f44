import { readFileSync } from "node:fs";

/** USER_HZ of /proc/<pid>/stat: 100 on all Linux platforms supported by Node. */
const ticksPerSecond = 100;

/** User plus system CPU seconds of all threads of a process. @throws Error when it has exited */
export function cpuSeconds(pid: number): number {
  return cpuSecondsOf(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

/** The program's name is in parentheses and may contain spaces and parentheses. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Resident set size in MB. */
export function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kb ?? 0) / 1024;
}
