/**
 * A watch whose entries are converted. Events pass through directly as long as the conversion is synchronous; from the first
 * asynchronous one (a webhook call) on, they go through a queue that keeps their order.
 */
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import type { Entry, WatchEvent, WatchStream } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";

type See = (entries: readonly Entry[]) => Entry[] | Promise<Entry[]>;

export class ConvertedStream implements WatchStream {
  readonly #source: WatchStream;
  readonly #see: See;
  readonly #signal: AbortSignal;
  /** Created by the first asynchronous conversion; all later events go through it. */
  #queue: WatchQueue | undefined;

  constructor(source: WatchStream, see: See, signal: AbortSignal) {
    this.#source = source;
    this.#see = see;
    this.#signal = signal;
  }

  get ended(): boolean {
    return this.#queue?.ended ?? this.#source.ended;
  }

  take(): readonly WatchEvent[] {
    if (this.#queue !== undefined) return this.#queue.take();
    const events = this.#source.take();
    const seen = this.#seen(events);
    if (!(seen instanceof Promise)) return seen;
    this.#queue = new WatchQueue({ signal: this.#signal, onStop: () => this.#source.stop() });
    void this.#pump(this.#queue, seen);
    return [];
  }

  whenReady(wake: () => void): void {
    (this.#queue ?? this.#source).whenReady(wake);
  }

  /** May resolve to true although `take` then returns nothing: the first events need an asynchronous conversion. */
  ready(): Promise<boolean> {
    return (this.#queue ?? this.#source).ready();
  }

  stop(): void {
    this.#queue?.stop();
    this.#source.stop();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    try {
      while (await this.ready()) yield* this.take();
    } finally {
      this.stop();
    }
  }

  #seen(events: readonly WatchEvent[]): readonly WatchEvent[] | Promise<readonly WatchEvent[]> {
    const entries = events.flatMap((event) => ("entry" in event ? [event.entry] : []));
    if (entries.length === 0) return events;
    const put = (seen: readonly Entry[]): readonly WatchEvent[] => {
      if (seen.every((entry, i) => entry === entries[i])) return events; // the same array, so that watchers share encoded bytes
      const next = seen.values();
      return events.map((event) => ("entry" in event ? { ...event, entry: next.next().value! } : event));
    };
    const seen = this.#see(entries);
    return seen instanceof Promise ? seen.then(put) : put(seen);
  }

  async #pump(queue: WatchQueue, first: Promise<readonly WatchEvent[]>): Promise<void> {
    try {
      queue.catchUp([...(await first)]);
      while (await this.#source.ready()) {
        const events = this.#source.take();
        for (const event of await this.#seen(events)) if (!queue.push(event)) return this.#source.stop();
      }
      queue.end();
    } catch (err) {
      queue.fail(errorOf(err));
      this.#source.stop();
    }
  }
}
