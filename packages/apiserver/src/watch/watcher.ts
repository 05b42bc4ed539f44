import type { WatchEvent } from "../storage/storage.ts";
import type { WatchQueue } from "../storage/watch-queue.ts";
import type { Audience } from "./audience.ts";
import type { Change } from "./change.ts";

/** One reader of a cache: from where on it sees what its audience sees, and its bounded queue. */
export class CacheWatcher {
  readonly audience: Audience;
  readonly queue: WatchQueue;
  /** Changes up to here are not for this reader: it knows them. */
  readonly #after: number;

  constructor(audience: Audience, after: number, queue: WatchQueue) {
    this.audience = audience;
    this.#after = after;
    this.queue = queue;
  }

  /**
   * @param event what its audience sees of the change at `revision`
   * @param alone a list of nothing but it, for all of them
   */
  see(revision: number, event: WatchEvent, alone: readonly WatchEvent[]): void {
    if (revision > this.#after) this.queue.push(event, alone);
  }

  /** What this reader sees of the changes that it missed, however many there are. */
  catchUp(missed: readonly Change[]): void {
    const events: WatchEvent[] = [];
    for (const change of missed) {
      const event = change.revision > this.#after ? this.audience.eventOf(change) : undefined;
      if (event !== undefined) events.push(event);
    }
    this.queue.catchUp(events);
  }

  /** True because every change up to `revision` was queued before. */
  bookmark(revision: number): void {
    if (revision >= this.#after && !this.queue.ended) this.queue.push({ type: "BOOKMARK", revision });
  }
}
