import type { WatchEvent } from "../storage/storage.ts";

/** A batch of encoded events: separately, and concatenated. Shared: read only. */
export interface Batch {
  readonly frames: readonly Buffer[];
  readonly bytes: Buffer;
}

/** Encodes events from the front until they exceed a limit, and counts them. */
export type Framer = (events: readonly WatchEvent[]) => Batch;
