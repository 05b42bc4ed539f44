import { readFileSync } from "node:fs";

/** Resident memory of a process, in MB. */
export const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
