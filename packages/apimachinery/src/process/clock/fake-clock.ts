import { nextIteration } from "../event-loop/iterations.ts";
import type { Clock, Timer } from "./clock.ts";

/** A clock that only moves when a test advances it. */
export interface FakeClock extends Clock {
  /** Fires due timers in order of time and lets pending promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Same as `advance`, to a point in time. @param ms since the epoch */
  advanceTo(ms: number): Promise<void>;
  /** Steps the wall clock; neither `monotonic` nor timers follow. */
  setOn(ms: number): void;
  /** Number of pending timers and sleeps. */
  readonly waiting: number;
  /** Due time of the next timer in ms since the epoch; undefined without one. */
  readonly nextDue: number | undefined;
}

interface Entry {
  due: number;
  readonly order: number;
  readonly periodMs: number | undefined;
  readonly fire: () => void;
}

/** @param start ms since the epoch; default 2022-01-01T00:00:00Z */
export function newFakeClock(start = Date.UTC(2022, 0, 1)): FakeClock {
  let now = start;
  let setOnMs = 0;
  let counter = 0;
  const entries = new Set<Entry>();

  const add = (delayMs: number, periodMs: number | undefined, fire: () => void): Timer => {
    const entry: Entry = { due: now + Math.max(delayMs, 0), order: counter++, periodMs, fire };
    entries.add(entry);
    return { cancel: () => void entries.delete(entry) };
  };
  const next = (): Entry | undefined => {
    let first: Entry | undefined;
    for (const entry of entries) {
      if (first === undefined || entry.due < first.due || (entry.due === first.due && entry.order < first.order)) first = entry;
    }
    return first;
  };

  const advanceTo = async (target: number): Promise<void> => {
    await nextIteration();
    for (let entry = next(); entry !== undefined && entry.due <= target; entry = next()) {
      now = Math.max(now, entry.due);
      if (entry.periodMs === undefined) entries.delete(entry);
      else entry.due += entry.periodMs;
      entry.fire();
      await nextIteration();
    }
    now = Math.max(now, target);
  };

  return {
    now: () => now + setOnMs,
    monotonic: () => now - start,
    after: (delayMs, fire) => add(delayMs, undefined, fire),
    every: (periodMs, fire) => add(Math.max(periodMs, 1), Math.max(periodMs, 1), fire),
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          timer.cancel();
          reject(signal?.reason);
        };
        const timer = add(delayMs, undefined, () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
        signal?.addEventListener("abort", onAbort, { once: true });
      }),
    advance: (ms) => advanceTo(now + ms),
    advanceTo,
    setOn(ms) {
      setOnMs += ms;
    },
    get waiting() {
      return entries.size;
    },
    get nextDue() {
      return next()?.due;
    },
  };
}
