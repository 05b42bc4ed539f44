import type { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { encodeContinueToken } from "../storage/continue-token.ts";
import { isSelective, matches } from "../storage/selection.ts";
import type { Entry, ListRequest, ListResult, Selection } from "../storage/storage.ts";
import { Change, History, type HistoryMemory } from "./history.ts";
import { partOf } from "./list-parts.ts";

/** The part of a list request that selects entries and a page of them. */
export type PageRequest = Pick<ListRequest, "prefix" | "labels" | "fields" | "limit">;

interface CacheStateOptions {
  /** Selectable fields that objects are indexed by. */
  readonly indexes: readonly string[];
  readonly clock: Clock;
  readonly memory: HistoryMemory;
  /** See History. */
  resized?(capacity: number, before: number): void;
}

/** What a cache holds of its resource: the current objects, the recent changes, and the keys of what it could not decode. */
export class CacheState {
  readonly history: History;
  readonly #entries = new SortedEntries();
  readonly #index: ReturnType<typeof newFieldIndex>;
  /** Keys of objects that cannot be decoded (another encryption key). */
  #unreadable: Set<string> = new Set();
  #listed = 0;

  constructor({ indexes, clock, memory, resized }: CacheStateOptions) {
    this.#index = newFieldIndex(indexes);
    this.history = new History(clock, memory, 0, resized);
  }

  /** Revision of the list that the state was loaded from; 0: none yet. */
  get listed(): number {
    return this.#listed;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** Whether the object exists but could not be decoded: a read of it has to go to the store, whose error names the key. */
  isUnreadable(key: string): boolean {
    return this.#unreadable.has(key);
  }

  /** False when an object below the prefix cannot be decoded: a list must fail then instead of omitting it. */
  isWhole(prefix: string): boolean {
    return this.#unreadable.size === 0 || ![...this.#unreadable].some((key) => key.startsWith(prefix));
  }

  /** Replaces everything by a list at `revision`. @param entries in key order @param unreadable keys that the list skipped */
  reset(entries: readonly Entry[], unreadable: Set<string>, revision: number): void {
    this.#entries.reset(entries);
    this.#index.reset(entries);
    this.history.reset(revision);
    this.#unreadable = unreadable;
    this.#listed = revision;
  }

  /**
   * Applies one change. The caller retires the previous entry after it has dispatched the change.
   * @param current undefined: deleted, or not readable
   * @returns undefined when nothing changed: the key was absent already
   */
  apply(key: string, current: Entry | undefined, revision: number, isReadable: boolean): Change | undefined {
    const previous = this.#entries.get(key);
    if (!isReadable) this.#unreadable.add(key);
    else if (this.#unreadable.size > 0) this.#unreadable.delete(key);
    if (current === undefined) {
      if (previous === undefined) return undefined;
      this.#entries.delete(key);
    } else {
      current.warm();
      this.#entries.set(current);
    }
    this.#index.change(previous, current);
    const change = new Change(key, revision, previous, current);
    this.history.push(change);
    return change;
  }

  /** A page of the current entries. @param start relative to the prefix; "": the first page @param at the revision to report */
  present(request: PageRequest, start: string, at: number): ListResult {
    return pageOf(request, this.#selected(request), start, at);
  }

  /** As `present`, of the state at an earlier revision. @returns undefined when the history does not reach back to `at` */
  past(request: PageRequest, start: string, at: number): ListResult | undefined {
    const states = this.history.statesAt(at);
    if (states === undefined) return undefined;
    if (states.size === 0) return pageOf(request, this.#selected(request), start, at);
    const then = this.#entries.range(request.prefix).filter((entry) => !states.has(entry.key));
    for (const entry of states.values()) if (entry !== undefined && isInRange(entry.key, request.prefix)) then.push(entry);
    then.sort(byKeyOrder);
    return pageOf(request, isSelective(request) ? then.filter((entry) => matches(request, entry)) : then, start, at);
  }

  /** How many entries a list examines, and the indexed field that narrows them; for metrics. */
  examined({ prefix, fields }: PageRequest): { readonly field: string | undefined; readonly count: number } {
    const candidates = this.#index.candidates(fields);
    return { field: candidates?.field, count: candidates?.keys.size ?? this.#entries.range(prefix).length };
  }

  /** The current entries that match the request; the same array until the next change. */
  #selected(request: PageRequest): Entry[] {
    const all = this.#entries.range(request.prefix);
    if (!isSelective(request)) return all;
    return partOf(all, nameOf(request), () => {
      const candidates = this.#index.candidates(request.fields);
      if (candidates === undefined) return all.filter((entry) => matches(request, entry));
      const some: Entry[] = [];
      for (const key of candidates.keys) {
        const entry = isInRange(key, request.prefix) ? this.#entries.get(key) : undefined;
        if (entry !== undefined && matches(request, entry)) some.push(entry);
      }
      return some.sort(byKeyOrder);
    });
  }
}

/** Releases the encodings that only the previous state of a change holds. Call it after the change was dispatched. */
export function retirePrevious({ previous }: Change): void {
  previous?.retire();
}

/** @param all the entries that match the request, of which `start` and the limit select a page */
function pageOf(request: PageRequest, all: Entry[], start: string, at: number): ListResult {
  const from = start === "" ? 0 : lowerBound(all, request.prefix + start);
  const to = request.limit ? from + request.limit : all.length;
  const entries = from === 0 && to >= all.length ? all : partOf(all, `${from}-${to}`, () => all.slice(from, to));
  if (to >= all.length) return { entries, revision: at };
  const last = entries[entries.length - 1]!;
  return {
    entries,
    revision: at,
    continueToken: encodeContinueToken({ start: `${last.key.slice(request.prefix.length)}\0`, revision: at }),
    ...(!isSelective(request) && { remainingItemCount: all.length - to }),
  };
}

/** Cache key of a selection of a list. It contains a line break, which page names do not. */
function nameOf({ labels, fields }: Selection): string {
  return `${labels ?? ""}\n${fields ?? ""}`;
}

/** Index of the first entry whose key is not below `key`. @param sorted entries in key order */
function lowerBound(sorted: readonly Entry[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]!.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether `key` belongs to the range `prefix`: equality for a whole key (`web/front-0`), a prefix match for `""` and `web/`. */
export function isInRange(key: string, prefix: string): boolean {
  return isWholeKey(prefix) ? key === prefix : key.startsWith(prefix);
}

const isWholeKey = (prefix: string): boolean => prefix !== "" && !prefix.endsWith("/");

/** `concat` copies whole arrays; `flat` looks at each element. */
function joined(chunks: readonly Entry[][]): Entry[] {
  const none: Entry[] = [];
  return none.concat(...chunks);
}

/** Comparator by key. The keys must differ. */
const byKeyOrder = (a: Entry, b: Entry): number => (a.key < b.key ? -1 : 1);

/**
 * The current objects of one resource: lookup by key in constant time, listing in key order, which also groups by namespace. They are
 * kept in chunks, so that a change costs about the same in a list of any length.
 */
export class SortedEntries {
  readonly #chunkEntries: number;
  readonly #byKey = new Map<string, Entry>();
  /** Sorted and not empty, and so are the chunks in it. */
  #chunks: Entry[][] = [];
  readonly #ranges = new Map<string, Entry[]>();

  /** @param chunkEntries upper bound of the entries in a chunk, even: inserting and deleting moves at most these */
  constructor(chunkEntries = 512) {
    this.#chunkEntries = chunkEntries;
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): Entry | undefined {
    return this.#byKey.get(key);
  }

  set(entry: Entry): void {
    if (this.#byKey.has(entry.key)) {
      const chunk = this.#chunks[this.#chunkOf(entry.key)]!;
      chunk[lowerBound(chunk, entry.key)] = entry;
    } else this.#insert(entry);
    this.#byKey.set(entry.key, entry);
    this.#ranges.clear();
  }

  delete(key: string): void {
    if (!this.#byKey.delete(key)) return;
    this.#remove(key);
    this.#ranges.clear();
  }

  /** @param entries in key order */
  reset(entries: readonly Entry[]): void {
    this.#byKey.clear();
    for (const entry of entries) this.#byKey.set(entry.key, entry);
    // etcd orders by bytes, JavaScript by UTF-16 code units; the orders differ for names outside ASCII.
    const isSorted = entries.every((entry, i) => i === 0 || entries[i - 1]!.key < entry.key);
    const sorted = isSorted ? entries : entries.toSorted(byKeyOrder);
    this.#chunks = [];
    for (let at = 0; at < sorted.length; at += this.#chunkEntries) this.#chunks.push(sorted.slice(at, at + this.#chunkEntries));
    this.#ranges.clear();
  }

  /**
   * Entries whose keys begin with `prefix` (`""`, `web/`) or equal it (`web/front-0`). Prefix ranges return the same array
   * until the next change. It is read-only, and derived data may be cached against it.
   */
  range(prefix: string): Entry[] {
    if (isWholeKey(prefix)) {
      const entry = this.#byKey.get(prefix);
      return entry === undefined ? [] : [entry];
    }
    return this.#ranges.getOrInsertComputed(prefix, () => this.#slice(prefix));
  }

  #slice(prefix: string): Entry[] {
    const chunks = this.#chunks;
    if (prefix === "" || chunks.length === 0) return joined(chunks);
    const first = this.#chunkOf(prefix);
    // `/` + 1 is `0`: the first key behind all that begin with `web/`.
    const end = `${prefix.slice(0, -1)}0`;
    const last = this.#chunkOf(end);
    const some = chunks.slice(first, last + 1);
    some[last - first] = some[last - first]!.slice(0, lowerBound(some[last - first]!, end));
    some[0] = some[0]!.slice(lowerBound(some[0]!, prefix));
    return joined(some);
  }

  /** Index of the chunk that holds `key` or would. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#chunks[middle]![0]!.key <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #insert(entry: Entry): void {
    const at = this.#chunkOf(entry.key);
    const chunk = this.#chunks[at];
    const place = chunk === undefined ? 0 : lowerBound(chunk, entry.key);
    // Keys that ascend fill each chunk.
    if (chunk === undefined || (place === this.#chunkEntries && at === this.#chunks.length - 1)) {
      this.#chunks.push([entry]);
      return;
    }
    chunk.splice(place, 0, entry);
    if (chunk.length > this.#chunkEntries) this.#chunks.splice(at + 1, 0, chunk.splice(this.#chunkEntries / 2));
  }

  #remove(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at]!;
    chunk.splice(lowerBound(chunk, key), 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }
}

/**
 * Keys of the current objects by the values of selected fields, so that listing the pods of one node does not scan all pods
 * of the cluster.
 */
interface FieldIndex {
  /** @param previous, current the state of the key before and after; undefined: absent */
  change(previous: Entry | undefined, current: Entry | undefined): void;
  reset(entries: readonly Entry[]): void;
  /** Keys of all objects that the selector can match, possibly more; undefined when no indexed field narrows it. */
  candidates(selector: FieldSelector | undefined): Candidates | undefined;
}

interface Candidates {
  /** The indexed field that selected the keys. */
  readonly field: string;
  readonly keys: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** @param fields selectable fields to index, e.g. `spec.nodeName` */
export function newFieldIndex(fields: readonly string[]): FieldIndex {
  const byField = new Map(fields.map((field) => [field, new Map<string, Set<string>>()]));

  function change(previous: Entry | undefined, current: Entry | undefined): void {
    for (const [field, keys] of byField) {
      const before = previous?.fields[field];
      const after = current?.fields[field];
      if (before === after && previous !== undefined && current !== undefined) continue;
      if (previous !== undefined && before !== undefined) remove(keys, before, previous.key);
      if (current !== undefined && after !== undefined) add(keys, after, current.key);
    }
  }

  return {
    change,
    reset(entries) {
      for (const keys of byField.values()) keys.clear();
      for (const entry of entries) change(undefined, entry);
    },
    candidates(selector) {
      let fewest: Candidates | undefined;
      for (const [field, keys] of byField) {
        const value = selector?.requiresExact(field);
        if (value === undefined || value === "") continue; // a missing field is selectable as "", but is not indexed
        const found = keys.get(value) ?? none;
        if (fewest === undefined || found.size < fewest.keys.size) fewest = { field, keys: found };
      }
      return fewest;
    },
  };
}

function add(keys: Map<string, Set<string>>, value: string, key: string): void {
  const there = keys.get(value);
  if (there === undefined) keys.set(value, new Set([key]));
  else there.add(key);
}

function remove(keys: Map<string, Set<string>>, value: string, key: string): void {
  const there = keys.get(value);
  if (there?.delete(key) && there.size === 0) keys.delete(value);
}
