import { readdirSync, readFileSync } from "node:fs";

/**
 * Time that a request spent waiting for a CPU, according to the kernel. It is subtracted from latencies, because it is caused by
 * the machine's load, including the attacker, and not by the server.
 */
export interface RunQueue {
  /**
   * In ms since its creation. Grows by no more than the time that passes: threads that wait at the same time count once, as far
   * according to the samples, every 10 ms.
   */
  waitedMs(): number;
  stop(): void;
}

export interface Waits {
  /** Cumulative time, in ms, that each thread of a request's path was runnable without a CPU. */
  readonly path: readonly number[];
  /** The same for threads that share work: only the longest wait counts. Keyed by thread, because threads come and go. */
  readonly shared: ReadonlyMap<string, number>;
}

const sampleEveryMs = 10;

/** @param server a process whose main thread does the work @param others a process whose threads share the work */
export function newRunQueue(server: number, others: number): RunQueue {
  const path = ["/proc/self/schedstat", `/proc/${server}/schedstat`];
  const tasks = `/proc/${others}/task`;
  const waited = newWaitCounter(
    () => ({
      path: path.map(waitOf),
      shared: new Map(threadsOf(tasks).map((thread) => [thread, waitOf(`${tasks}/${thread}/schedstat`)])),
    }),
    () => performance.now(),
  );
  const timer = setInterval(waited, sampleEveryMs);
  timer.unref();
  return { waitedMs: waited, stop: () => clearInterval(timer) };
}

/** @param read the kernel's counters @param now in ms @returns takes a sample; returns the sum of all samples in ms */
export function newWaitCounter(read: () => Waits, now: () => number): () => number {
  let last = { at: now(), waits: read() };
  let total = 0;
  return () => {
    const next = { at: now(), waits: read() };
    const { path, shared } = last.waits;
    const onPath = next.waits.path.reduce((sum, ms, i) => sum + Math.max(0, ms - (path[i] ?? 0)), 0);
    const longest = Math.max(0, ...[...next.waits.shared].map(([thread, ms]) => ms - (shared.get(thread) ?? 0)));
    total += Math.min(next.at - last.at, onPath + longest);
    last = next;
    return total;
  };
}

function threadsOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // the process has exited
  }
}

/** Source: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat */
function waitOf(file: string): number {
  try {
    return Number(readFileSync(file, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0; // the thread has exited
  }
}
