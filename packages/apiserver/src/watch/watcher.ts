import { matches } from "../storage/selection.ts";
import type { Entry, WatchEvent, WatchRequest } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import type { Change } from "./change.ts";

/** One reader of a cache: which changes it sees, in which form, and its bounded queue. */
export class CacheWatcher {
  readonly request: WatchRequest;
  readonly queue: WatchQueue;
  /** Changes up to here are not for this reader: it knows them. */
  #after: number;
  readonly #prefix: string;
  readonly #selective: boolean;

  /** @param queue goes on with this one instead of a new one. */
  constructor(options: {
    request: WatchRequest;
    after: number;
    initial?: readonly Entry[];
    queue?: WatchQueue;
    onStop?: (watcher: CacheWatcher) => void;
  }) {
    const { request, after } = options;
    this.request = request;
    this.#after = after;
    this.#prefix = request.prefix;
    this.#selective = request.labels?.empty === false || request.fields?.empty === false;
    this.queue =
      options.queue ??
      new WatchQueue({ initial: options.initial ?? [], signal: request.signal, onStop: () => options.onStop?.(this) });
  }

  see(change: Change): void {
    const event = this.#eventOf(change);
    if (event !== undefined) this.queue.push(event);
  }

  /** What this reader sees of the changes that it missed, however many there are. */
  catchUp(missed: readonly Change[]): void {
    const events: WatchEvent[] = [];
    for (const change of missed) {
      const event = this.#eventOf(change);
      if (event !== undefined) events.push(event);
    }
    this.queue.catchUp(events);
  }

  #eventOf(change: Change): WatchEvent | undefined {
    if (change.revision <= this.#after) return undefined;
    if (this.#prefix !== "" && !this.#covers(change.key)) return undefined;
    const { previous, current } = change;
    if (!this.#selective) return change.event(previous !== undefined, current !== undefined);
    return change.event(
      previous !== undefined && matches(this.request, previous),
      current !== undefined && matches(this.request, current),
    );
  }

  /** True because every change up to `revision` was queued before. */
  bookmark(revision: number): void {
    if (revision >= this.#after && !this.queue.ended) this.queue.push({ type: "BOOKMARK", revision });
  }

  #covers(key: string): boolean {
    return this.#prefix.endsWith("/") ? key.startsWith(this.#prefix) : key === this.#prefix;
  }
}
