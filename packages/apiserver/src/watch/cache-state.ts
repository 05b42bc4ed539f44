import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { encodeContinueToken } from "../storage/continue-token.ts";
import { isSelective, matches } from "../storage/selection.ts";
import type { Entry, ListRequest, ListResult, Selection } from "../storage/storage.ts";
import { Change } from "./change.ts";
import { newFieldIndex } from "./field-index.ts";
import { History } from "./history.ts";
import type { HistoryMemory } from "./history-memory.ts";
import { picked } from "./picked.ts";
import { byKeyOrder, isInRange, lowerBound, newSortedEntries } from "./sorted-entries.ts";

/** The part of a list request that selects entries and a page of them. */
export type PageRequest = Pick<ListRequest, "prefix" | "labels" | "fields" | "limit">;

export interface CacheStateOptions {
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
  readonly #entries = newSortedEntries();
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
    return picked(all, nameOf(request), () => {
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

/** Releases what only the previous state of a change kept encoded, after the change was dispatched. */
export function retirePrevious({ previous }: Change): void {
  previous?.retire();
}

/** @param all the entries that match the request, of which `start` and the limit select a page */
function pageOf(request: PageRequest, all: Entry[], start: string, at: number): ListResult {
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

/** Cache key of a selection of a list. It contains a line break, which page names do not. */
function nameOf({ labels, fields }: Selection): string {
  return `${labels ?? ""}\n${fields ?? ""}`;
}
