/** A pending timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

/** Source of time and timers, passed to everything that waits, so that tests can replace it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for measuring durations. */
  monotonic(): number;
  /** Calls `fire` once, `delayMs` from now. The timer does not keep the process alive. */
  after(delayMs: number, fire: () => void): Timer;
  /** Calls `fire` every `periodMs`, first one period from now. The timer does not keep the process alive. */
  every(periodMs: number, fire: () => void): Timer;
  /** Resolves after `delayMs`; rejects with the signal's reason when it is aborted first. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Node turns longer delays into 1 ms. */
const longestTimerMs = 2 ** 31 - 1;

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.min(Math.max(delayMs, 0), longestTimerMs));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  every(periodMs, fire) {
    const timer = setInterval(fire, Math.min(Math.max(periodMs, 1), longestTimerMs));
    timer.unref();
    return { cancel: () => clearInterval(timer) };
  },
  sleep(delayMs, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
        Math.min(Math.max(delayMs, 0), longestTimerMs),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  },
};
