import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { isResourceExpired } from "@coxswain/apimachinery/errors/predicates";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/errors/status-error";
import { nextTurn } from "@coxswain/apimachinery/event-loop/next-turn";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { TransientMap } from "@coxswain/apimachinery/meta/transient-map";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { decodeContinueToken, encodeContinueToken } from "../storage/continue-token.ts";
import { cool, retire, warm } from "../storage/entry.ts";
import type { StorageMetrics } from "../storage/metrics.ts";
import { isSelective, matches } from "../storage/selection.ts";
import type {
  DeleteRequest,
  Entry,
  ListRequest,
  ListResult,
  ReadOptions,
  Selection,
  Storage,
  UpdateOptions,
  WatchRequest,
  WriteOptions,
} from "../storage/storage.ts";
import type { BookmarkClock } from "./bookmarks.ts";
import { newCacheReaders } from "./cache-readers.ts";
import { Change } from "./change.ts";
import type { ChangeFeed, PastChange } from "./feed.ts";
import { newFieldIndex } from "./field-index.ts";
import { newHistory } from "./history.ts";
import { picked } from "./picked.ts";
import { byKeyOrder, isInRange, lowerBound, newSortedEntries } from "./sorted-entries.ts";

/**
 * In-memory cache of one resource in front of its store: current state, recent changes, watchers. Reads are answered from
 * memory whenever that is as consistent as reading etcd. Writes go to the store, with the cached object as the suggestion.
 * Source: k8s.io/apiserver pkg/storage/cacher/cacher.go; KEP-2340 for consistent reads
 */
export interface WatchCache extends Storage {
  readonly ready: boolean;
  /** Resolves when the initial list is loaded. */
  whenReady(): Promise<void>;
  stop(): void;
}

/** What the cache needs of the underlying store besides `Storage`. */
export interface CachedStore extends Storage {
  /**
   * Decodes a stored value, synchronously unless a KMS has to decrypt it.
   * @returns undefined for a value that cannot be decoded @throws when decoding fails temporarily
   */
  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined>;
  /** Pages through all objects. @param revision 0: the current one. @returns the revision of the list */
  readAll(onPage: (entries: Entry[]) => void, revision?: number, onUnreadable?: (key: string) => void): Promise<number>;
}

export interface WatchCacheOptions {
  store: CachedStore;
  feed: ChangeFeed;
  /** Folder below the prefix: `services/specs`. */
  folder: string;
  /** Plural name, for logs and metrics. */
  resource: string;
  /** Selectable fields that objects and watchers are indexed by. */
  indexes?: readonly string[];
  bookmarks: BookmarkClock;
  /** How long a read waits for a revision that has not arrived, and for the initial list. */
  patienceMs?: number;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics | undefined;
}

const defaultPatienceMs = 3_000;
const retryMs = 500;
/** Limit of own writes whose events are outstanding; beyond it (the watch is interrupted) the oldest are decoded again. */
const mostOwn = 1_000;

/** Creates a cache, attaches it to the multiplexer and begins to fill it. */
export function newWatchCache(options: WatchCacheOptions): WatchCache {
  const { store, feed, clock, log, metrics, resource } = options;
  const patienceMs = options.patienceMs ?? defaultPatienceMs;
  const state = newSortedEntries();
  const index = newFieldIndex(options.indexes ?? []);
  const history = newHistory(clock, 0, (capacity, before) => metrics?.cacheCapacity(resource, capacity, before));
  /** Revision of the list that the state was loaded from. */
  let listed = 0;
  let ready = false;
  let stopped = false;
  let whenReady = Promise.withResolvers<void>();
  /** Changes received while the list is being read. */
  let early: { key: string; value: Buffer | undefined; revision: number }[] = [];
  let fillings = 0;
  /**
   * Keys of objects that cannot be decoded (another encryption key). Reads of them go to the store, whose error names the key.
   */
  const unreadable = new Set<string>();
  /** Entries written by this process whose events have not arrived, by revision. */
  const own = new TransientMap<number, Entry>();

  const readers = newCacheReaders(options, {
    isReady: () => ready,
    readyInTime,
    reachedExisting,
    historyStart: () => feed.restoredAt,
    upToDate,
    revision,
    present: (request) => present({ prefix: request.prefix, ...selectionOf(request) }, "").entries,
    changesAfter: (at) => history.after(at),
  });
  const detach = feed.attach(options.folder, { apply, past: learnPast, reset });
  void fill();

  async function fill(): Promise<void> {
    const mine = ++fillings;
    for (let attempts = 1; !stopped && mine === fillings; attempts++) {
      const entries: Entry[] = [];
      try {
        const onPage = (page: Entry[]): void => {
          for (const entry of page) entries.push(entry);
        };
        // List at the watch's start revision, so that `learnPast` can prepend the earlier changes. When the watch has
        // advanced since, list at the current revision: the changes in between were not delivered to this cache.
        const wanted = feed.revision === feed.startRevision ? feed.startRevision : 0;
        unreadable.clear();
        const at = await store.readAll(onPage, mine === 1 && attempts === 1 ? wanted : 0, (key) => unreadable.add(key));
        if (stopped || mine !== fillings) return;
        metrics?.initialEvents(resource, entries.length);
        state.reset(entries);
        index.reset(entries);
        history.reset(at);
        listed = at;
        // Changes that arrive during the await are appended to `early` and processed in order.
        for (let change = early.shift(); change !== undefined; change = early.shift()) {
          const busy = take(change.key, change.value, change.revision);
          if (busy === undefined) continue;
          await busy;
          if (stopped || mine !== fillings) return;
        }
        ready = true;
        whenReady.resolve();
        return;
      } catch (err) {
        if (isResourceExpired(err)) continue; // compacted meanwhile; the next attempt lists at the current revision
        log.error("cannot read all objects to fill the cache", err, { resource });
        await clock.sleep(retryMs).catch(() => {});
      }
    }
  }

  function apply(key: string, value: Buffer | undefined, at: number): void | Promise<void> {
    if (ready) return take(key, value, at);
    early.push({ key, value: value === undefined ? undefined : Buffer.from(value), revision: at });
  }

  function take(key: string, value: Buffer | undefined, at: number): void | Promise<void> {
    if (at <= listed) return;
    if (value === undefined) return change(key, undefined, at, true);
    // For watchers an object that cannot be decoded counts as deleted. When decoding fails only temporarily, the throw makes
    // the multiplexer reset this cache: it is filled again and watchers resume.
    const decoded = takeOwn(key, at) ?? store.decode(key, value, at);
    if (!(decoded instanceof Promise)) return change(key, decoded, at, decoded !== undefined);
    const filling = fillings;
    return decoded.then((entry) => {
      // A refill that began meanwhile includes this change.
      if (filling === fillings) change(key, entry, at, entry !== undefined);
    });
  }

  /** @param current undefined: deleted, or not `readable` */
  function change(key: string, current: Entry | undefined, at: number, readable: boolean): void {
    const previous = state.get(key);
    if (!readable) unreadable.add(key);
    else if (unreadable.size > 0) unreadable.delete(key);
    if (current === undefined) {
      if (previous === undefined) return;
      state.delete(key);
    } else {
      warm(current);
      state.set(current);
    }
    index.change(previous, current);
    const changed = new Change(key, at, previous, current);
    history.push(changed);
    readers.dispatch(changed);
    if (previous !== undefined) retire(previous);
    metrics?.dispatched(resource);
  }

  /** Prepends the changes just before the list to the history, for watches that began before this process did. */
  async function learnPast(after: number, past: readonly PastChange[]): Promise<void> {
    const usable = (): boolean => ready && history.start === listed && listed === feed.startRevision;
    const older: Change[] = [];
    const latest = new Map<string, Entry | undefined>();
    for (const { key, value, revision: at, previous } of past) {
      if (!usable()) return;
      let before = latest.get(key);
      if (!latest.has(key) && previous !== undefined) {
        before = cooled(await store.decode(key, previous.value, previous.revision));
      }
      const present = state.get(key);
      let current: Entry | undefined;
      if (value !== undefined) current = present?.revision === at ? present : cooled(await store.decode(key, value, at));
      latest.set(key, current);
      if (before !== undefined || current !== undefined) older.push(new Change(key, at, before, current));
      if (older.length % 100 === 99) await nextTurn();
    }
    if (usable()) history.prepend(after, older);
  }

  /**
   * The watch lost changes. Watchers are ended; they resume with their last revision, which the new history rejects as too old.
   */
  function reset(): void {
    // While the cache is not ready, callers already wait on the existing promise; keep it.
    if (ready) whenReady = Promise.withResolvers();
    ready = false;
    early = [];
    own.clear();
    readers.end();
    void fill();
  }

  function revision(): number {
    return Math.max(feed.revision, listed);
  }

  async function readyInTime(): Promise<boolean> {
    if (ready) return true;
    let timer: { cancel(): void } | undefined;
    const late = new Promise<void>((resolve) => {
      timer = clock.after(patienceMs, resolve);
    });
    await Promise.race([whenReady.promise, late]);
    timer?.cancel();
    return ready;
  }

  /** Resolves true when everything written before the call is in the cache. */
  async function upToDate(): Promise<boolean> {
    if (!ready && !(await readyInTime())) return false;
    const asked = feed.generation;
    return (await feed.fresh()) !== undefined && ready && asked === feed.generation;
  }

  /** Waits until the state is not older than `wanted`. @returns false when the store has to be read instead */
  async function notOlderThan(wanted: number): Promise<boolean> {
    if (!ready && !(await readyInTime())) return false;
    if (wanted <= revision()) return true;
    if (wanted <= ((await upToDate()) ? revision() : 0)) return true;
    if (await feed.reached(wanted, patienceMs)) return ready;
    throw tooLargeResourceVersion(wanted, revision(), 1);
  }

  /**
   * As `notOlderThan`, for watches that resume from `wanted`. A revision beyond the store's belongs to a history that is gone
   * (etcd was restored): waiting until the store reaches it again would skip the writes in between, so it is rejected.
   */
  async function reachedExisting(wanted: number): Promise<boolean> {
    if (wanted > revision()) {
      const stored = await feed.storedRevision();
      if (wanted > stored) throw tooLargeResourceVersion(wanted, stored, 0);
    }
    return notOlderThan(wanted);
  }

  async function get(key: string, read: ReadOptions = {}): Promise<Entry | undefined> {
    const { minimumRevision } = read;
    const fromMemory =
      minimumRevision === undefined ? await upToDate() : minimumRevision === 0 ? ready : await notOlderThan(minimumRevision);
    return fromMemory && !unreadable.has(key) ? state.get(key) : store.get(key, read);
  }

  async function list(request: ListRequest): Promise<ListResult> {
    if (request.continueToken) {
      const token = decodeContinueToken(request.continueToken);
      if (token.revision < 0) return (await upToDate()) ? present(request, token.start) : store.list(request);
      return past(request, token.revision, token.start) ?? store.list(request);
    }
    const wanted = request.revision;
    if (wanted === undefined) return (await upToDate()) && isWhole(request.prefix) ? present(request, "") : store.list(request);
    // Upstream's watch cache does not page: a limit with resourceVersion 0 returns everything, and reflectors depend on it.
    if (wanted === 0) return ready ? present({ ...request, limit: 0 }, "") : store.list({ ...request, limit: 0 });
    if (request.match === "Exact" || (request.limit && request.match === undefined)) {
      if (wanted > revision()) await notOlderThan(wanted);
      return past(request, wanted, "") ?? store.list(request);
    }
    return (await notOlderThan(wanted)) ? present(request, "") : store.list(request);
  }

  /** False when an object below the prefix cannot be decoded: a list must fail then instead of omitting it. */
  function isWhole(prefix: string): boolean {
    return unreadable.size === 0 || ![...unreadable].some((key) => key.startsWith(prefix));
  }

  function present(request: ListRequest, start: string): ListResult {
    const result = page(request, selected(request), start, revision());
    countList(request, result);
    return result;
  }

  function countList(request: ListRequest, { entries }: ListResult): void {
    if (metrics === undefined) return;
    const candidates = index.candidates(request.fields);
    const fetched = candidates?.keys.size ?? state.range(request.prefix).length;
    metrics.cacheList(`/${options.folder}`, candidates === undefined ? "" : `f:${candidates.field}`, fetched, entries.length);
  }

  /** The current entries that match the request; the same array until the next change. */
  function selected(request: ListRequest): Entry[] {
    const all = state.range(request.prefix);
    if (!isSelective(request)) return all;
    return picked(all, nameOf(request), () => {
      const candidates = index.candidates(request.fields);
      if (candidates === undefined) return all.filter((entry) => matches(request, entry));
      const some: Entry[] = [];
      for (const key of candidates.keys) {
        const entry = isInRange(key, request.prefix) ? state.get(key) : undefined;
        if (entry !== undefined && matches(request, entry)) some.push(entry);
      }
      return some.sort(byKeyOrder);
    });
  }

  /** @returns undefined when the history does not reach back to `at` */
  function past(request: ListRequest, at: number, start: string): ListResult | undefined {
    if (!ready || at > revision()) return undefined;
    const states = history.statesAt(at);
    if (states === undefined) return undefined;
    if (states.size === 0) return page(request, selected(request), start, at);
    const then = state.range(request.prefix).filter((entry) => !states.has(entry.key));
    for (const entry of states.values()) if (entry !== undefined && isInRange(entry.key, request.prefix)) then.push(entry);
    then.sort(byKeyOrder);
    return page(request, isSelective(request) ? then.filter((entry) => matches(request, entry)) : then, start, at);
  }

  /** @param all the entries that match the request, of which `start` and the limit select a page */
  function page(request: ListRequest, all: Entry[], start: string, at: number): ListResult {
    const from = start === "" ? 0 : lowerBound(all, request.prefix + start);
    const to = request.limit ? from + request.limit : all.length;
    const entries = from === 0 && to >= all.length ? all : picked(all, `${from}-${to}`, () => all.slice(from, to));
    if (to >= all.length) return { entries, revision: at };
    const last = entries[entries.length - 1] as Entry;
    return {
      entries,
      revision: at,
      continueToken: encodeContinueToken({ start: `${last.key.slice(request.prefix.length)}\0`, revision: at }),
      ...(!isSelective(request) && { remainingItemCount: all.length - to }),
    };
  }

  async function create(key: string, object: KubeObject, write: WriteOptions = {}): Promise<Entry> {
    const entry = await store.create(key, object, write);
    return write.dryRun ? entry : shared(entry);
  }

  async function guaranteedUpdate(
    key: string,
    change: Parameters<Storage["guaranteedUpdate"]>[1],
    update: UpdateOptions = {},
  ): Promise<Entry> {
    const entry = await store.guaranteedUpdate(key, change, { ...update, suggestion: update.suggestion ?? known(key) });
    return update.dryRun ? entry : shared(entry);
  }

  function remove(key: string, request: DeleteRequest = {}): Promise<Entry> {
    return store.delete(key, { ...request, suggestion: request.suggestion ?? known(key) });
  }

  /**
   * Shares one entry between the response and the watch event, so that it is decoded and encoded once: a written entry waits
   * for its event, unless the event has arrived already. Not for dry-run, whose entry is not stored.
   */
  function shared(entry: Entry): Entry {
    const present = known(entry.key);
    if (present?.revision === entry.revision) return present;
    if (ready && entry.revision > revision()) {
      own.set(entry.revision, entry);
      if (own.size > mostOwn) own.delete(Number(own.firstKey()));
    }
    return entry;
  }

  function takeOwn(key: string, at: number): Entry | undefined {
    const entry = own.get(at);
    if (entry === undefined) return undefined;
    own.delete(at);
    return entry.key === key ? entry : undefined;
  }

  const known = (key: string): Entry | undefined => (ready ? state.get(key) : undefined);

  return {
    cached: true,
    get ready() {
      return ready;
    },
    whenReady: () => whenReady.promise,
    create,
    get,
    list,
    guaranteedUpdate,
    delete: remove,
    watch: readers.watch,
    async currentRevision() {
      return (await upToDate()) ? revision() : store.currentRevision();
    },
    async count() {
      return ready ? state.size : store.count();
    },
    stop() {
      stopped = true;
      ready = false; // the state is not updated any more
      detach();
      readers.end();
    },
  };
}

/** Cache key of a selection of a list. It contains a line break, which page names do not. */
function nameOf({ labels, fields }: Selection): string {
  return `${labels ?? ""}\n${fields ?? ""}`;
}

function cooled(entry: Entry | undefined): Entry | undefined {
  if (entry !== undefined) cool(entry);
  return entry;
}

function selectionOf(request: WatchRequest): Pick<ListRequest, "labels" | "fields"> {
  return {
    ...(request.labels !== undefined && { labels: request.labels }),
    ...(request.fields !== undefined && { fields: request.fields }),
  };
}
