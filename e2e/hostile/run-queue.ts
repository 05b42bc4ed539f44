import { readdirSync, readFileSync } from "node:fs";

/**
 * Time that threads spent runnable without a CPU, according to the kernel. It is subtracted from latencies, because it is caused
 * by the machine's load, including the attacker, and not by the server.
 */
export interface RunQueue {
  /**
   * In ms since its creation: the sum for the bystander's thread, the server's main thread, and the longest of the other
   * threads.
   */
  waitedMs(): number;
}

/** @param server a process whose main thread does the work @param others a process whose threads share the work */
export function newRunQueue(server: number, others: number): RunQueue {
  const files = [`/proc/self/schedstat`, `/proc/${server}/schedstat`];
  const otherFiles = readdirSync(`/proc/${others}/task`).map((tid) => `/proc/${others}/task/${tid}/schedstat`);
  const before = otherFiles.map(waitOf);
  return {
    waitedMs() {
      const own = files.reduce((sum, file) => sum + waitOf(file), 0);
      return own + Math.max(0, ...otherFiles.map((file, i) => waitOf(file) - (before[i] ?? 0)));
    },
  };
}

/** Source: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat */
function waitOf(file: string): number {
  try {
    return Number(readFileSync(file, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0; // the thread has exited
  }
}
