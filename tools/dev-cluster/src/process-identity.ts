import { readFileSync } from "node:fs";

/**
 * When a process began, in clock ticks since the machine did; with it a pid names one process for good.
 * @returns undefined for a process that is gone or a zombie. Source: proc(5), field 22 of /proc/<pid>/stat
 */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
