import type { Entry } from "../storage/storage.ts";

/**
 * The current objects of one resource: lookup by key in constant time, listing in key order, which also groups by namespace.
 * Updates replace in place. A delete moves the entries behind it (one memmove of pointers). New keys are sorted in on the
 * next ordered read.
 */
export interface SortedEntries {
  readonly size: number;
  get(key: string): Entry | undefined;
  set(entry: Entry): void;
  delete(key: string): void;
  /** @param entries in key order. */
  reset(entries: readonly Entry[]): void;
  /**
   * Entries whose keys begin with `prefix` (`""`, `web/`) or equal it (`web/front-0`). Prefix ranges return the same array
   * until the next change. It is read-only, and derived data may be cached against it.
   */
  range(prefix: string): Entry[];
}

/** Index of the first entry whose key is not below `key`. @param sorted entries in key order */
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

/** Whether `key` belongs to the range `prefix`: equality for a whole key (`web/front-0`), a prefix match for `""` and `web/`. */
export function isInRange(key: string, prefix: string): boolean {
  return isWholeKey(prefix) ? key === prefix : key.startsWith(prefix);
}

const isWholeKey = (prefix: string): boolean => prefix !== "" && !prefix.endsWith("/");

/** Comparator by key. The keys must differ. */
export const byKeyOrder = (a: Entry, b: Entry): number => (a.key < b.key ? -1 : 1);

/** Up to this many new entries are inserted by binary search, which is cheaper than sorting the whole array. */
const fewEntries = 16;

export function newSortedEntries(): SortedEntries {
  const byKey = new Map<string, Entry>();
  let sorted: Entry[] = [];
  /** New entries that are not sorted in yet. */
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
      // etcd orders by bytes, JavaScript by UTF-16 code units; the orders differ for names outside ASCII.
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
