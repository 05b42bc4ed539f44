import { isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { decodeContinueToken } from "../storage/continue-token.ts";
import type { StorageMetrics } from "../storage/metrics.ts";
import { OwnWrites } from "../storage/own-writes.ts";
import type {
  DeleteRequest,
  Entry,
  ListRequest,
  ListResult,
  ReadOptions,
  Storage,
  UpdateOptions,
  WatchRequest,
  WatchStream,
  WriteOptions,
} from "../storage/storage.ts";
import type { WatchPace } from "../storage/watch-queue.ts";
import type { BookmarkClock } from "./bookmarks.ts";
import { CacheReaders } from "./cache-readers.ts";
import { CacheState, type PageRequest, retirePrevious } from "./cache-state.ts";
import type { PastChange } from "./change-source.ts";
import { Freshness } from "./freshness.ts";
import { Change, type HistoryMemory } from "./history.ts";
import type { WatchMultiplexer } from "./multiplexer.ts";

/** Methods of the underlying store that the cache needs besides `Storage`. */
export interface CachedStore extends Storage {
  /**
   * Decodes a stored value, synchronously unless a KMS has to decrypt it.
   * @returns undefined for a value that cannot be decoded @throws when decoding fails temporarily
   */
  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined>;
  /** Pages through all objects. @param revision 0: the current one. @returns the revision of the list */
  readAll(onPage: (entries: Entry[]) => void, revision?: number, onUnreadable?: (key: string) => void): Promise<number>;
}

interface WatchCacheOptions {
  store: CachedStore;
  multiplexer: WatchMultiplexer;
  /** Folder below the prefix: `services/specs`. */
  folder: string;
  /** Plural name, for logs and metrics. */
  resource: string;
  /** Selectable fields that objects and watchers are indexed by. */
  indexes?: readonly string[];
  bookmarks: BookmarkClock;
  /** Undefined: readers of watches never wait. */
  pace?: WatchPace | undefined;
  /** How long a read waits for a revision that has not arrived, and for the initial list. */
  readTimeoutMs?: number;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics | undefined;
  turns: Turns;
  histories: HistoryMemory;
  /**
   * The revision up to which etcd was compacted. Lists of older revisions are left to etcd, which rejects them: they expire at the same
   * time on every server, cached or not.
   */
  compacted(): number;
}

const defaultReadTimeoutMs = 3_000;
const retryMs = 500;
/** Decoding more bytes may take longer than a turn's share of work. */
const longBytes = 64 * 1024;

/** Creates a cache, attaches it to the multiplexer and begins to fill it. */
export function newWatchCache(options: WatchCacheOptions): WatchCache {
  const cache = new WatchCache(options);
  cache.start();
  return cache;
}

/**
 * In-memory cache of one resource in front of its store: current state, recent changes, watchers. Reads are answered from
 * memory whenever that is as consistent as reading etcd. Writes go to the store, with the cached object as the suggestion.
 * Source: k8s.io/apiserver pkg/storage/cacher/cacher.go; KEP-2340 for consistent reads
 */
export class WatchCache implements Storage {
  readonly cached = true;
  readonly #options: WatchCacheOptions;
  readonly #state: CacheState;
  readonly #freshness: Freshness;
  readonly #readers: CacheReaders;
  readonly #own: OwnWrites;
  /** Changes received while the list is being read. */
  #early: { key: string; value: Buffer | undefined; revision: number }[] = [];
  #fillings = 0;
  #stopped = false;
  #detach = (): void => {};

  constructor(options: WatchCacheOptions) {
    const { multiplexer, clock, metrics, resource } = options;
    this.#options = options;
    const state = new CacheState({
      indexes: options.indexes ?? [],
      memory: options.histories,
      clock,
      resized: (capacity, before) => metrics?.cacheCapacity(resource, capacity, before),
    });
    const freshness = new Freshness({
      multiplexer,
      listed: () => state.listed,
      timeoutMs: options.readTimeoutMs ?? defaultReadTimeoutMs,
      clock,
    });
    this.#state = state;
    this.#freshness = freshness;
    this.#own = new OwnWrites(() => freshness.revision());
    this.#readers = new CacheReaders(options, {
      isReady: () => freshness.isReady,
      readyInTime: () => freshness.readyInTime(),
      reachedExisting: (revision) => freshness.reachedExisting(revision),
      historyStart: () => multiplexer.restoredAt,
      upToDate: () => freshness.upToDate(),
      revision: () => freshness.revision(),
      present: (request) => this.#present({ prefix: request.prefix, ...selectionOf(request) }, "").entries,
      changesAfter: (revision) => state.history.after(revision),
    });
  }

  start(): void {
    this.#detach = this.#options.multiplexer.attach(this.#options.folder, {
      apply: (key, value, revision) => this.#receive(key, value, revision),
      past: (after, changes) => this.#prependPast(after, changes),
      reset: () => this.#reset(),
    });
    void this.#fill();
  }

  stop(): void {
    this.#stopped = true;
    this.#freshness.end();
    this.#detach();
    this.#readers.end();
  }

  get ready(): boolean {
    return this.#freshness.isReady;
  }

  /** Resolves when the initial list is loaded. */
  whenReady(): Promise<void> {
    return this.#freshness.whenReady();
  }

  async get(key: string, read: ReadOptions = {}): Promise<Entry | undefined> {
    const { minimumRevision } = read;
    const freshness = this.#freshness;
    const fromMemory =
      minimumRevision === undefined
        ? await freshness.upToDate()
        : minimumRevision === 0
          ? await freshness.readyInTime()
          : await freshness.notOlderThan(minimumRevision);
    return fromMemory && !this.#state.isUnreadable(key) ? this.#state.get(key) : this.#options.store.get(key, read);
  }

  async list(request: ListRequest): Promise<ListResult> {
    const { store } = this.#options;
    const freshness = this.#freshness;
    if (request.continueToken) {
      const token = decodeContinueToken(request.continueToken);
      if (token.revision < 0) return (await freshness.upToDate()) ? this.#present(request, token.start) : store.list(request);
      return this.#past(request, token.start, token.revision) ?? store.list(request);
    }
    const wanted = request.revision;
    if (wanted === undefined) {
      const isPresent = (await freshness.upToDate()) && this.#state.isWhole(request.prefix);
      return isPresent ? this.#present(request, "") : store.list(request);
    }
    // Upstream's watch cache does not page: a limit with resourceVersion 0 returns everything, and reflectors depend on it.
    if (wanted === 0) {
      const whole = { ...request, limit: 0 };
      // While the cache is filled, reading the same from etcd once more for each reader would only take longer.
      return (await freshness.readyInTime()) ? this.#present(whole, "") : store.list(whole);
    }
    if (request.match === "Exact" || (request.limit && request.match === undefined)) {
      if (wanted > freshness.revision()) await freshness.notOlderThan(wanted);
      return this.#past(request, "", wanted) ?? store.list(request);
    }
    return (await freshness.notOlderThan(wanted)) ? this.#present(request, "") : store.list(request);
  }

  watch(request: WatchRequest): Promise<WatchStream> {
    return this.#readers.watch(request);
  }

  async currentRevision(): Promise<number> {
    return (await this.#freshness.upToDate()) ? this.#freshness.revision() : this.#options.store.currentRevision();
  }

  async count(): Promise<number> {
    return this.ready ? this.#state.size : this.#options.store.count();
  }

  create(key: string, object: KubeObject, write: WriteOptions = {}): Promise<Entry> {
    return this.#options.store.create(key, object, { ...write, ...this.#sharing });
  }

  guaranteedUpdate(key: string, change: Parameters<Storage["guaranteedUpdate"]>[1], update: UpdateOptions = {}): Promise<Entry> {
    const suggestion = update.suggestion ?? this.#known(key);
    return this.#options.store.guaranteedUpdate(key, change, { ...update, ...this.#sharing, suggestion });
  }

  delete(key: string, request: DeleteRequest = {}): Promise<Entry> {
    return this.#options.store.delete(key, { ...request, suggestion: request.suggestion ?? this.#known(key) });
  }

  async #fill(): Promise<void> {
    const { store, multiplexer, clock, log, metrics, resource } = this.#options;
    const filling = ++this.#fillings;
    const isSuperseded = (): boolean => this.#stopped || filling !== this.#fillings;
    for (let attempts = 1; !isSuperseded(); attempts++) {
      const entries: Entry[] = [];
      const unreadable = new Set<string>();
      try {
        const onPage = (page: Entry[]): void => {
          for (const entry of page) entries.push(entry);
        };
        // List at the watch's start revision, so that `#prependPast` can prepend the earlier changes. When the watch has
        // advanced since, list at the current revision: the changes in between were not delivered to this cache.
        const start = multiplexer.revision === multiplexer.startRevision ? multiplexer.startRevision : 0;
        const at = await store.readAll(onPage, filling === 1 && attempts === 1 ? start : 0, (key) => unreadable.add(key));
        if (isSuperseded()) return;
        metrics?.initialEvents(resource, entries.length);
        this.#state.reset(entries, unreadable, at);
        // Changes that arrive during the await are appended to `#early` and processed in order.
        for (let early = this.#early.shift(); early !== undefined; early = this.#early.shift()) {
          const busy = this.#take(early.key, early.value, early.revision);
          if (busy === undefined) continue;
          await busy;
          if (isSuperseded()) return;
        }
        this.#freshness.setReady();
        return;
      } catch (err) {
        if (isResourceExpired(err)) continue; // compacted meanwhile; the next attempt lists at the current revision
        log.error("cannot read all objects to fill the cache", err, { resource });
        await clock.sleep(retryMs).catch(() => {});
      }
    }
  }

  #receive(key: string, value: Buffer | undefined, revision: number): void | Promise<void> {
    if (this.ready) return this.#take(key, value, revision);
    this.#early.push({ key, value: value === undefined ? undefined : Buffer.from(value), revision });
  }

  #take(key: string, value: Buffer | undefined, revision: number): void | Promise<void> {
    if (revision <= this.#state.listed) return;
    if (value === undefined) return this.#change(key, undefined, revision, true);
    // For watchers an object that cannot be decoded counts as deleted. When decoding fails only temporarily, the throw makes
    // the multiplexer reset this cache: it is filled again and watchers resume.
    const decoded = this.#own.take(key, value, revision) ?? this.#decode(key, value, revision);
    if (!(decoded instanceof Promise)) return this.#change(key, decoded, revision, decoded !== undefined);
    const filling = this.#fillings;
    return decoded.then((entry) => {
      // A refill that began meanwhile includes this change.
      if (filling === this.#fillings) this.#change(key, entry, revision, entry !== undefined);
    });
  }

  /** Large values that arrive together are decoded in a turn each, before other long work: no cache gets later changes before this one. */
  #decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined> {
    const { store, turns } = this.#options;
    const turn = value.length > longBytes ? turns.ahead.next(value.length) : undefined;
    return turn === undefined ? store.decode(key, value, revision) : turn.then(() => store.decode(key, value, revision));
  }

  #change(key: string, current: Entry | undefined, revision: number, isReadable: boolean): void {
    const change = this.#state.apply(key, current, revision, isReadable);
    if (change === undefined) return;
    this.#readers.dispatch(change);
    retirePrevious(change);
    this.#options.metrics?.dispatched(this.#options.resource);
  }

  /** Prepends the changes just before the list to the history, for watches that began before this process did. */
  async #prependPast(after: number, past: readonly PastChange[]): Promise<void> {
    const { store, multiplexer } = this.#options;
    const { history, listed } = this.#state;
    const isUsable = (): boolean =>
      this.ready && history.start === listed && this.#state.listed === listed && listed === multiplexer.startRevision;
    const older: Change[] = [];
    const latest = new Map<string, Entry | undefined>();
    for (const { key, value, revision, previous } of past) {
      await this.#options.turns.next();
      if (!isUsable()) return;
      let before = latest.get(key);
      if (!latest.has(key) && previous !== undefined) {
        before = cooled(await store.decode(key, previous.value, previous.revision));
      }
      const present = this.#state.get(key);
      let current: Entry | undefined;
      if (value !== undefined) {
        current = present?.revision === revision ? present : cooled(await store.decode(key, value, revision));
      }
      latest.set(key, current);
      if (before !== undefined || current !== undefined) older.push(new Change(key, revision, before, current));
    }
    if (isUsable()) history.prepend(after, older);
  }

  /**
   * The watch lost changes. Watchers are ended; they resume with their last revision, which the new history rejects as too old.
   */
  #reset(): void {
    this.#freshness.invalidate();
    this.#early = [];
    this.#own.clear();
    this.#readers.end();
    void this.#fill();
  }

  #present(request: PageRequest, start: string): ListResult {
    const { metrics, folder } = this.#options;
    const result = this.#state.present(request, start, this.#freshness.revision());
    if (metrics !== undefined) {
      const { field, count } = this.#state.examined(request);
      metrics.cacheList(`/${folder}`, field === undefined ? "" : `f:${field}`, count, result.entries.length);
    }
    return result;
  }

  /** @returns undefined when the history does not reach back to `revision`, or etcd no longer has it */
  #past(request: PageRequest, start: string, revision: number): ListResult | undefined {
    if (!this.ready || revision > this.#freshness.revision() || revision < this.#options.compacted()) return undefined;
    return this.#state.past(request, start, revision);
  }

  /** Makes the response and the watch event share one entry, so that it is decoded and encoded once. */
  get #sharing(): Pick<WriteOptions, "own"> {
    return this.ready ? { own: this.#own } : {};
  }

  #known(key: string): Entry | undefined {
    return this.ready ? this.#state.get(key) : undefined;
  }
}

function cooled(entry: Entry | undefined): Entry | undefined {
  entry?.cool();
  return entry;
}

function selectionOf(request: WatchRequest): Pick<ListRequest, "labels" | "fields"> {
  return {
    ...(request.labels !== undefined && { labels: request.labels }),
    ...(request.fields !== undefined && { fields: request.fields }),
  };
}
