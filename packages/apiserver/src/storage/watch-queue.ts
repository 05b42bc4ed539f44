import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { atEndOfTurn } from "@coxswain/apimachinery/process/clock/end-of-turn";
import type { Entry, WatchEvent, WatchStream } from "./storage.ts";

/**
 * The events of one watcher between the store and the connection: first the current objects (from a shared list, converted to
 * events on demand) or the missed changes, then live events. When more than `limit` events are pending, the client is too
 * slow and the stream ends, since a watch never skips events. The client resumes with the last revision it saw.
 */
export class WatchQueue implements WatchStream {
  #limit: number;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.stop();
  readonly #onStop: (() => void) | undefined;
  #initial: readonly Entry[];
  #initialIndex = 0;
  /** With one element it may be an array shared with other watchers; with more it is owned by this queue. */
  #events: readonly WatchEvent[] = none;
  #ended = false;
  #wake: (() => void) | undefined;
  #overflowed = false;
  readonly #share: PaceShare | undefined;

  /** Does not retain `options`: its list would live as long as the watch. @param options.pace undefined: readers never wait */
  constructor(options: {
    initial?: readonly Entry[];
    limit?: number;
    signal: AbortSignal;
    onStop?: () => void;
    pace?: WatchPace | undefined;
  }) {
    this.#share = options.pace?.share(() => this.#wakeNow());
    this.#initial = options.initial ?? none;
    this.#limit = options.limit ?? defaultLimit;
    this.#onStop = options.onStop;
    this.#signal = options.signal;
    if (this.#signal.aborted) this.#ended = true;
    else this.#signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** True when the stream ended because the client was too slow. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /**
   * Queues missed events; raises the limit by their number, since a long backlog is not the client's slowness. Takes
   * ownership of `missed`.
   */
  catchUp(missed: WatchEvent[]): void {
    if (this.#ended || missed.length === 0) return;
    this.#limit += missed.length;
    this.#events = this.#events.length === 0 ? missed : this.#events.concat(missed);
    this.#wakeReader();
  }

  /**
   * @param alone an array of only `event` that watchers may share, which avoids one allocation per watcher
   * @returns false when the stream has ended, including by this event exceeding the limit
   */
  push(event: WatchEvent, alone: readonly WatchEvent[] = [event]): boolean {
    if (this.#ended) return false;
    if (this.#events.length >= this.#limit) {
      this.#overflowed = true;
      this.#events = none;
      this.#initial = none;
      this.#finish();
      return false;
    }
    this.#add(event, alone);
    this.#wakeReader();
    return true;
  }

  /** Queued events are still delivered, then the error, then the end. */
  fail(error: Error): void {
    if (this.#ended) return;
    const event: WatchEvent = { type: "ERROR", error };
    this.#add(event, [event]);
    this.#finish();
  }

  /** Queued events are still delivered, then the end. */
  end(): void {
    this.#finish();
  }

  take(): readonly WatchEvent[] {
    if (this.#initialIndex < this.#initial.length) {
      const chunk = this.#initial.slice(this.#initialIndex, this.#initialIndex + mostAtOnce);
      this.#initialIndex += chunk.length;
      if (this.#initialIndex >= this.#initial.length) this.#initial = none;
      return chunk.map((entry) => ({ type: "ADDED", entry }));
    }
    const events = this.#events;
    this.#events = events.length > mostAtOnce ? events.slice(mostAtOnce) : none;
    this.#share?.spend(events.length);
    return events.length > mostAtOnce ? events.slice(0, mostAtOnce) : events;
  }

  whenReady(wake: () => void): void {
    this.#wake = wake;
    if (this.#ended || this.#hasSome) this.#wakeReader();
  }

  ready(): Promise<boolean> {
    if (this.#hasSome || this.#ended) return Promise.resolve(this.#hasSome);
    return new Promise((resolve) => this.whenReady(() => resolve(this.#hasSome)));
  }

  get #hasSome(): boolean {
    return this.#initialIndex < this.#initial.length || this.#events.length > 0;
  }

  stop(): void {
    this.#events = none;
    this.#initial = none;
    this.#finish();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    try {
      while (await this.ready()) yield* this.take();
    } finally {
      this.stop();
    }
  }

  #add(event: WatchEvent, alone: readonly WatchEvent[]): void {
    const { length } = this.#events;
    if (length === 0) this.#events = alone;
    else if (length === 1) this.#events = [...this.#events, event];
    else (this.#events as WatchEvent[]).push(event); // cast: a list of two or more is the queue's own
  }

  #finish(): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#signal.removeEventListener("abort", this.#onAbort);
      this.#onStop?.();
    }
    this.#wakeReader();
  }

  #wakeReader(): void {
    if (this.#wake === undefined) return;
    const canWait = !this.#ended && this.#initial.length === 0 && this.#events.length < mostPaced;
    if (!canWait || this.#share === undefined || this.#share.mayWake()) this.#wakeNow();
  }

  #wakeNow(): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    atEndOfTurn(wake);
  }
}

/** Events of one watch that are delivered at once: this many in a burst, and {@link eventsPerSecond} on average. */
const burst = 20;
const eventsPerSecond = 120;
const tickMs = 20;
/** One delivery counts as at most this many events, so that events after a burst, such as the objects created at a start, are not delayed. */
const mostSpent = 4;
/**
 * Lower bound of the balance. A tick gives back 2.4 events, less than a delivery of many costs: such a watch is read at ticks
 * only, until it has had no events for 42 ms.
 */
const mostDebt = 4;

/**
 * Limits how often readers of watches are woken. A write to a connection costs more than the encoding of an event, so a watch with
 * more than 120 events a second gets those of 20 ms in one write; others are not delayed. Ticks are common to all watches,
 * so that watches with equal events still share their encoding.
 */
export class WatchPace {
  readonly #clock: Pick<Clock, "monotonic" | "after">;
  #waiting: (() => void)[] = [];
  readonly #tick = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  };

  constructor(clock: Pick<Clock, "monotonic" | "after">) {
    this.#clock = clock;
  }

  /** @param wake wakes the reader of one watch */
  share(wake: () => void): PaceShare {
    return new PaceShare(this, wake);
  }

  now(): number {
    return this.#clock.monotonic();
  }

  atNextTick(wake: () => void): void {
    if (this.#waiting.push(wake) === 1) this.#clock.after(tickMs, this.#tick);
  }
}

/** The part of one watch in a {@link WatchPace}. */
class PaceShare {
  readonly #pace: WatchPace;
  readonly #wake: () => void;
  /** Events that may be delivered at once; negative after many. */
  #left = burst;
  #countedAt: number;
  #isWaiting = false;

  constructor(pace: WatchPace, wake: () => void) {
    this.#pace = pace;
    this.#countedAt = pace.now();
    this.#wake = () => {
      this.#isWaiting = false;
      wake();
    };
  }

  /** Counts events that are delivered together. */
  spend(events: number): void {
    this.#left = Math.max(-mostDebt, this.#left - Math.min(events, mostSpent));
  }

  /** @returns false when the reader will be woken at the next tick instead */
  mayWake(): boolean {
    if (this.#isWaiting) return false;
    const now = this.#pace.now();
    this.#left = Math.min(burst, this.#left + ((now - this.#countedAt) / 1_000) * eventsPerSecond);
    this.#countedAt = now;
    if (this.#left >= 1) return true;
    this.#isWaiting = true;
    this.#pace.atNextTick(this.#wake);
    return false;
  }
}

const none: readonly never[] = [];
/**
 * More events than one etcd response delivers in one event-loop turn (1,000 revisions), so that only a slow client reaches the
 * limit.
 */
const defaultLimit = 2_048;
/** Events returned per `take`: the connection writes, then yields to others. */
const mostAtOnce = 500;
/** A reader with more events is woken without waiting for a tick, long before the limit. */
const mostPaced = 256;
