import type { Clock } from "@coxswain/apimachinery/clock/clock";

interface Waiter {
  readonly revision: number;
  resolve(reached: boolean): void;
}

/** The revision up to which the caches have applied every change, and the readers that wait for a later one. */
export class AppliedRevision {
  readonly #clock: Clock;
  #value = 0;
  #waiters: Waiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get value(): number {
    return this.#value;
  }

  /** Resolves those who wait for `revision` or an earlier one. The value never decreases here. */
  advance(revision: number): void {
    this.#value = Math.max(revision, this.#value);
    if (this.#waiters.length === 0) return;
    const still: Waiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.revision <= revision) waiter.resolve(true);
      else still.push(waiter);
    }
    this.#waiters = still;
  }

  /** Sets the value, also to an earlier one, and resolves nobody: the caches do not hold this revision yet. */
  restartAt(revision: number): void {
    this.#value = revision;
  }

  /** Resolves true as soon as `wanted` is reached, false after `timeoutMs` or when stopped. */
  reached(wanted: number, timeoutMs: number): Promise<boolean> {
    if (wanted <= this.#value) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        revision: wanted,
        resolve(reached) {
          timer.cancel();
          resolve(reached);
        },
      };
      const timer = this.#clock.after(timeoutMs, () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve(false);
      });
      this.#waiters.push(waiter);
    });
  }

  /** Resolves all waiters with false. */
  stop(): void {
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters = [];
  }
}
