import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { sizeOf } from "../storage/entry.ts";
import type { Entry } from "../storage/storage.ts";
import type { Change } from "./change.ts";

/**
 * The recent changes of one resource, so that a watch goes on where it stopped and a list of a moment ago can still be
 * told. Grows with use: holds what is younger than `longestAgeMs` within the bounds below, and always the last few.
 */
export interface History {
  /** Everything after this revision is here. */
  readonly start: number;
  push(change: Change): void;
  /** @returns undefined when `revision` is before `start`: 410, or ask etcd. */
  after(revision: number): readonly Change[] | undefined;
  /** What the keys changed after `revision` held at it (undefined: absent); undefined as a whole before `start`. */
  statesAt(revision: number): Map<string, Entry | undefined> | undefined;
  reset(start: number): void;
  /** Puts what was before the start in front, everything after `start`. */
  prepend(start: number, older: readonly Change[]): void;
  readonly length: number;
  /** What it has room for before it grows: `fewest`, doubled and halved as it is used. */
  readonly capacity: number;
}

const fewest = 100;
const most = 20_000;
const mostBytes = 32 * 1024 * 1024;
/** As long as etcd keeps history by default. */
const longestAgeMs = 5 * 60_000;

/** @param resized told of each change of the capacity; `before` is 0 at the beginning. */
export function newHistory(clock: Clock, start = 0, resized: (capacity: number, before: number) => void = () => {}): History {
  // A queue as an array with a moving head: shifting would be linear, and a ring would have to be sized in advance.
  let changes: (Change | undefined)[] = [];
  let times: number[] = [];
  let head = 0;
  let bytes = 0;
  let from = start;
  let capacity = fewest;
  resized(capacity, 0);

  /** Doubles when it is full and halves when it is three quarters empty, so that it does not flap. */
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
 * What lives because of the change alone is the state before it: the one after it is the present one, or the one before a
 * later change. The weight must be the same when a change comes and when it goes, though encodings come and go in between.
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
