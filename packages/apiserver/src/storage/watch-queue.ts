import { atEndOfTurn } from "@coxswain/apimachinery/clock/end-of-turn";
import type { Entry, WatchEvent, WatchStream } from "./storage.ts";

/**
 * One reader's events between the store and the connection: first the present state (taken from a shared list, not
 * copied into events before it is asked for) or what it missed, then what follows. Beyond `limit` waiting events the stream
 * ends: the reader is too slow, and a watch never leaves out events. It comes back with the last revision it saw.
 */
export class WatchQueue implements WatchStream {
  #limit: number;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.stop();
  readonly #onStop: (() => void) | undefined;
  #initial: readonly Entry[];
  #initialIndex = 0;
  /** One alone may stand in a list that is others' too; more are in a list of this reader's own. */
  #events: readonly WatchEvent[] = none;
  #ended = false;
  #wake: (() => void) | undefined;
  #overflowed = false;

  /** Keeps nothing of `options` itself: the list in it would live as long as the watch. */
  constructor(options: { initial?: readonly Entry[]; limit?: number; signal: AbortSignal; onStop?: () => void }) {
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

  /** True when it ended because the reader was too slow. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /** What the reader missed before it began; that it is much does not mean that the reader is slow. Takes over its argument. */
  catchUp(missed: WatchEvent[]): void {
    if (this.#ended || missed.length === 0) return;
    this.#limit += missed.length;
    this.#events = this.#events.length === 0 ? missed : this.#events.concat(missed);
    this.#wakeReader();
  }

  /**
   * @param alone a list of nothing but the event, which other readers may hold too: one each, at a thousand of them, is garbage
   * @returns false when the stream is over, also because this event did not fit
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

  /** What is queued is still delivered, then the error, then the end. */
  fail(error: Error): void {
    if (this.#ended) return;
    const event: WatchEvent = { type: "ERROR", error };
    this.#add(event, [event]);
    this.#finish();
  }

  /** What is queued is still delivered, then the end. */
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
    else (this.#events as WatchEvent[]).push(event);
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
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    atEndOfTurn(wake);
  }
}

const none: readonly never[] = [];
/** More than one answer of etcd brings in one turn of the loop (1,000 revisions), so that only a slow reader meets it. */
const defaultLimit = 2_048;
/** Events handed out at a time: the connection writes, and others get their turn. */
const mostAtOnce = 500;
