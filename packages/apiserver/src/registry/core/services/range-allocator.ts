import { randomInt } from "node:crypto";
import type { RangeAllocation } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Storage } from "../../../storage/storage.ts";
import { type Bitmap, decodeBitmap } from "./bitmap.ts";

/** A failed allocation; `message` is upstream's text. */
export class AllocationError extends Error {}

/**
 * Allocates numbers 0 … size-1, recorded in one stored RangeAllocation. Every change is a compare-and-swap, so that several
 * API servers can share it.
 * Source: pkg/registry/core/service/allocator/storage/storage.go
 */
export interface RangeAllocator {
  /** @param dryRun only checks @throws AllocationError when the number is allocated */
  take(offset: number, dryRun: boolean): Promise<void>;
  /**
   * Allocates any free number.
   * @param except numbers that count as allocated: a dry run records none, not even those that it has chosen before
   * @throws AllocationError when the range is full
   */
  takeAny(dryRun: boolean, except?: ReadonlySet<number>): Promise<number>;
  /** Never fails: numbers that cannot be released now stay allocated until the repair loop finds them unused. */
  release(offsets: readonly number[]): Promise<void>;
  /** Read-modify-write of the stored range, for repairs; `edit` may run several times. */
  change(edit: (bitmap: Bitmap) => void): Promise<void>;
}

export function newRangeAllocator(options: {
  /** Lazy: stores are created after the catalogue. */
  storage: () => Storage;
  /** `serviceips`, `servicenodeports`. */
  key: string;
  /** `10.96.0.0/12`, `30000-32767`. */
  range: string;
  size: number;
  texts: { taken: string; full: string };
  /** Called after each change of the stored range. @param used allocated numbers */
  onChange?: (used: number, free: number) => void;
}): RangeAllocator {
  const { key, range, size, texts } = options;

  async function change(edit: (bitmap: Bitmap) => void, dryRun = false): Promise<void> {
    let changed: Bitmap | undefined;
    await options.storage().guaranteedUpdate(
      key,
      (entry) => {
        const current = entry?.object<RangeAllocation>();
        // The configured range changed: stored offsets are meaningless.
        const bitmap = decodeBitmap(current?.range === range ? (current.data ?? "") : "", size);
        edit(bitmap);
        changed = bitmap;
        const next: RangeAllocation = {
          apiVersion: "v1",
          kind: "RangeAllocation",
          metadata: { ...current?.metadata },
          range,
          data: bitmap.encode(),
        };
        return next;
      },
      { ignoreNotFound: true, dryRun },
    );
    if (options.onChange === undefined || changed === undefined || dryRun) return;
    const used = changed.count();
    options.onChange(used, size - used);
  }

  return {
    take: (offset, dryRun) =>
      change((bitmap) => {
        if (bitmap.has(offset)) throw new AllocationError(texts.taken);
        bitmap.set(offset);
      }, dryRun),
    async takeAny(dryRun, except) {
      let chosen = -1;
      await change((bitmap) => {
        chosen = anyFree(size, (offset) => bitmap.has(offset) || except?.has(offset) === true);
        if (chosen < 0) throw new AllocationError(texts.full);
        bitmap.set(chosen);
      }, dryRun);
      return chosen;
    },
    release: (offsets) =>
      change((bitmap) => {
        for (const offset of offsets) bitmap.clear(offset);
      }).catch(() => {}),
    change,
  };
}

/** Starts at a random offset, so that a released number is not reused immediately. */
function anyFree(size: number, isTaken: (offset: number) => boolean): number {
  if (size <= 0) return -1;
  const start = randomInt(size);
  for (let i = 0; i < size; i++) {
    const offset = (start + i) % size;
    if (!isTaken(offset)) return offset;
  }
  return -1;
}
