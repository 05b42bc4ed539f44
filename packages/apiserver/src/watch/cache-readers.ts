import { resourceExpired } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { StorageMetrics } from "../storage/metrics.ts";
import type { Entry, Storage, WatchRequest, WatchStream } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import type { BookmarkClock } from "./bookmarks.ts";
import { newBroadcaster } from "./broadcaster.ts";
import type { Change } from "./change.ts";
import { CacheWatcher } from "./watcher.ts";

/** Those who watch one resource in memory. */
export interface CacheReaders {
  /** Goes on from the store where the memory does not reach back. */
  watch(request: WatchRequest): Promise<WatchStream>;
  dispatch(change: Change): void;
  /** They come back with the last revision that they saw. */
  end(): void;
}

export interface CacheReadersOptions {
  readonly store: Pick<Storage, "watch">;
  /** Plural name, for logs and metrics. */
  readonly resource: string;
  /** Selectable fields by which watchers are found. */
  readonly indexes?: readonly string[];
  readonly bookmarks: BookmarkClock;
  readonly log: Logger;
  readonly metrics?: StorageMetrics | undefined;
}

/** What they read. */
export interface Memory {
  isReady(): boolean;
  /**
   * Waits for a while until it is not older than this.
   * @returns false when it is not there at all @throws Timeout for a revision that does not exist, or does not come in time
   */
  reachedExisting(revision: number): Promise<boolean>;
  /** Watches from before this revision would go on from a history that is gone. */
  historyStart(): number;
  /** Waits for a while. */
  readyInTime(): Promise<boolean>;
  /** True when everything written before the call is here. */
  upToDate(): Promise<boolean>;
  revision(): number;
  /** What the request takes of the present state. */
  present(request: WatchRequest): readonly Entry[];
  /** @returns undefined when it does not reach back so far */
  changesAfter(revision: number): readonly Change[] | undefined;
}

export function newCacheReaders(options: CacheReadersOptions, memory: Memory): CacheReaders {
  const { store, resource, log, metrics } = options;
  const broadcaster = newBroadcaster(options.indexes ?? []);
  /** Those that have not changed over from the store yet. */
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
    // From a revision that does not exist, after etcd was restored, nothing would be heard until there are as many again.
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
   * Goes on from etcd's own history where ours does not reach back (this process has just started), and changes over to
   * ours between the first two revisions that are in both.
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
      /** Of this revision there may be more to come: many objects that hung on one lease are deleted at once. */
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

    /** @param after all up to here was told */
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
