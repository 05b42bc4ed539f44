import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/**
 * Tracks written slices so that a stale cache is detected; acting on it would create slices with generated names twice.
 * Entries expire after five minutes, in case the cache missed an event.
 * Source: pkg/controller/util/endpointslice/endpointslice_tracker.go
 */
export interface SliceTracker {
  recordWrite(service: ObjectKey, stored: EndpointSlice): void;
  recordDeletion(service: ObjectKey, slice: EndpointSlice): void;
  forget(service: ObjectKey): void;
  /** True when a written slice is missing or outdated in the cache, or a deleted one is still present. */
  isStale(service: ObjectKey, cached: readonly EndpointSlice[]): boolean;
  /** False for the event of an own write. */
  isForeignChange(slice: EndpointSlice): boolean;
  /** Records that a slice was seen to go, deleted or relabelled to another Service; returns true when its deletion was expected. */
  deletionObserved(slice: EndpointSlice): boolean;
  /** Number of slices that are remembered. */
  readonly size: number;
}

interface Written {
  readonly generation: number | "deleted";
  readonly at: number;
}

export function newSliceTracker(clock: Clock): SliceTracker {
  const byUid = new Map<string, Written>();
  const uidsOf = new Map<ObjectKey, Set<string>>();
  const generationOf = ({ metadata }: EndpointSlice): number => metadata.generation ?? 0;
  const uidOf = ({ metadata }: EndpointSlice): string => metadata.uid ?? "";
  const record = (service: ObjectKey, uid: string, generation: Written["generation"]): void => {
    byUid.set(uid, { generation, at: clock.monotonic() });
    uidsOf.getOrInsertComputed(service, () => new Set()).add(uid);
  };
  return {
    recordWrite: (service, stored) => record(service, uidOf(stored), generationOf(stored)),
    recordDeletion: (service, slice) => record(service, uidOf(slice), "deleted"),
    forget(service) {
      for (const uid of uidsOf.get(service) ?? []) byUid.delete(uid);
      uidsOf.delete(service);
    },
    isStale(service, cached) {
      const present = new Map(cached.map((slice) => [uidOf(slice), generationOf(slice)]));
      const uids = uidsOf.get(service) ?? new Set();
      for (const uid of uids) {
        const written = byUid.get(uid);
        if (written === undefined) {
          uids.delete(uid); // its deletion was observed
          continue;
        }
        if (clock.monotonic() - written.at > forgetAfterMs) continue;
        const shown = present.get(uid);
        if (written.generation === "deleted" ? shown !== undefined : shown === undefined || shown < written.generation)
          return true;
      }
      return false;
    },
    isForeignChange(slice) {
      const written = byUid.get(uidOf(slice));
      return written === undefined || written.generation === "deleted" || written.generation < generationOf(slice);
    },
    deletionObserved(slice) {
      const expected = byUid.get(uidOf(slice))?.generation === "deleted";
      byUid.delete(uidOf(slice));
      return expected;
    },
    get size() {
      return uidsOf.values().reduce((sum, uids) => sum + uids.size, 0);
    },
  };
}

const forgetAfterMs = 5 * 60_000;
