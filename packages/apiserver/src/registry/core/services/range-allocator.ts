import { randomInt } from "node:crypto";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { RangeAllocation } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Storage } from "../../../storage/storage.ts";
import { type Bitmap, decodeBitmap } from "./bitmap.ts";

/** What a range could not give. `message` is upstream's text. */
export class AllocationError extends Error {}

/**
 * Numbers 0 … size-1 given out once each, kept in one stored RangeAllocation. Every change is one compare-and-swap on
 * it, so several API servers may share it.
 * Source: pkg/registry/core/service/allocator/storage/storage.go
 */
export interface RangeAllocator {
  /** @param dryRun looks and takes nothing. @throws AllocationError when it is taken. */
  take(offset: number, dryRun: boolean): Promise<void>;
  /** Any free number. @throws AllocationError when there is none. */
  takeAny(dryRun: boolean): Promise<number>;
  /** Never fails: what cannot be given back now stays taken until the repair sees that nobody has it. */
  release(offsets: readonly number[]): Promise<void>;
  /** One write of the stored range; `edit` may run many times. For repairs. */
  change(edit: (bitmap: Bitmap) => void): Promise<void>;
}

export function newRangeAllocator(options: {
  /** Late: stores are made after the catalogue. */
  storage: () => Storage;
  /** `serviceips`, `servicenodeports`. */
  key: string;
  /** `10.96.0.0/12`, `30000-32767`. */
  range: string;
  size: number;
  texts: { taken: string; full: string };
}): RangeAllocator {
  const { key, range, size, texts } = options;

  async function change(edit: (bitmap: Bitmap) => void, dryRun = false): Promise<void> {
    await options.storage().guaranteedUpdate(
      key,
      (entry) => {
        const current = entry?.object() as RangeAllocation | undefined;
        // Another range than last time: what was given out belongs to other numbers now.
        const bitmap = decodeBitmap(current?.range === range ? (current.data ?? "") : "", size);
        edit(bitmap);
        const next: RangeAllocation = {
          apiVersion: "v1",
          kind: "RangeAllocation",
          metadata: { ...current?.metadata },
          range,
          data: bitmap.encode(),
        };
        return next as KubeObject;
      },
      { ignoreNotFound: true, dryRun },
    );
  }

  return {
    take: (offset, dryRun) =>
      change((bitmap) => {
        if (bitmap.has(offset)) throw new AllocationError(texts.taken);
        bitmap.set(offset);
      }, dryRun),
    async takeAny(dryRun) {
      let chosen = -1;
      await change((bitmap) => {
        chosen = anyFree(size, (offset) => bitmap.has(offset));
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

/** Begins somewhere at random, so that a number that was just given back is not soon another's. */
function anyFree(size: number, isTaken: (offset: number) => boolean): number {
  if (size <= 0) return -1;
  const start = randomInt(size);
  for (let i = 0; i < size; i++) {
    const offset = (start + i) % size;
    if (!isTaken(offset)) return offset;
  }
  return -1;
}
