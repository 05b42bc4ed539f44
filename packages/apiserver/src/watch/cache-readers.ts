import { resourceExpired } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { StorageMetrics } from "../storage/metrics.ts";
import type { Entry, Storage, WatchRequest, WatchStream } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import type { BookmarkClock, BookmarkReaders } from "./bookmarks.ts";
import type { CacheMemory } from "./cache-memory.ts";
import type { Change } from "./change.ts";
import { ResumedWatch } from "./resumed-watch.ts";
import { CacheWatcher } from "./watcher-group.ts";
import { newWatcherIndex } from "./watcher-index.ts";

export interface CacheReadersOptions {
  readonly store: Pick<Storage, "watch">;
  /** Plural name, for logs and metrics. */
  readonly resource: string;
  /** Selectable fields that watchers are indexed by. */
  readonly indexes?: readonly string[];
  readonly bookmarks: BookmarkClock;
  readonly log: Logger;
  readonly metrics?: StorageMetrics | undefined;
}

/** The watchers of one cached resource. */
export class CacheReaders {
  readonly #options: CacheReadersOptions;
  readonly #memory: CacheMemory;
  readonly #index: ReturnType<typeof newWatcherIndex>;
  readonly #bookmarks: BookmarkReaders<CacheWatcher>;
  /** Watches that still read from the store. */
  readonly #resumed = new Set<ResumedWatch>();

  constructor(options: CacheReadersOptions, memory: CacheMemory) {
    this.#options = options;
    this.#memory = memory;
    this.#index = newWatcherIndex(options.indexes ?? []);
    this.#bookmarks = options.bookmarks.readers<CacheWatcher>((watcher) => {
      if (memory.isReady()) watcher.bookmark(memory.revision());
    });
  }

  /**
   * Watches from the store first when the cache's history does not reach back to the requested revision.
   * @throws Expired for a revision from before a restore of etcd
   */
  async watch(request: WatchRequest): Promise<WatchStream> {
    const memory = this.#memory;
    if (!request.revision) {
      const fromMemory = request.revision === undefined ? await memory.upToDate() : await memory.readyInTime();
      if (!fromMemory) return this.#options.store.watch(request);
      return this.#follow(this.#newWatcher(request, memory.revision(), memory.present(request)), request);
    }
    // After a restore of etcd, a watch from a revision that does not exist yet would stay silent until
    // the store reaches it again.
    const isThere = await memory.reachedExisting(request.revision);
    if (request.revision < memory.historyStart())
      throw resourceExpired(`too old resource version: ${request.revision} (${memory.historyStart()})`);
    const missed = isThere ? memory.changesAfter(request.revision) : undefined;
    if (missed === undefined) return this.#resume(request, request.revision);
    const watcher = this.#newWatcher(request, request.revision);
    watcher.catchUp(missed);
    return this.#follow(watcher, request);
  }

  dispatch(change: Change): void {
    this.#index.dispatch(change);
  }

  /** Ends all watches; clients resume with the last revision that they saw. */
  end(): void {
    for (const { queue } of [...this.#index.all(), ...this.#resumed]) queue.end();
  }

  #newWatcher(request: WatchRequest, after: number, initial: readonly Entry[] = []): CacheWatcher {
    const queue = new WatchQueue({ initial, signal: request.signal, onStop: () => this.#forget(watcher) });
    const watcher = new CacheWatcher(this.#index.groupOf(request), after, queue);
    return watcher;
  }

  #follow(watcher: CacheWatcher, { bookmarks, deadlineMs }: WatchRequest): WatchStream {
    if (watcher.queue.ended) return watcher.queue;
    this.#index.add(watcher);
    if (bookmarks) this.#bookmarks.add(watcher, deadlineMs);
    return watcher.queue;
  }

  #forget(watcher: CacheWatcher): void {
    this.#index.remove(watcher);
    this.#bookmarks.remove(watcher);
    if (watcher.queue.overflowed) {
      this.#options.metrics?.terminatedWatcher(this.#options.resource);
      this.#options.log.warn("a watch was closed: its reader is too slow", { resource: this.#options.resource });
    }
  }

  async #resume(request: WatchRequest, after: number): Promise<WatchStream> {
    let watcher: CacheWatcher | undefined;
    const resumed = new ResumedWatch({
      store: this.#options.store,
      request,
      after,
      onStop: () => {
        this.#resumed.delete(resumed);
        if (watcher !== undefined) this.#forget(watcher);
      },
      switchOver: (seen) => {
        const missed = this.#memory.isReady() ? this.#memory.changesAfter(seen) : undefined;
        if (missed === undefined) return false;
        watcher = new CacheWatcher(this.#index.groupOf(request), seen, resumed.queue);
        this.#resumed.delete(resumed);
        watcher.catchUp(missed);
        this.#follow(watcher, request);
        return true;
      },
    });
    if (resumed.queue.ended) return resumed.queue;
    this.#resumed.add(resumed);
    await resumed.start();
    return resumed.queue;
  }
}
