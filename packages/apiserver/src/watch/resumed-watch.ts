import type { Storage, WatchRequest, WatchStream } from "../storage/storage.ts";
import { type WatchPace, WatchQueue } from "../storage/watch-queue.ts";

interface ResumedWatchOptions {
  readonly store: Pick<Storage, "watch">;
  readonly pace: WatchPace | undefined;
  readonly request: WatchRequest;
  /** The client has seen all events up to this revision. */
  readonly after: number;
  /** The queue has ended, for whatever reason. */
  onStop(): void;
  /**
   * Continues the queue from the cache when its history reaches back to `seen`. @param seen all events up to here were queued
   * @returns false when the store has to be read on
   */
  switchOver(seen: number): boolean;
}

/**
 * Watches etcd's own history where the cache's does not reach back (this process has just started), and switches over to
 * the cache between the first two revisions that both hold.
 */
export class ResumedWatch {
  /** The queue that the client reads, before and after the switch. */
  readonly queue: WatchQueue;
  readonly #options: ResumedWatchOptions;
  readonly #source = new AbortController();

  constructor(options: ResumedWatchOptions) {
    this.#options = options;
    this.queue = new WatchQueue({
      signal: options.request.signal,
      pace: options.pace,
      onStop: () => {
        this.#source.abort();
        options.onStop();
      },
    });
  }

  /** Opens the store's watch and copies its events in the background. @throws the store's error, after it has ended the queue */
  async start(): Promise<void> {
    try {
      const { store, request } = this.#options;
      const source = await store.watch({ ...request, signal: this.#source.signal });
      void this.#copy(source);
    } catch (err) {
      this.queue.stop();
      throw err;
    }
  }

  async #copy(source: WatchStream): Promise<void> {
    /** Revision of the last event queued. More events of it may follow: deleting a lease deletes many objects at one revision. */
    let seen = this.#options.after;
    try {
      while (await source.ready()) {
        for (const event of source.take()) {
          if (event.type !== "BOOKMARK" && event.type !== "ERROR" && event.entry.revision > seen) {
            if (this.#options.switchOver(seen)) return;
            seen = event.entry.revision;
          }
          if (!this.queue.push(event)) return;
        }
      }
      this.queue.end();
    } finally {
      source.stop();
    }
  }
}
