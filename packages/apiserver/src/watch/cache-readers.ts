import { resourceExpired } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { StorageMetrics } from "../storage/metrics.ts";
import type { Entry, Storage, WatchRequest, WatchStream } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { CacheWatcher } from "./audience.ts";
import type { BookmarkClock } from "./bookmarks.ts";
import { newBroadcaster } from "./broadcaster.ts";
import type { Change } from "./change.ts";

/** The watchers of one cached resource. */
export interface CacheReaders {
  /** Watches from the store first when the cache's history does not reach back to the requested revision. */
  watch(request: WatchRequest): Promise<WatchStream>;
  dispatch(change: Change): void;
  /** Ends all watches; clients resume with the last revision that they saw. */
  end(): void;
}

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

/** The cache state that watches read. */
export interface Memory {
  isReady(): boolean;
  /**
   * Waits, for a limited time, until the cache is not older than `revision`.
   * @returns false when the cache is not ready @throws Timeout when the revision does not exist, or does not arrive in time
   */
  reachedExisting(revision: number): Promise<boolean>;
  /** Watches from revisions before this one are refused with 410: they belong to a history from before a restore of etcd. */
  historyStart(): number;
  /** Waits, for a limited time, for the initial list. @returns whether the cache is ready */
  readyInTime(): Promise<boolean>;
  /** Resolves true when everything written before the call is in the cache. */
  upToDate(): Promise<boolean>;
  revision(): number;
  /** The current entries that match the request. */
  present(request: WatchRequest): readonly Entry[];
  /** @returns undefined when the history does not reach back to `revision` */
  changesAfter(revision: number): readonly Change[] | undefined;
}

export function newCacheReaders(options: CacheReadersOptions, memory: Memory): CacheReaders {
  const { store, resource, log, metrics } = options;
  const broadcaster = newBroadcaster(options.indexes ?? []);
  /** Queues of watches that still read from the store. */
  const resuming = new Set<WatchQueue>();
  const bookmarks = options.bookmarks.readers<CacheWatcher>((watcher) => {
    if (memory.isReady()) watcher.bookmark(memory.revision());
  });

  async function watch(request: WatchRequest): Promise<WatchStream> {
    if (!request.revision) {
      const fromMemory = request.revision === undefined ? await memory.upToDate() : await memory.readyInTime();
      if (!fromMemory) return store.watch(request);
      return follow(newWatcher(request, memory.revision(), memory.present(request)), request);
    }
    // After a restore of etcd, a watch from a revision that does not exist yet would stay silent until
    // the store reaches it again.
    const isThere = await memory.reachedExisting(request.revision);
    if (request.revision < memory.historyStart())
      throw resourceExpired(`too old resource version: ${request.revision} (${memory.historyStart()})`);
    const missed = isThere ? memory.changesAfter(request.revision) : undefined;
    if (missed === undefined) return resume(request);
    const watcher = newWatcher(request, request.revision);
    watcher.catchUp(missed);
    return follow(watcher, request);
  }

  function newWatcher(request: WatchRequest, after: number, initial: readonly Entry[] = []): CacheWatcher {
    const queue = new WatchQueue({ initial, signal: request.signal, onStop: () => forget(watcher) });
    const watcher = new CacheWatcher(broadcaster.audienceOf(request), after, queue);
    return watcher;
  }

  function follow(watcher: CacheWatcher, { bookmarks: wanted, deadlineMs }: WatchRequest): WatchStream {
    if (watcher.queue.ended) return watcher.queue;
    broadcaster.add(watcher);
    if (wanted) bookmarks.add(watcher, deadlineMs);
    return watcher.queue;
  }

  function forget(watcher: CacheWatcher): void {
    broadcaster.remove(watcher);
    bookmarks.remove(watcher);
    if (watcher.queue.overflowed) {
      metrics?.terminatedWatcher(resource);
      log.warn("a watch was closed: its reader is too slow", { resource });
    }
  }

  /**
   * Watches etcd's own history where the cache's does not reach back (this process has just started), and switches over to
   * the cache between the first two revisions that both hold.
   */
  async function resume(request: WatchRequest): Promise<WatchStream> {
    const inner = new AbortController();
    let watcher: CacheWatcher | undefined;
    const queue = new WatchQueue({
      signal: request.signal,
      onStop: () => {
        inner.abort();
        resuming.delete(queue);
        if (watcher !== undefined) forget(watcher);
      },
    });
    if (queue.ended) return queue;
    resuming.add(queue);
    let source: WatchStream;
    try {
      source = await store.watch({ ...request, signal: inner.signal });
    } catch (err) {
      queue.stop();
      throw err;
    }
    void pump();
    return queue;

    async function pump(): Promise<void> {
      /**
       * Revision of the last event queued. More events of it may follow: deleting a lease deletes many objects at one revision.
       */
      let told = request.revision as number;
      try {
        while (await source.ready()) {
          for (const event of source.take()) {
            if (event.type !== "BOOKMARK" && event.type !== "ERROR" && event.entry.revision > told) {
              if (changeOver(told)) return;
              told = event.entry.revision;
            }
            if (!queue.push(event)) return;
          }
        }
        queue.end();
      } finally {
        source.stop();
      }
    }

    /** Switches over to the cache when its history reaches back to `after`. @param after all events up to here were queued */
    function changeOver(after: number): boolean {
      const missed = memory.isReady() ? memory.changesAfter(after) : undefined;
      if (missed === undefined) return false;
      watcher = new CacheWatcher(broadcaster.audienceOf(request), after, queue);
      resuming.delete(queue);
      watcher.catchUp(missed);
      follow(watcher, request);
      return true;
    }
  }

  return {
    watch,
    dispatch: broadcaster.dispatch,
    end() {
      for (const queue of [...broadcaster.all().map((watcher) => watcher.queue), ...resuming]) queue.end();
    },
  };
}
