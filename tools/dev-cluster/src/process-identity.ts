import { readFileSync } from "node:fs";

/**
 * Start time of a process in clock ticks since boot; pid and start time together identify a process uniquely.
 * @returns undefined when the process has exited or is a zombie. Source: proc(5), field 22 of /proc/<pid>/stat
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
