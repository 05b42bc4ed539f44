import { ownMemory } from "@coxswain/apimachinery/codec/own-memory";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { newEntry, storedBytes } from "../entry.ts";
import type { ObjectCodec } from "../object-codec.ts";
import type { Entry } from "../storage.ts";

type WithSpec = KubeObject & { spec?: unknown };

/** A write of this process. Response and watch event share its entry, whichever arrives first. */
export interface OwnWrite {
  /** The bytes sent to etcd. */
  readonly value: Buffer;
  /** Decodes the written object while etcd processes the write, so that the event is dispatched sooner. */
  prepare(): void;
  /** Returns the entry at `revision`; repeated calls return the same one. */
  entry(revision: number): Entry;
}

/**
 * @param bytes the plain bytes that `value` holds in encrypted form
 * @param before the entry that is replaced. An equal spec is shared with it, which makes
 * comparisons by identity possible (`validatePodUpdate`)
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
          // `entry` decodes again and reports the error to its caller; thrown here it would be uncaught and end the process.
        }
      });
    },
    entry(revision) {
      if (made?.revision === revision) return made;
      made = newEntry(codec, key, revision, decoded ?? decode());
      decoded = undefined; // owned by the entry, which has set its resourceVersion
      storedBytes(made, () => ownMemory(bytes));
      return made;
    },
  };
}
