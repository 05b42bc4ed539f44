import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { sizeOf } from "../storage/entry.ts";
import type { Entry } from "../storage/storage.ts";
import type { Change } from "./change.ts";

/**
 * The recent changes of one resource, for watches that resume and lists at a recent revision. The capacity adapts to use:
 * changes younger than `longestAgeMs` are kept within the bounds below, and always the last `fewest`.
 */
export interface History {
  /** All changes after this revision are held. */
  readonly start: number;
  push(change: Change): void;
  /** @returns undefined when `revision` is before `start`: answer 410, or read etcd */
  after(revision: number): readonly Change[] | undefined;
  /**
   * What the keys changed after `revision` held at that revision (undefined: absent). The result is undefined when `revision`
   * is before `start`.
   */
  statesAt(revision: number): Map<string, Entry | undefined> | undefined;
  /** Drops all changes; the history begins after revision `start`. */
  reset(start: number): void;
  /** Prepends `older`, all changes after `start` up to the previous start. */
  prepend(start: number, older: readonly Change[]): void;
  readonly length: number;
  /** Number of changes that fit before it grows: `fewest`, doubled and halved with use. */
  readonly capacity: number;
}

const fewest = 100;
const most = 20_000;
const mostBytes = 32 * 1024 * 1024;
/** etcd's default compaction interval. */
const longestAgeMs = 5 * 60_000;

/** @param resized called on each change of the capacity; `before` is 0 for the first call */
export function newHistory(clock: Clock, start = 0, resized: (capacity: number, before: number) => void = () => {}): History {
  // An array with a moving head: shift() is linear, and a ring buffer has to be sized in advance.
  let changes: (Change | undefined)[] = [];
  let times: number[] = [];
  let head = 0;
  let bytes = 0;
  let from = start;
  let capacity = fewest;
  resized(capacity, 0);

  /** Doubles when full and halves when three quarters are empty; the gap avoids flapping. */
  function fit(): void {
    const length = changes.length - head;
    const wanted = length > capacity ? capacity * 2 : length * 4 <= capacity ? capacity / 2 : capacity;
    const bounded = Math.min(Math.max(wanted, fewest), most);
    if (bounded === capacity) return;
    const before = capacity;
    capacity = bounded;
    resized(capacity, before);
    fit();
  }

  function dropOldest(): void {
    const oldest = changes[head] as Change;
    from = oldest.revision;
    bytes -= weight(oldest);
    changes[head] = undefined;
    head++;
    if (head > 1_000 && head * 2 > changes.length) {
      changes = changes.slice(head);
      times = times.slice(head);
      head = 0;
    }
  }

  /** Index of the first change after `revision`. */
  function indexAfter(revision: number): number {
    let low = head;
    let high = changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((changes[middle] as Change).revision > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  return {
    get start() {
      return from;
    },
    get length() {
      return changes.length - head;
    },
    get capacity() {
      return capacity;
    },
    push(change) {
      const now = clock.monotonic();
      changes.push(change);
      times.push(now);
      bytes += weight(change);
      while (
        changes.length - head > fewest &&
        (changes.length - head > most || bytes > mostBytes || now - (times[head] as number) > longestAgeMs)
      ) {
        dropOldest();
      }
      fit();
    },
    after(revision) {
      if (revision < from) return undefined;
      return changes.slice(indexAfter(revision)) as Change[];
    },
    statesAt(revision) {
      if (revision < from) return undefined;
      const states = new Map<string, Entry | undefined>();
      for (let i = indexAfter(revision); i < changes.length; i++) {
        const change = changes[i] as Change;
        if (!states.has(change.key)) states.set(change.key, change.previous);
      }
      return states;
    },
    prepend(revision, older) {
      const now = clock.monotonic();
      changes = [...older, ...changes.slice(head)];
      times = [...older.map(() => now), ...times.slice(head)];
      head = 0;
      for (const change of older) bytes += weight(change);
      from = revision;
      fit();
    },
    reset(revision) {
      changes = [];
      times = [];
      head = 0;
      bytes = 0;
      from = revision;
      fit();
    },
  };
}

/**
 * Only the previous state is kept alive by the change alone: the current one is in the cache, or is the previous state of a later
 * change. Memoized, because the weight must be the same when a change is added and dropped, while cached encodings vary.
 */
const weights = new WeakMap<Change, number>();
function weight(change: Change): number {
  let size = weights.get(change);
  if (size === undefined) {
    size = 256 + (change.previous === undefined ? 0 : sizeOf(change.previous));
    weights.set(change, size);
  }
  return size;
}
