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
 * One resource in memory, in front of its store: present state, recent changes, readers. Reads are answered from here
 * whenever that is as consistent as asking etcd; writes go to the store, beginning with what is known here.
 * Source: k8s.io/apiserver pkg/storage/cacher/cacher.go; KEP-2340 for consistent reads
 */
export interface WatchCache extends Storage {
  readonly ready: boolean;
  /** Resolves when the first list is in. */
  whenReady(): Promise<void>;
  stop(): void;
}

/** What the cache needs of the store below it besides `Storage`. */
export interface CachedStore extends Storage {
  /** At once but for values that a KMS has to open. @returns undefined for one that cannot be read @throws when it cannot for now */
  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined>;
  readAll(onPage: (entries: Entry[]) => void, revision?: number, onUnreadable?: (key: string) => void): Promise<number>;
}

export interface WatchCacheOptions {
  store: CachedStore;
  feed: ChangeFeed;
  /** `services/specs` */
  folder: string;
  /** Plural name, for logs and metrics. */
  resource: string;
  /** Selectable fields by which objects and watchers are found. */
  indexes?: readonly string[];
  bookmarks: BookmarkClock;
  /** How long a read waits for a revision that has not come, and for a cache that is being filled. */
  patienceMs?: number;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics | undefined;
}

const defaultPatienceMs = 3_000;
const retryMs = 500;
/** Own writes on their way back; beyond it (the feed is interrupted) the oldest are decoded again. */
const mostOwn = 1_000;

export function newWatchCache(options: WatchCacheOptions): WatchCache {
  const { store, feed, clock, log, metrics, resource } = options;
  const patienceMs = options.patienceMs ?? defaultPatienceMs;
  const state = newSortedEntries();
  const index = newFieldIndex(options.indexes ?? []);
  const history = newHistory(clock, 0, (capacity, before) => metrics?.cacheCapacity(resource, capacity, before));
  /** Revision of the list that the state began with. */
  let listed = 0;
  let ready = false;
  let stopped = false;
  let whenReady = Promise.withResolvers<void>();
  /** Changes that came while the list was read. */
  let early: { key: string; value: Buffer | undefined; revision: number }[] = [];
  let fillings = 0;
  /** Objects that cannot be read (another encryption key): who asks for one gets the store's error, which names it. */
  const unreadable = new Set<string>();
  /** Entries written here whose events have not come back, by revision. */
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

  // ---- filling and following

  async function fill(): Promise<void> {
    const mine = ++fillings;
    for (let attempts = 1; !stopped && mine === fillings; attempts++) {
      const entries: Entry[] = [];
      try {
        const onPage = (page: Entry[]): void => {
          for (const entry of page) entries.push(entry);
        };
        // At the revision where the feed began, because then the past can be put before it; unless the feed has gone on since,
        // and nobody was told of what is in between.
        const wanted = feed.revision === feed.startRevision ? feed.startRevision : 0;
        unreadable.clear();
        const at = await store.readAll(onPage, mine === 1 && attempts === 1 ? wanted : 0, (key) => unreadable.add(key));
        if (stopped || mine !== fillings) return;
        metrics?.initialEvents(resource, entries.length);
        state.reset(entries);
        index.reset(entries);
        history.reset(at);
        listed = at;
        // What comes while one of these is waited for stands behind them.
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
        if (isResourceExpired(err)) continue; // compacted since: the next time what is there then is read
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
    // To watchers an object that cannot be read is gone. One that cannot be read for now is a hole: the cache is filled anew
    // when it can be, and watchers go on where they were.
    const decoded = takeOwn(key, at) ?? store.decode(key, value, at);
    if (!(decoded instanceof Promise)) return change(key, decoded, at, decoded !== undefined);
    const filling = fillings;
    return decoded.then((entry) => {
      // A list that was begun meanwhile has it.
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

  /** The changes just before the list, so that watches from before this process began find them here. */
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

  /** History was lost: readers come back with their last revision, which the new history says is too old. */
  function reset(): void {
    // Who waits for the first list goes on to wait.
    if (ready) whenReady = Promise.withResolvers();
    ready = false;
    early = [];
    own.clear();
    readers.end();
    void fill();
  }

  // ---- how new is what is known here

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

  /** True when everything written before the call is here. */
  async function upToDate(): Promise<boolean> {
    if (!ready && !(await readyInTime())) return false;
    const asked = feed.generation;
    return (await feed.fresh()) !== undefined && ready && asked === feed.generation;
  }

  /** Waits until the state is not older than `wanted`. @returns false when the store has to be read instead. */
  async function notOlderThan(wanted: number): Promise<boolean> {
    if (!ready && !(await readyInTime())) return false;
    if (wanted <= revision()) return true;
    if (wanted <= ((await upToDate()) ? revision() : 0)) return true;
    if (await feed.reached(wanted, patienceMs)) return ready;
    throw tooLargeResourceVersion(wanted, revision(), 1);
  }

  /**
   * As `notOlderThan`, for who goes on from `wanted`: a revision that the store has not reached is of a history that is gone,
   * and to wait until there are as many again would be to miss what was written meanwhile.
   */
  async function reachedExisting(wanted: number): Promise<boolean> {
    if (wanted > revision()) {
      const stored = await feed.storedRevision();
      if (wanted > stored) throw tooLargeResourceVersion(wanted, stored, 0);
    }
    return notOlderThan(wanted);
  }

  // ---- reads

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
    // Upstream's cache knows no pages, so a limit with resourceVersion 0 gives everything; reflectors count on it.
    if (wanted === 0) return ready ? present({ ...request, limit: 0 }, "") : store.list({ ...request, limit: 0 });
    if (request.match === "Exact" || (request.limit && request.match === undefined)) {
      if (wanted > revision()) await notOlderThan(wanted);
      return past(request, wanted, "") ?? store.list(request);
    }
    return (await notOlderThan(wanted)) ? present(request, "") : store.list(request);
  }

  /** False when something below the prefix cannot be read: a list must not pass over it in silence. */
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

  /** What the request takes of the present state; the same array as long as nothing changed. */
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

  /** @returns undefined when the history does not reach back to `at`. */
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

  /** @param all what the request takes, of which `start` and its limit say how much is shown. */
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

  // ---- writes

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
   * One entry for the writer's answer and for the watchers, so that it is decoded and encoded once: what was written
   * waits for its event, or is the one that the event has brought already. Never for a dry-run, whose entry is no state.
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
      ready = false; // what is here does not change any more
      detach();
      readers.end();
    },
  };
}

/** Of a selection among those of one list. A page's name has no line break. */
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
