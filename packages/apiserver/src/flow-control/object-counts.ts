import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { WorkFacts } from "./work-estimate.ts";

/**
 * The number of stored objects of each resource, as of the last count.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/request/object_count_tracker.go
 */
export interface ObjectCounts {
  set(resource: string, count: number): void;
  readonly of: WorkFacts["storedObjects"];
}

/** A count is stale after this many missed polls. */
const missed = 3;

/** @param pollMs interval of the counts; older ones become stale */
export function newObjectCounts(clock: Pick<Clock, "monotonic">, pollMs: number): ObjectCounts {
  const counts = new Map<string, { count: number; atMs: number }>();
  return {
    /** @param count negative when counting failed */
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
