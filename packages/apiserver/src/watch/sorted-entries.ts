import type { Entry } from "../storage/storage.ts";

/**
 * The present state of one resource: found by key at once, listed in key order, which is also by namespace. Updates
 * replace in place; a removed key moves the entries behind it (one memmove of pointers). New keys are sorted in when
 * somebody asks for the order.
 */
export interface SortedEntries {
  readonly size: number;
  get(key: string): Entry | undefined;
  set(entry: Entry): void;
  delete(key: string): void;
  /** @param entries in key order. */
  reset(entries: readonly Entry[]): void;
  /**
   * Entries whose keys begin with `prefix` (`""`, `web/`) or are it (`web/front-0`).
   * The same array again as long as nothing changed: do not change it, but what was made from it may be kept with it.
   */
  range(prefix: string): Entry[];
}

/** Index of the first of the entries, which are in key order, whose key is not below `key`. */
export function lowerBound(sorted: readonly Entry[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as Entry).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function isInRange(key: string, prefix: string): boolean {
  return isWholeKey(prefix) ? key === prefix : key.startsWith(prefix);
}

const isWholeKey = (prefix: string): boolean => prefix !== "" && !prefix.endsWith("/");

export const byKeyOrder = (a: Entry, b: Entry): number => (a.key < b.key ? -1 : 1);

/** So many are put where they belong one by one, which costs less than to sort all. */
const fewEntries = 16;

export function newSortedEntries(): SortedEntries {
  const byKey = new Map<string, Entry>();
  let sorted: Entry[] = [];
  /** New ones, not sorted in yet. */
  let added: Entry[] = [];
  const ranges = new Map<string, Entry[]>();

  function settle(): void {
    if (added.length === 0) return;
    if (added.length <= fewEntries) {
      for (const entry of added) sorted.splice(lowerBound(sorted, entry.key), 0, entry);
    } else {
      for (const entry of added) sorted.push(entry);
      sorted.sort(byKeyOrder);
    }
    added = [];
  }

  function slice(prefix: string): Entry[] {
    if (isWholeKey(prefix)) {
      const entry = byKey.get(prefix);
      return entry === undefined ? [] : [entry];
    }
    // `/` + 1 is `0`: the first key behind all that begin with `web/`.
    return prefix === ""
      ? sorted.slice()
      : sorted.slice(lowerBound(sorted, prefix), lowerBound(sorted, `${prefix.slice(0, -1)}0`));
  }

  return {
    get size() {
      return byKey.size;
    },
    get: (key) => byKey.get(key),
    set(entry) {
      if (byKey.has(entry.key)) {
        settle();
        sorted[lowerBound(sorted, entry.key)] = entry;
      } else added.push(entry);
      byKey.set(entry.key, entry);
      ranges.clear();
    },
    delete(key) {
      if (!byKey.delete(key)) return;
      settle();
      sorted.splice(lowerBound(sorted, key), 1);
      ranges.clear();
    },
    reset(entries) {
      byKey.clear();
      for (const entry of entries) byKey.set(entry.key, entry);
      sorted = [...entries];
      added = [];
      // etcd orders bytes and we UTF-16 units; names outside of ASCII may differ.
      if (sorted.some((entry, i) => i > 0 && (sorted[i - 1] as Entry).key > entry.key)) {
        sorted.sort(byKeyOrder);
      }
      ranges.clear();
    },
    range(prefix) {
      if (isWholeKey(prefix)) return slice(prefix);
      settle();
      let entries = ranges.get(prefix);
      if (entries === undefined) {
        entries = slice(prefix);
        ranges.set(prefix, entries);
      }
      return entries;
    },
  };
}
