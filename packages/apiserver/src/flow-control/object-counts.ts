import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { WorkFacts } from "./work-estimate.ts";

/**
 * How many objects of each resource the storage said to hold when it was last counted.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/request/object_count_tracker.go
 */
export interface ObjectCounts {
  set(resource: string, count: number): void;
  readonly of: WorkFacts["storedObjects"];
}

/** Storage counts once a minute; after so many misses a number is no longer believed. */
const missed = 3;

export function newObjectCounts(clock: Pick<Clock, "monotonic">, pollMs: number): ObjectCounts {
  const counts = new Map<string, { count: number; atMs: number }>();
  return {
    /** @param count negative when it could not be had */
    set(resource, count) {
      if (count >= 0) counts.set(resource, { count, atMs: clock.monotonic() });
    },
    of(resource) {
      const known = counts.get(resource);
      if (known === undefined) return undefined;
      return clock.monotonic() - known.atMs > missed * pollMs ? "stale" : known.count;
    },
  };
}
