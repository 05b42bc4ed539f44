import { atEndOfTurn } from "@coxswain/apimachinery/clock/end-of-turn";
import type { Entry, WatchEvent, WatchStream } from "./storage.ts";

/**
 * One reader's events between the store and the connection: first the present state (taken from a shared list, not
 * copied into events before it is asked for) or what it missed, then what follows. Beyond `limit` waiting events the stream
 * ends: the reader is too slow, and a watch never leaves out events. It comes back with the last revision it saw.
 */
export class WatchQueue implements WatchStream {
  #limit: number;
  readonly #onStop: (() => void) | undefined;
  #initial: readonly Entry[];
  #initialIndex = 0;
  #events: WatchEvent[] = [];
  #ended = false;
  #wake: (() => void) | undefined;
  #overflowed = false;

  constructor(options: { initial?: readonly Entry[]; limit?: number; signal: AbortSignal; onStop?: () => void }) {
    this.#initial = options.initial ?? [];
    this.#limit = options.limit ?? defaultLimit;
    this.#onStop = options.onStop;
    if (options.signal.aborted) this.#ended = true;
    else {
      const onAbort = (): void => this.stop();
      options.signal.addEventListener("abort", onAbort, { once: true });
      this.#removeAbort = () => options.signal.removeEventListener("abort", onAbort);
    }
  }

  #removeAbort: (() => void) | undefined;

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

  /** @returns false when the stream is over, also because this event did not fit. */
  push(event: WatchEvent): boolean {
    if (this.#ended) return false;
    if (this.#events.length >= this.#limit) {
      this.#overflowed = true;
      this.#events = [];
      this.#initial = [];
      this.#finish();
      return false;
    }
    // A list of its one event: pushed to an empty one, it gets room for a dozen more, at each of a thousand watchers.
    if (this.#events.length === 0) this.#events = [event];
    else this.#events.push(event);
    this.#wakeReader();
    return true;
  }

  /** What is queued is still delivered, then the error, then the end. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.#events.push({ type: "ERROR", error });
    this.#finish();
  }

  /** What is queued is still delivered, then the end. */
  end(): void {
    this.#finish();
  }

  take(): WatchEvent[] {
    if (this.#initialIndex < this.#initial.length) {
      const chunk = this.#initial.slice(this.#initialIndex, this.#initialIndex + mostAtOnce);
      this.#initialIndex += chunk.length;
      if (this.#initialIndex >= this.#initial.length) this.#initial = [];
      return chunk.map((entry) => ({ type: "ADDED", entry }));
    }
    if (this.#events.length > mostAtOnce) return this.#events.splice(0, mostAtOnce);
    const events = this.#events;
    this.#events = [];
    return events;
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
    this.#events = [];
    this.#initial = [];
    this.#finish();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    try {
      while (await this.ready()) yield* this.take();
    } finally {
      this.stop();
    }
  }

  #finish(): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#removeAbort?.();
      this.#removeAbort = undefined;
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

/** More than one answer of etcd brings in one turn of the loop (1,000 revisions), so that only a slow reader meets it. */
const defaultLimit = 2_048;
/** Events handed out at a time: the connection writes, and others get their turn. */
const mostAtOnce = 500;
