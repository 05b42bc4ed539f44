import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { newUtilization, releaseMemory } from "@coxswain/apimachinery/process/memory/start-memory";

/**
 * Time until the first collection, when all parts have started unless the API server is unreachable, and between checks while
 * the process is busy.
 */
const lookMs = 15_000;
/** After a collection. */
const periodMs = 120_000;
/** Share of busy time since the last check below which the process counts as idle: a busier one would have new garbage soon. */
const mostBusyShare = 0.2;
/** Collecting a larger heap takes more than 100 ms, and its content is probably in use. */
const largestBytes = 60 * 1024 * 1024;

interface IdleMemoryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Replaced by tests, as is `state`. */
  readonly collect?: () => void;
  readonly state?: () => { readonly utilization: number; readonly heapBytes: number };
}

/**
 * Runs garbage collection while the process is idle: after the start, then every two minutes. V8 would wait until the heap has
 * grown by 8 MB. Takes 0.05 % of a core.
 */
export async function keepIdleMemorySmall(options: IdleMemoryOptions): Promise<void> {
  const { clock, signal, collect = releaseMemory, state = newState() } = options;
  let waitMs = lookMs;
  while (!signal.aborted) {
    await clock.sleep(waitMs, signal).catch(() => {});
    const { utilization, heapBytes } = state();
    const isIdle = utilization <= mostBusyShare && heapBytes <= largestBytes;
    if (isIdle && !signal.aborted) collect();
    waitMs = isIdle ? periodMs : lookMs;
  }
}

function newState(): NonNullable<IdleMemoryOptions["state"]> {
  const utilization = newUtilization();
  return () => ({ utilization: utilization(), heapBytes: process.memoryUsage().heapUsed });
}
