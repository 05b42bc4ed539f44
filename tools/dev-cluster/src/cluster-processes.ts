import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startTimeOf } from "./process-identity.ts";
import { processVariable } from "./supervisor-state.ts";

/** A process that belongs to a cluster. */
export interface ClusterProcess {
  readonly pid: number;
  readonly startTime: string;
  /** Name of the process or of the supervised process that it descends from: `kubelet`, `containerd`. */
  readonly name: string;
}

/**
 * All processes started by the cluster's supervisor and their descendants, found by an environment variable, even when the
 * supervisor was killed and its state file is lost. Processes in containers have another environment and are not included.
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

/** Those started directly by `up` or the supervisor, including the supervisor: each is a session leader. */
export const startedBySupervisor = (clusterId: string): ClusterProcess[] =>
  processesOf(clusterId).filter(({ pid }) => sessionOf(pid) === pid);

/** The shims of a containerd, which survive it. @param socket of that containerd */
export const shimsOf = (socket: string): ClusterProcess[] =>
  pids().flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`).split("\0");
    return command[0]?.includes("containerd-shim") && command.includes(socket) ? identify(pid, "containerd-shim") : [];
  });

/** @param name undefined to use the kernel's name (comm) */
export function identify(pid: number, name?: string): ClusterProcess[] {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? [] : [{ pid, startTime, name: name ?? (read(`/proc/${pid}/comm`).trim() || "unknown") }];
}

/** Signals the processes that still run; the start time protects against pid reuse. */
export function signalAll(processes: readonly ClusterProcess[], signal: NodeJS.Signals): void {
  for (const { pid, startTime } of processes) {
    if (startTimeOf(pid) !== startTime) continue;
    try {
      process.kill(pid, signal);
    } catch {
      // already exited
    }
  }
}

/** @returns false when some process is still running after `withinMs`. */
export async function haveEnded(processes: readonly ClusterProcess[], withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (processes.some(({ pid, startTime }) => startTimeOf(pid) === startTime)) {
    if (performance.now() > end) return false;
    await delay(10);
  }
  return true;
}

/** Session ID: field 6 of /proc/<pid>/stat. */
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
    return ""; // it exited, or belongs to another user
  }
}
