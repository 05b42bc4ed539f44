import type { Clock } from "../clock/clock.ts";
import type { ObjectKey } from "../meta/object-key.ts";

/**
 * Own writes that the cache does not show yet. A controller that creates or deletes says so first, its sources say what
 * they saw, and until the counts meet (or five minutes passed: an event may be lost, a controller must not stop for
 * good) it does not create or delete again.
 * Source: pkg/controller/controller_utils.go, ControllerExpectations and UIDTrackingControllerExpectations
 */
export interface Expectations {
  /** True when everything expected was seen, nothing is expected, or it was expected too long ago. */
  satisfied(key: ObjectKey): boolean;
  /** Replaces what was expected for the key. */
  expectCreations(key: ObjectKey, count: number): void;
  /** Replaces what was expected for the key. @param uids what identifies each object that will be deleted. */
  expectDeletions(key: ObjectKey, uids: readonly string[]): void;
  /** Both at once; replaces what was expected for the key. */
  expect(key: ObjectKey, creations: number, deletedUids: readonly string[]): void;
  /** Seen, or the create failed. */
  creationObserved(key: ObjectKey): void;
  /** Seen, or the delete failed; the same uid counts once. */
  deletionObserved(key: ObjectKey, uid: string): void;
  forget(key: ObjectKey): void;
}

export function newExpectations(clock: Clock): Expectations {
  const all = new Map<ObjectKey, { creations: number; deletions: Set<string>; since: number }>();
  const expect = (key: ObjectKey, creations: number, deletedUids: readonly string[]): void =>
    void all.set(key, { creations, deletions: new Set(deletedUids), since: clock.monotonic() });
  return {
    satisfied(key) {
      const expected = all.get(key);
      if (expected === undefined) return true;
      if (expected.creations <= 0 && expected.deletions.size === 0) return true;
      return clock.monotonic() - expected.since > expectationsTimeoutMs;
    },
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
