import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { newUtilization, releaseMemory } from "@coxswain/apimachinery/process/memory/start-memory";

/** After the start, by when all parts have started unless the API server is away, and after a look at which the process was busy. */
const lookMs = 15_000;
/** After a collection. */
const periodMs = 120_000;
/** Of the time since the last look. A busier process has garbage again soon. */
const mostBusyShare = 0.2;
/** A larger heap takes longer than 100 ms, and has reasons to be large. */
const largestBytes = 60 * 1024 * 1024;

interface IdleMemoryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Replaced by tests, as is `state`. */
  readonly collect?: () => void;
  readonly state?: () => { readonly utilization: number; readonly heapBytes: number };
}

/**
 * Gives back memory while the process is idle: what the start took, then the garbage of two minutes. V8 would wait until the heap has grown
 * by 8 MB. Takes 0.05 % of a core.
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
