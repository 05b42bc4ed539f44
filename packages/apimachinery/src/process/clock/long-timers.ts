import type { Clock, Timer } from "./clock.ts";

const soonMs = 2_000;

interface Waiting {
  readonly dueMs: number;
  readonly fire: () => void;
  /** The clock's timer, once it is due soon. */
  timer: Timer | undefined;
}

/**
 * Timers for waits of minutes, of which there are thousands and most are cancelled. They are kept in buckets by second, which a
 * single periodic timer checks. A timer that is due soon moves to a timer of the clock, so that it is equally precise.
 */
export function newLongTimers(clock: Clock): Pick<Clock, "after"> {
  const buckets = new Map<number, Set<Waiting>>();
  let tick: Timer | undefined;
  /** The first second that was not checked yet. */
  let next = 0;

  const secondOf = (ms: number): number => Math.floor(ms / 1000);

  function begin(waiting: Waiting): void {
    waiting.timer = clock.after(waiting.dueMs - clock.monotonic(), waiting.fire);
  }

  function put(waiting: Waiting): void {
    const second = secondOf(waiting.dueMs);
    const bucket = buckets.get(second);
    if (bucket === undefined) buckets.set(second, new Set([waiting]));
    else bucket.add(waiting);
    if (tick !== undefined) return;
    next = secondOf(clock.monotonic());
    tick = clock.every(1_000, look);
  }

  function take(waiting: Waiting): void {
    const second = secondOf(waiting.dueMs);
    const bucket = buckets.get(second);
    if (bucket?.delete(waiting) && bucket.size === 0) forget(second);
  }

  function forget(second: number): void {
    buckets.delete(second);
    if (buckets.size > 0) return;
    tick?.cancel();
    tick = undefined;
  }

  /** Arms timers due before the next check, plus one second, as checks may be late. */
  function look(): void {
    const last = secondOf(clock.monotonic() + soonMs);
    for (; next <= last && buckets.size > 0; next++) {
      const bucket = buckets.get(next);
      if (bucket === undefined) continue;
      forget(next);
      for (const waiting of bucket) begin(waiting);
    }
  }

  return {
    after(delayMs, fire) {
      if (delayMs < 2 * soonMs) return clock.after(delayMs, fire);
      const waiting: Waiting = { dueMs: clock.monotonic() + delayMs, fire, timer: undefined };
      put(waiting);
      return {
        cancel() {
          if (waiting.timer === undefined) take(waiting);
          else waiting.timer.cancel();
        },
      };
    },
  };
}

/** One for each clock, which tests replace: thousands of requests are to share few real timers. */
const known = new WeakMap<Clock, Pick<Clock, "after">>();

/** The long timers shared by all users of a clock. */
export function longTimers(clock: Clock): Pick<Clock, "after"> {
  return known.getOrInsertComputed(clock, newLongTimers);
}
