import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";

/** A sequence of events ordered by virtual time. */
export interface TimeLine {
  /** Virtual ms since the epoch. */
  now(): number;
  /** @param label description for traces */
  after(delayMs: number, label: string, fire: () => void): Timer;
  /** Adds a line to the trace. */
  note(line: string): void;
}

/** A process on a time line: its clock may be skewed, and none of its timers fires after its crash. */
export interface SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly alive: boolean;
  /** Cancels its timers. */
  crash(): void;
  /** @returns a function that removes the listener */
  onCrash(listener: () => void): () => void;
}

/** @param skewMs how far its time of day is ahead */
export function newProcess(line: TimeLine, name: string, skewMs = 0): SimulatedProcess {
  let alive = true;
  const started = line.now();
  const listeners = new Set<() => void>();
  const after = (delayMs: number, fire: () => void): Timer =>
    line.after(delayMs, `${name}: timer`, () => {
      if (alive) fire();
    });
  const clock: Clock = {
    now: () => line.now() + skewMs,
    monotonic: () => line.now() - started,
    after,
    every(periodMs, fire) {
      let timer: Timer;
      const arm = (): void => {
        timer = after(Math.max(1, periodMs), () => {
          arm();
          fire();
        });
      };
      arm();
      return { cancel: () => timer.cancel() };
    },
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          timer.cancel();
          reject(signal?.reason);
        };
        const timer = after(delayMs, () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
        signal?.addEventListener("abort", onAbort, { once: true });
      }),
  };
  return {
    name,
    clock,
    get alive() {
      return alive;
    },
    crash() {
      alive = false;
      for (const listener of [...listeners]) listener();
      listeners.clear();
    },
    onCrash(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
