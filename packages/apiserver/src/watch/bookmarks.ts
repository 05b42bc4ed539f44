import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/**
 * Triggers bookmarks for watchers that requested them: once a minute, and shortly before their request ends, so that they
 * resume at a revision that is still in the history. One timer for all watchers, which are kept in buckets of one second.
 * Source: k8s.io/apiserver pkg/storage/cacher/cacher.go watcherBookmarkTimeBuckets
 */
export interface BookmarkClock {
  /** Registers a cache; `fire` is called for each of its readers when a bookmark is due. */
  readers<T extends object>(fire: (reader: T) => void): BookmarkReaders<T>;
  stop(): void;
}

export interface BookmarkReaders<T> {
  /** @param deadlineMs when the request ends, as a `clock.now()` timestamp */
  add(reader: T, deadlineMs: number | undefined): void;
  remove(reader: T): void;
}

const periodSeconds = 60;
const beforeDeadlineMs = 2_000;

interface Place {
  second: number;
  /** Monotonic, so that setting the system clock does not move bookmarks. */
  deadlineMs: number | undefined;
  fire(): void;
}

/** Creates the timer of a process; `stop` cancels it. */
export function newBookmarkClock(clock: Clock): BookmarkClock {
  const buckets = new Map<number, Set<Place>>();
  const second = (): number => Math.floor(clock.monotonic() / 1000);

  function put(place: Place): void {
    const now = second();
    let due = now + periodSeconds;
    if (place.deadlineMs !== undefined) {
      const last = Math.floor((place.deadlineMs - beforeDeadlineMs) / 1000);
      if (last > now && last < due) due = last;
    }
    place.second = due;
    let bucket = buckets.get(due);
    if (bucket === undefined) {
      bucket = new Set();
      buckets.set(due, bucket);
    }
    bucket.add(place);
  }

  const timer = clock.every(1_000, () => {
    const now = second();
    for (const due of [...buckets.keys()].filter((due) => due <= now)) {
      const bucket = buckets.get(due)!;
      buckets.delete(due);
      for (const place of bucket) {
        put(place);
        place.fire();
      }
    }
  });

  return {
    readers<T extends object>(fire: (reader: T) => void): BookmarkReaders<T> {
      const places = new Map<T, Place>();
      return {
        add(reader, deadlineMs) {
          const ends = deadlineMs === undefined ? undefined : deadlineMs - clock.now() + clock.monotonic();
          const place: Place = { second: 0, deadlineMs: ends, fire: () => fire(reader) };
          places.set(reader, place);
          put(place);
        },
        remove(reader) {
          const place = places.get(reader);
          if (place === undefined) return;
          places.delete(reader);
          buckets.get(place.second)?.delete(place);
        },
      };
    },
    stop: () => timer.cancel(),
  };
}
