import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import { EventHeap, type WorldEvent } from "./event-heap.ts";

/** The clock of a cluster: it owns every timer of the cluster's parts, so that all of them end with the cluster. */
export interface ClusterClock extends Clock {
  /** Number of timers that have fired; a change shows that something happened. */
  readonly fired: number;
  /** Cancels all timers; none fires any more. */
  stop(): void;
}

/** Real time. @param real the process's clock */
export function newTrackedClock(real: Clock): ClusterClock {
  return new TrackedClock(real);
}

/** Implements sleeps and periodic timers by single timers. */
abstract class TimerClock implements ClusterClock {
  fired = 0;
  protected isStopped = false;
  abstract now(): number;
  abstract monotonic(): number;
  abstract after(delayMs: number, fire: () => void): Timer;
  abstract stop(): void;

  every(periodMs: number, fire: () => void): Timer {
    let timer: Timer;
    const arm = (): void => {
      timer = this.after(Math.max(1, periodMs), () => {
        arm();
        fire();
      });
    };
    arm();
    return { cancel: () => timer.cancel() };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = this.after(delayMs, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}

class TrackedClock extends TimerClock {
  readonly #real: Clock;
  readonly #timers = new Set<Timer>();

  constructor(real: Clock) {
    super();
    this.#real = real;
  }

  now(): number {
    return this.#real.now();
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  after(delayMs: number, fire: () => void): Timer {
    return this.#track((fired) => this.#real.after(delayMs, fired), fire);
  }

  /** Keeps the process alive like the real clock's sleep, because a caller waits for it. */
  override sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const begin = (fired: () => void): Timer => {
        const handle = setTimeout(fired, delayMs);
        return { cancel: () => clearTimeout(handle) };
      };
      const timer = this.#track(begin, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #track(begin: (fired: () => void) => Timer, fire: () => void): Timer {
    if (this.isStopped) return { cancel() {} };
    const timers = this.#timers;
    const timer = begin(() => {
      timers.delete(timer);
      this.fired++;
      fire();
    });
    timers.add(timer);
    return {
      cancel() {
        timers.delete(timer);
        timer.cancel();
      },
    };
  }

  stop(): void {
    this.isStopped = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}

/** Time that only advances when told to. */
export class VirtualClock extends TimerClock {
  readonly #startMs: number;
  readonly #heap = new EventHeap();
  #now: number;
  #made = 0;

  /** @param startMs since the epoch */
  constructor(startMs: number) {
    super();
    this.#startMs = startMs;
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#startMs;
  }

  after(delayMs: number, fire: () => void): Timer {
    // Timers due at the same time fire in the order of their creation.
    const event: WorldEvent = { at: this.#now + Math.max(0, delayMs), rank: this.#made++, label: "", fire };
    if (!this.isStopped) this.#heap.push(event);
    return {
      cancel() {
        event.fire = undefined;
      },
    };
  }

  /** When the next timer is due, in ms since the epoch. */
  get nextDue(): number | undefined {
    for (;;) {
      const next = this.#heap.first;
      if (next === undefined) return undefined;
      if (next.fire !== undefined) return next.at;
      this.#heap.pop();
    }
  }

  /** Advances to `toMs` and fires the timers due by then that were set before this call. @returns whether any fired */
  moveTo(toMs: number): boolean {
    this.#now = Math.max(this.#now, toMs);
    const before = this.fired;
    const made = this.#made;
    for (let next = this.#heap.first; next !== undefined && next.at <= this.#now; next = this.#heap.first) {
      // Set by one of these timers; the work that they started must come first.
      if (next.rank >= made) break;
      this.#heap.pop();
      if (next.fire === undefined) continue;
      this.fired++;
      next.fire();
    }
    return this.fired > before;
  }

  stop(): void {
    this.isStopped = true;
    while (this.#heap.pop() !== undefined);
  }
}
