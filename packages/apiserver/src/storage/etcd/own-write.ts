import { newEntry } from "../entry.ts";
import type { ObjectCodec } from "../object-codec.ts";
import type { Entry } from "../storage.ts";

/** A write of ours: whoever hears of it first, by its answer or its event, decodes it for both. */
export interface OwnWrite {
  /** As etcd gets it. */
  readonly value: Buffer;
  entry(revision: number): Entry;
}

export function ownWrite(codec: ObjectCodec, key: string, bytes: Buffer, value: Buffer): OwnWrite {
  let made: Entry | undefined;
  return {
    value,
    entry(revision) {
      if (made?.revision !== revision) made = newEntry(codec, key, revision, codec.fromStored(bytes));
      return made;
    },
  };
}
