import { resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { splitKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { StorageMetrics } from "../storage/metrics.ts";
import { isSelective, matches } from "../storage/selection.ts";
import type { Entry, Selection, Storage, WatchEvent, WatchRequest, WatchStream } from "../storage/storage.ts";
import { type WatchPace, WatchQueue } from "../storage/watch-queue.ts";
import type { BookmarkClock, BookmarkReaders } from "./bookmarks.ts";
import type { CacheMemory } from "./cache-memory.ts";
import { isInRange } from "./cache-state.ts";
import type { Change } from "./history.ts";
import { ResumedWatch } from "./resumed-watch.ts";

interface CacheReadersOptions {
  readonly store: Pick<Storage, "watch">;
  /** Plural name, for logs and metrics. */
  readonly resource: string;
  /** Selectable fields that watchers are indexed by. */
  readonly indexes?: readonly string[];
  readonly bookmarks: BookmarkClock;
  readonly pace?: WatchPace | undefined;
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
    const { pace } = this.#options;
    const queue = new WatchQueue({ initial, signal: request.signal, onStop: () => this.#forget(watcher), pace });
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
      pace: this.#options.pace,
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

/**
 * Dispatches a change only to the watchers that may match it. Watchers with the same selector share one WatcherGroup. Each
 * group is indexed by its narrowest criterion: one object, one value of an indexed field, one namespace, or everything. An
 * event of a pod reaches the kubelet of its node without visiting the watchers of 5,000 other nodes.
 */
interface WatcherIndex {
  /** Returns the group for the selector of `request`; a new one is not registered before `add`. */
  groupOf(request: WatchRequest): WatcherGroup;
  add(watcher: CacheWatcher): void;
  remove(watcher: CacheWatcher): void;
  dispatch(change: Change): void;
  all(): CacheWatcher[];
}

/** Groups by index value. The arrays are replaced, never mutated, because `dispatch` may be iterating one. */
type Places = Map<string, readonly WatcherGroup[]>;

/** @param indexes selectable fields that watchers are indexed by, e.g. `spec.nodeName` */
export function newWatcherIndex(indexes: readonly string[]): WatcherIndex {
  /** Groups with at least one watcher, by name. */
  const groups = new Map<string, WatcherGroup>();
  const everywhere: Places = new Map();
  const byNamespace: Places = new Map();
  const byKey: Places = new Map();
  const byField = new Map(indexes.map((field): [string, Places] => [field, new Map()]));

  function placeOf({ prefix, fields }: WatcherGroup): [Places, string] {
    if (prefix !== "" && !prefix.endsWith("/")) return [byKey, prefix];
    for (const [field, places] of byField) {
      const value = fields?.requiresExact(field);
      if (value !== undefined) return [places, value];
    }
    return prefix === "" ? [everywhere, ""] : [byNamespace, prefix.slice(0, -1)];
  }

  function enter(group: WatcherGroup): void {
    const [places, value] = placeOf(group);
    groups.set(group.name, group);
    places.set(value, [...(places.get(value) ?? []), group]);
  }

  function leave(group: WatcherGroup): void {
    const [places, value] = placeOf(group);
    groups.delete(group.name);
    const others = (places.get(value) ?? []).filter((other) => other !== group);
    if (others.length === 0) places.delete(value);
    else places.set(value, others);
  }

  function visit(places: Places, value: string, change: Change): void {
    if (places.size === 0) return;
    for (const group of places.get(value) ?? []) group.deliver(change);
  }

  return {
    groupOf(request) {
      const name = groupName(request);
      return groups.get(name) ?? new WatcherGroup(name, request);
    },
    add(watcher) {
      const { group } = watcher;
      if (group.watchers.size === 0) enter(group);
      group.watchers.add(watcher);
    },
    remove(watcher) {
      const { group } = watcher;
      if (group.watchers.delete(watcher) && group.watchers.size === 0) leave(group);
    },
    dispatch(change) {
      if (groups.size === 0) return;
      visit(everywhere, "", change);
      visit(byKey, change.key, change);
      if (byNamespace.size > 0) visit(byNamespace, splitKey(change.key).namespace, change);
      for (const [field, places] of byField) {
        const before = change.previous?.fields[field];
        const after = change.current?.fields[field];
        if (before !== undefined) visit(places, before, change);
        if (after !== undefined && after !== before) visit(places, after, change);
      }
    },
    all: () => [...groups.values()].flatMap(({ watchers }) => [...watchers]),
  };
}

/**
 * All watchers of a cache with the same selector: the visible event of a change is computed once and delivered to each of them.
 */
class WatcherGroup implements Selection {
  /** Equal for equal selectors only; see groupName. */
  readonly name: string;
  readonly prefix: string;
  readonly labels?: LabelSelector;
  readonly fields?: FieldSelector;
  /** Watchers that changes are dispatched to. */
  readonly watchers = new Set<CacheWatcher>();
  readonly #selective: boolean;

  constructor(name: string, { prefix, labels, fields }: WatchRequest) {
    this.name = name;
    this.prefix = prefix;
    if (labels !== undefined) this.labels = labels;
    if (fields !== undefined) this.fields = fields;
    this.#selective = isSelective(this);
  }

  /** Delivers the event of `change`, if the selector matches, to every watcher. */
  deliver(change: Change): void {
    const event = this.eventOf(change);
    if (event === undefined) return;
    const alone = [event];
    for (const watcher of this.watchers) watcher.deliver(change.revision, event, alone);
  }

  /** The event that a watcher with this selector sees, undefined when the object matches neither before nor after the change. */
  eventOf(change: Change): WatchEvent | undefined {
    if (!isInRange(change.key, this.prefix)) return undefined;
    const { previous, current } = change;
    if (!this.#selective) return change.event(previous !== undefined, current !== undefined);
    return change.event(previous !== undefined && matches(this, previous), current !== undefined && matches(this, current));
  }
}

/**
 * JSON keeps the parts apart whatever they contain. `empty` distinguishes a selector that matches nothing, whose
 * text is "" as well.
 */
export function groupName({ prefix, labels, fields }: WatchRequest): string {
  return JSON.stringify([prefix, labels?.empty ?? true, `${labels ?? ""}`, `${fields ?? ""}`]);
}

/** One watcher of a cache: the revision that its events start after, and its bounded queue. */
export class CacheWatcher {
  readonly group: WatcherGroup;
  readonly queue: WatchQueue;
  /** Changes up to this revision are skipped: the client has seen them. */
  readonly #after: number;

  constructor(group: WatcherGroup, after: number, queue: WatchQueue) {
    this.group = group;
    this.#after = after;
    this.queue = queue;
  }

  /**
   * Queues the event unless the client has seen its revision.
   * @param event what the group sees of the change at `revision`
   * @param alone an array of only `event`, shared by all watchers of the group
   */
  deliver(revision: number, event: WatchEvent, alone: readonly WatchEvent[]): void {
    if (revision > this.#after) this.queue.push(event, alone);
  }

  /** Queues the events of the missed changes at once, regardless of the queue's limit. */
  catchUp(missed: readonly Change[]): void {
    const events: WatchEvent[] = [];
    for (const change of missed) {
      const event = change.revision > this.#after ? this.group.eventOf(change) : undefined;
      if (event !== undefined) events.push(event);
    }
    this.queue.catchUp(events);
  }

  /** Queues a bookmark. Valid because every change up to `revision` was queued before. */
  bookmark(revision: number): void {
    if (revision >= this.#after && !this.queue.ended) this.queue.push({ type: "BOOKMARK", revision });
  }
}
