import type { Clock } from "../process/clock/clock.ts";

interface ReconnectionOptions {
  /** The longest time, in ms, between the starts of two attempts; asked for before each wait. */
  readonly periodMs: () => number;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
}

/** Without an attempt for that many periods the next one is the first of another outage. */
const periodsOfOutage = 10;

/**
 * When those of a process who lost the server try to reach it again: all at the same moment, so that one attempt to connect serves them all, and
 * each half to whole period, so that the processes of a cluster are spread over it. An attempt that took longer than that, because packets were
 * dropped, is followed by the next one soon.
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
