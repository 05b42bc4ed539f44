import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startTimeOf } from "./process-identity.ts";
import { processVariable } from "./supervisor-state.ts";

/** A process of this machine that belongs to a cluster. */
export interface ClusterProcess {
  readonly pid: number;
  readonly startTime: string;
  /** What it is or was started by: `kubelet`, `containerd`. */
  readonly name: string;
}

/**
 * All that the supervisor of a cluster has started, and what those have started in turn, found by their environment: also those
 * whose supervisor was killed and whose state file is gone. A container's processes have an environment of their own.
 */
export function processesOf(clusterId: string): ClusterProcess[] {
  const mark = `${processVariable}=${clusterId}/`;
  return pids().flatMap((pid) => {
    const value = read(`/proc/${pid}/environ`)
      .split("\0")
      .find((entry) => entry.startsWith(mark));
    return value === undefined || pid === process.pid ? [] : identify(pid, value.slice(mark.length));
  });
}

/** Those of them that `up` and the supervisor have started, itself included: each leads a session of its own. */
export const startedBySupervisor = (clusterId: string): ClusterProcess[] =>
  processesOf(clusterId).filter(({ pid }) => sessionOf(pid) === pid);

/** The shims of a containerd, which outlive it. @param socket of that containerd */
export const shimsOf = (socket: string): ClusterProcess[] =>
  pids().flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`).split("\0");
    return command[0]?.includes("containerd-shim") && command.includes(socket) ? identify(pid, "containerd-shim") : [];
  });

/** @param name undefined: as the kernel names it */
export function identify(pid: number, name?: string): ClusterProcess[] {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? [] : [{ pid, startTime, name: name ?? (read(`/proc/${pid}/comm`).trim() || "unknown") }];
}

export function signalAll(processes: readonly ClusterProcess[], signal: NodeJS.Signals): void {
  for (const { pid, startTime } of processes) {
    if (startTimeOf(pid) !== startTime) continue;
    try {
      process.kill(pid, signal);
    } catch {
      // it ended meanwhile
    }
  }
}

/** @returns whether all have ended in time. */
export async function haveEnded(processes: readonly ClusterProcess[], withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (processes.some(({ pid, startTime }) => startTimeOf(pid) === startTime)) {
    if (performance.now() > end) return false;
    await delay(10);
  }
  return true;
}

/** Field 6 of /proc/<pid>/stat. */
const sessionOf = (pid: number): number => {
  const stat = read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3]);
};

const pids = (): number[] =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // it ended, or is another user's
  }
}
