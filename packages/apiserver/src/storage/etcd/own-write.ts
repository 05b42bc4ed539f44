import { ownMemory } from "@coxswain/apimachinery/codec/own-memory";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { newEntry, storedBytes } from "../entry.ts";
import type { ObjectCodec } from "../object-codec.ts";
import type { Entry } from "../storage.ts";

type WithSpec = KubeObject & { spec?: unknown };

/** A write of ours: whoever hears of it first, by its answer or its event, has its entry for both. */
export interface OwnWrite {
  /** As etcd gets it. */
  readonly value: Buffer;
  /** Decodes while etcd writes: what waits for the event gets it sooner. */
  prepare(): void;
  entry(revision: number): Entry;
}

/**
 * @param bytes what `value` holds encrypted
 * @param before what is replaced; a spec that stays the same is shared with it, and known by that (`validatePodUpdate`)
 */
export function ownWrite(codec: ObjectCodec, key: string, bytes: Buffer, value: Buffer, before: Entry | undefined): OwnWrite {
  let decoded: KubeObject | undefined;
  let made: Entry | undefined;
  const decode = (): KubeObject => {
    if (before === undefined) return codec.fromStored(bytes);
    const then: WithSpec = before.object();
    const object: WithSpec = codec.fromStored(bytes, { object: then, bytes: storedBytes(before, () => codec.toStored(then)) });
    if (then.spec !== undefined && deepEqual(object.spec, then.spec)) object.spec = then.spec;
    return object;
  };
  return {
    value,
    prepare() {
      setImmediate(() => {
        if (made !== undefined) return;
        try {
          decoded = decode();
        } catch {
          // `entry` meets it again, where somebody is told; nobody would catch it here, and the process would end.
        }
      });
    },
    entry(revision) {
      if (made?.revision === revision) return made;
      made = newEntry(codec, key, revision, decoded ?? decode());
      decoded = undefined; // it has this revision now
      storedBytes(made, () => ownMemory(bytes));
      return made;
    },
  };
}
