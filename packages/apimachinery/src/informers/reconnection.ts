import type { Clock } from "../process/clock/clock.ts";

interface ReconnectionOptions {
  /** The longest time, in ms, between the starts of two attempts; called before each wait. */
  readonly periodMs: () => number;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
}

/** After that many periods without an attempt, the next one counts as the first of a new outage. */
const periodsOfOutage = 10;

/**
 * Schedules the attempts of a process's components to reach a lost server: all at the same moment, so that one connection serves them all, and
 * at intervals of half to one period, at random, which spreads the processes of a cluster. An attempt that took longer, because packets were
 * dropped, is soon followed by the next one.
 */
export class Reconnection {
  readonly #options: ReconnectionOptions;
  #next: Promise<void> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReconnectionOptions) {
    this.#options = options;
  }

  /** Resolves when it is time for an attempt. @throws the signal's reason */
  async wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#next ??= this.#waitForNext();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    await Promise.race([this.#next, aborted.promise]).finally(() => signal.removeEventListener("abort", abort));
  }

  async #waitForNext(): Promise<void> {
    const { clock, periodMs, random = Math.random } = this.#options;
    const [now, period] = [clock.monotonic(), periodMs()];
    const spreadMs = (period * (1 + random())) / 2;
    const isFirst = now - this.#lastAt > periodsOfOutage * period;
    await clock.sleep(isFirst ? spreadMs : Math.max(this.#lastAt + spreadMs - now, (period * random()) / 4));
    this.#lastAt = clock.monotonic();
    this.#next = undefined;
  }
}
