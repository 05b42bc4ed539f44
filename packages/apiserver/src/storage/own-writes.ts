import { ownMemory } from "@coxswain/apimachinery/objects/codec/json-encode";
import type { EncodedObject } from "@coxswain/apimachinery/objects/codec/protobuf-reuse";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { TransientMap } from "@coxswain/apimachinery/process/memory/transient-map";
import { type Entry, newEntry } from "./entry.ts";
import type { ObjectCodec } from "./object-codec.ts";

/** Limit of answered writes whose events are outstanding; beyond it (the watch is interrupted) the oldest are decoded again. */
const mostAnswered = 1_000;
/** Decoding more bytes may take longer than a turn's share of work. */
const longBytes = 64 * 1024;

/**
 * Writes of this process whose events have not arrived, of one resource: an event reuses the entry of its write's answer,
 * whichever of the two arrives first.
 */
export class OwnWrites {
  readonly #sent = new TransientMap<string, OwnWrite>();
  readonly #answered = new TransientMap<number, OwnWrite>();
  readonly #arrived: () => number;

  /** @param arrived the revision up to which events have arrived */
  constructor(arrived: () => number) {
    this.#arrived = arrived;
  }

  /** Called before the write is sent to etcd. */
  add(write: OwnWrite): void {
    this.#sent.set(write.key, write);
  }

  /** @param revision of the write; undefined: it failed */
  answered(write: OwnWrite, revision: number | undefined): void {
    // Otherwise its event has arrived, or a later write of the object has taken its place.
    if (this.#sent.get(write.key) !== write) return;
    this.#sent.delete(write.key);
    if (revision === undefined || revision <= this.#arrived()) return;
    this.#answered.set(revision, write);
    if (this.#answered.size > mostAnswered) this.#answered.delete(Number(this.#answered.firstKey()));
  }

  /**
   * The entry of the write whose event this is, which is then forgotten.
   * @returns undefined for a write of another process; a promise for a large object
   */
  take(key: string, value: Buffer, revision: number): Entry | Promise<Entry> | undefined {
    const answered = this.#answered.get(revision);
    if (answered !== undefined) {
      this.#answered.delete(revision);
      // After a restore of etcd, the revision may belong to another object.
      return answered.key === key ? answered.ready(revision) : undefined;
    }
    const sent = this.#sent.get(key);
    if (sent?.value.equals(value) !== true) return undefined;
    this.#sent.delete(key);
    return sent.ready(revision);
  }

  clear(): void {
    this.#answered.clear();
  }
}

/** A write of this process. Response and watch event share its entry. */
export class OwnWrite {
  readonly key: string;
  /** The encoded value that is sent to etcd. */
  readonly value: Buffer;
  readonly #codec: ObjectCodec;
  readonly #bytes: Buffer;
  readonly #before: Entry | undefined;
  /** Set while a large object is being decoded. */
  #decoding: Steps<KubeObject> | undefined;
  #decoded: KubeObject | undefined;
  #entry: Entry | undefined;
  /** Set for a large object. */
  #turns: Turns | undefined;
  #ready: { readonly revision: number; readonly entry: Promise<Entry> } | undefined;

  /**
   * @param bytes the plain bytes that `value` holds in encrypted form
   * @param before the entry that is replaced; parts of equal bytes are not decoded again
   */
  constructor(codec: ObjectCodec, key: string, bytes: Buffer, value: Buffer, before: Entry | undefined) {
    this.key = key;
    this.value = value;
    this.#codec = codec;
    this.#bytes = bytes;
    this.#before = before;
  }

  /** Decodes the written object while etcd processes the write, so that the event is dispatched sooner. */
  prepare(turns: Turns): void {
    if (this.#bytes.length <= longBytes) return void setImmediate(() => this.#prepare());
    this.#turns = turns;
    this.#decoding = this.#decodeLarge();
    void turns.run(this.#decodeInSteps());
  }

  #prepare(): void {
    if (this.#entry !== undefined) return;
    try {
      this.#decoded = this.#decode();
    } catch {
      // `entry` decodes again and reports the error to its caller; thrown here it would be uncaught and end the process.
    }
  }

  /** Run by `prepare`, and by `ready`, which goes on where `prepare` waits for a turn. */
  *#decodeInSteps(): Steps<void> {
    for (let steps = this.#decoding; steps !== undefined; steps = this.#decoding) {
      try {
        const { done, value } = steps.next();
        if (!done) yield;
        else [this.#decoded, this.#decoding] = [value, undefined];
      } catch {
        this.#decoding = undefined; // as in `#prepare`: `entry` decodes again and reports the error
      }
    }
  }

  /**
   * As `entry`; a large object is decoded, and encoded for watchers, in turns. They precede other long work, since no cache gets later
   * changes before this one, and reads of any resource wait for them.
   */
  ready(revision: number): Entry | Promise<Entry> {
    if (this.#turns === undefined) return this.entry(revision);
    if (this.#ready?.revision !== revision) this.#ready = { revision, entry: this.#makeReady(revision, this.#turns) };
    return this.#ready.entry;
  }

  async #makeReady(revision: number, { ahead }: Turns): Promise<Entry> {
    await ahead.run(this.#decodeInSteps());
    const made = this.entry(revision);
    await ahead.run(made.encodeInSteps());
    return made;
  }

  /** Returns the entry at `revision`; repeated calls return the same one. */
  entry(revision: number): Entry {
    if (this.#entry?.revision === revision) return this.#entry;
    const entry = newEntry(this.#codec, this.key, revision, this.#decoded ?? this.#decode());
    this.#decoded = undefined; // owned by the entry, which has set its resourceVersion
    entry.stored(() => ownMemory(this.#bytes));
    this.#entry = entry;
    return entry;
  }

  /** Reads the state before within the first step, whose errors `#decodeInSteps` catches. */
  *#decodeLarge(): Steps<KubeObject> {
    return yield* this.#codec.fromStoredInSteps(this.#bytes, this.#encodedBefore());
  }

  #decode(): KubeObject {
    return this.#codec.fromStored(this.#bytes, this.#encodedBefore());
  }

  #encodedBefore(): EncodedObject | undefined {
    const before = this.#before;
    if (before === undefined) return undefined;
    const object = before.object();
    return { object, bytes: before.stored(() => this.#codec.toStored(object)) };
  }
}
