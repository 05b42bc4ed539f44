import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Entry, WatchEvent } from "../storage/storage.ts";

const fewest = 100;
const most = 20_000;
/** etcd's default compaction interval. */
const longestAgeMs = 5 * 60_000;

/**
 * The recent changes of one resource, for watches that resume and lists at a recent revision. The capacity adapts to use:
 * changes younger than `longestAgeMs` are kept within the bounds above and the memory of all histories, and always the last `fewest`.
 */
export class History {
  readonly #clock: Clock;
  readonly #memory: HistoryMemory;
  readonly #resized: (capacity: number, before: number) => void;
  // An array with a moving head: shift() is linear, and a ring buffer has to be sized in advance.
  #changes: (Change | undefined)[] = [];
  #times: number[] = [];
  #head = 0;
  #bytes = 0;
  #start: number;
  #capacity = fewest;

  /** @param resized called on each change of the capacity; `before` is 0 for the first call */
  constructor(clock: Clock, memory: HistoryMemory, start = 0, resized: (capacity: number, before: number) => void = () => {}) {
    this.#clock = clock;
    this.#memory = memory;
    this.#start = start;
    this.#resized = resized;
    resized(this.#capacity, 0);
  }

  /** All changes after this revision are held. */
  get start(): number {
    return this.#start;
  }

  /** Estimated bytes that it keeps alive. */
  get sizeBytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#changes.length - this.#head;
  }

  /** Number of changes that fit before it grows: `fewest`, doubled and halved with use. */
  get capacity(): number {
    return this.#capacity;
  }

  push(change: Change): void {
    const now = this.#clock.monotonic();
    this.#changes.push(change);
    this.#times.push(now);
    this.#count(change.weightBytes);
    while (this.length > fewest && this.#isOldestExcess(now)) this.#dropOldest();
    this.#memory.makeRoom();
    this.#fit();
  }

  /** @returns undefined when `revision` is before `start`: answer 410, or read etcd */
  after(revision: number): readonly Change[] | undefined {
    if (revision < this.#start) return undefined;
    return this.#changes.slice(this.#indexAfter(revision)) as Change[]; // cast: the ring is filled from the index on
  }

  /**
   * The entries, at `revision`, of the keys that were changed after it (undefined: absent). The result is undefined when `revision`
   * is before `start`.
   */
  statesAt(revision: number): Map<string, Entry | undefined> | undefined {
    if (revision < this.#start) return undefined;
    const states = new Map<string, Entry | undefined>();
    for (let i = this.#indexAfter(revision); i < this.#changes.length; i++) {
      const change = this.#changes[i]!;
      if (!states.has(change.key)) states.set(change.key, change.previous);
    }
    return states;
  }

  /** Prepends `older`, all changes after `start` up to the previous start. */
  prepend(start: number, older: readonly Change[]): void {
    const now = this.#clock.monotonic();
    this.#changes = [...older, ...this.#changes.slice(this.#head)];
    this.#times = [...older.map(() => now), ...this.#times.slice(this.#head)];
    this.#head = 0;
    for (const change of older) this.#count(change.weightBytes);
    this.#start = start;
    this.#memory.makeRoom();
    this.#fit();
  }

  /** Drops all changes; the history begins after revision `start`. */
  reset(start: number): void {
    this.#changes = [];
    this.#times = [];
    this.#head = 0;
    this.#count(-this.#bytes);
    this.#start = start;
    this.#fit();
  }

  get isShortest(): boolean {
    return this.length <= fewest;
  }

  /** Drops the oldest change to free memory for the other histories. */
  dropOldest(): void {
    this.#dropOldest();
    this.#fit();
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#memory.count(this, bytes);
  }

  #isOldestExcess(now: number): boolean {
    return this.length > most || now - this.#times[this.#head]! > longestAgeMs;
  }

  #dropOldest(): void {
    const oldest = this.#changes[this.#head]!;
    this.#start = oldest.revision;
    this.#count(-oldest.weightBytes);
    this.#changes[this.#head] = undefined;
    this.#head++;
    if (this.#head > 1_000 && this.#head * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#head);
      this.#times = this.#times.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Doubles when full and halves when three quarters are empty; the gap avoids flapping. */
  #fit(): void {
    for (;;) {
      const capacity = this.#capacity;
      const wanted = this.length > capacity ? capacity * 2 : this.length * 4 <= capacity ? capacity / 2 : capacity;
      const bounded = Math.min(Math.max(wanted, fewest), most);
      if (bounded === capacity) return;
      this.#capacity = bounded;
      this.#resized(bounded, capacity);
    }
  }

  /** Index of the first change after `revision`. */
  #indexAfter(revision: number): number {
    let low = this.#head;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#changes[middle]!.revision > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** A history that can give up its oldest change. */
interface Holder {
  readonly sizeBytes: number;
  /** Whether it holds no more than the minimum number of changes, and therefore must not drop any. */
  readonly isShortest: boolean;
  dropOldest(): void;
}

/** The bytes that the histories of all watch caches hold together. Beyond the limit the largest one gives up its oldest changes. */
export class HistoryMemory {
  readonly limitBytes: number;
  readonly #histories = new Set<Holder>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes held by all histories. Exceeds `limitBytes` only when each history holds its minimum. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Accounts for bytes that a history has added (positive) or dropped (negative). */
  count(history: Holder, bytes: number): void {
    this.#bytes += bytes;
    if (history.sizeBytes > 0) this.#histories.add(history);
    else this.#histories.delete(history);
  }

  makeRoom(): void {
    while (this.#bytes > this.limitBytes) {
      let largest: Holder | undefined;
      for (const one of this.#histories) {
        if (!one.isShortest && one.sizeBytes > (largest?.sizeBytes ?? 0)) largest = one;
      }
      if (largest === undefined) return;
      largest.dropOldest();
    }
  }
}

/** One change of one object, with the events that watchers may see of it. Each event is built once and shared by all of them. */
export class Change {
  readonly key: string;
  readonly revision: number;
  readonly previous: Entry | undefined;
  /** undefined: deleted. */
  readonly current: Entry | undefined;
  #added: WatchEvent | undefined;
  #modified: WatchEvent | undefined;
  #deleted: WatchEvent | undefined;
  #weightBytes: number | undefined;

  constructor(key: string, revision: number, previous: Entry | undefined, current: Entry | undefined) {
    this.key = key;
    this.revision = revision;
    this.previous = previous;
    this.current = current;
  }

  /**
   * Bytes that a history keeps in memory by holding the change: only those of the previous state; the current one is in the cache, or is
   * the previous state of a later change. The event of a deletion has an encoding of its own. The same when the change is added and dropped, while cached encodings vary.
   */
  get weightBytes(): number {
    this.#weightBytes ??= 256 + (this.previous?.sizeBytes ?? 0) * (this.current === undefined ? 2 : 1);
    return this.#weightBytes;
  }

  /** The event for a watcher whose selector matched the object `before` the change and matches it `after`. */
  event(before: boolean, after: boolean): WatchEvent | undefined {
    if (after) {
      if (before) {
        this.#modified ??= { type: "MODIFIED", entry: this.current! };
        return this.#modified;
      }
      this.#added ??= { type: "ADDED", entry: this.current! };
      return this.#added;
    }
    if (!before) return undefined;
    if (this.#deleted === undefined) {
      const entry = this.previous!.atRevision(this.revision);
      entry.warm(); // pre-encode: the history holds the entry for minutes, but the decoded object is needed only briefly
      this.#deleted = { type: "DELETED", entry };
    }
    return this.#deleted;
  }
}
