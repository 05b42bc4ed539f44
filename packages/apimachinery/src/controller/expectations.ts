import type { ObjectKey } from "../objects/meta/object-key.ts";
import type { Clock } from "../process/clock/clock.ts";

/**
 * Tracks a controller's own writes that are not in its cache yet. The controller announces creations and deletions, its sources
 * report those they observe, and it does not create or delete again until all were observed or five minutes have passed: an event
 * may be lost, and must not block the controller forever.
 * Source: pkg/controller/controller_utils.go, ControllerExpectations and UIDTrackingControllerExpectations
 */
export interface Expectations {
  /** True when all expected writes were observed, nothing is expected, or the expectation has timed out. */
  satisfied(key: ObjectKey): boolean;
  /**
   * Time in ms until expected writes that have not been observed time out; undefined without any. A Pod that was created and
   * deleted while the watch was interrupted is never observed, and no event follows: the owner has to be reconciled then.
   */
  pendingMs(key: ObjectKey): number | undefined;
  /** Replaces the key's expectations. */
  expectCreations(key: ObjectKey, count: number): void;
  /** Replaces the key's expectations. @param uids of the objects to be deleted */
  expectDeletions(key: ObjectKey, uids: readonly string[]): void;
  /** Expects creations and deletions; replaces the key's expectations. */
  expect(key: ObjectKey, creations: number, deletedUids: readonly string[]): void;
  /** A creation was observed, or the create request failed. */
  creationObserved(key: ObjectKey): void;
  /** A deletion was observed, or the delete request failed; each uid counts once. */
  deletionObserved(key: ObjectKey, uid: string): void;
  forget(key: ObjectKey): void;
}

/** @param clock its monotonic time decides when expected writes time out */
export function newExpectations(clock: Clock): Expectations {
  const all = new Map<ObjectKey, { creations: number; deletions: Set<string>; since: number }>();
  const expect = (key: ObjectKey, creations: number, deletedUids: readonly string[]): void =>
    void all.set(key, { creations, deletions: new Set(deletedUids), since: clock.monotonic() });
  const pendingMs = (key: ObjectKey): number | undefined => {
    const expected = all.get(key);
    if (expected === undefined || (expected.creations <= 0 && expected.deletions.size === 0)) return undefined;
    const leftMs = expectationsTimeoutMs - (clock.monotonic() - expected.since);
    return leftMs < 0 ? undefined : leftMs + 1;
  };
  return {
    satisfied: (key) => pendingMs(key) === undefined,
    pendingMs,
    expect,
    expectCreations: (key, count) => expect(key, count, []),
    expectDeletions: (key, uids) => expect(key, 0, uids),
    creationObserved(key) {
      const expected = all.get(key);
      if (expected !== undefined) expected.creations--;
    },
    deletionObserved: (key, uid) => void all.get(key)?.deletions.delete(uid),
    forget: (key) => void all.delete(key),
  };
}

const expectationsTimeoutMs = 5 * 60_000;
