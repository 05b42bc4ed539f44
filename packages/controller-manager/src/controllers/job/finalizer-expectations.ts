import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";

/**
 * Pods whose tracking finalizer was removed but whose cached copy still shows it. They are tracked here because they
 * would otherwise be counted twice.
 * Source: pkg/controller/job/tracking_utils.go
 */
export interface FinalizerExpectations {
  of(key: ObjectKey): ReadonlySet<string>;
  /** Adds to the existing expectations of the key. */
  expect(key: ObjectKey, uids: readonly string[]): void;
  /**
   * Records that the removal was observed, or that the request failed.
   * @returns whether it was expected
   */
  observed(key: ObjectKey, uid: string): boolean;
  forget(key: ObjectKey): void;
}

export function newFinalizerExpectations(): FinalizerExpectations {
  const all = new Map<ObjectKey, Set<string>>();
  return {
    of: (key) => new Set(all.get(key)),
    expect(key, uids) {
      if (uids.length === 0) return;
      const expected = all.getOrInsertComputed(key, () => new Set());
      for (const uid of uids) expected.add(uid);
    },
    observed(key, uid) {
      const expected = all.get(key);
      if (expected?.delete(uid) !== true) return false;
      if (expected.size === 0) all.delete(key);
      return true;
    },
    forget: (key) => void all.delete(key),
  };
}
