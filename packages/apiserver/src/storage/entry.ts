import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry } from "./storage.ts";

/** The two forms an entry has in memory, and what selectors see of it. */
export interface EntryCodec {
  toJson(object: KubeObject): Buffer;
  fromJson(bytes: Buffer): KubeObject;
  fieldsOf(object: KubeObject): Record<string, string>;
}

/**
 * An `Entry` that holds the decoded object while it is hot and only the JSON bytes when it is not. At most
 * `hotEntries` entries of the process are decoded at a time (second chance: one that was used since its last turn
 * stays for another), which bounds the heap whatever is read.
 */
export function newEntry(codec: EntryCodec, key: string, revision: number, object: KubeObject): Entry {
  object.metadata.resourceVersion = String(revision);
  return new StoredEntry(codec, key, revision, object.metadata.labels ?? noLabels, codec.fieldsOf(object), object);
}

/** An entry that no store has seen (dry-run): the object as it is, without a resourceVersion of its own. */
export function newUnstoredEntry(codec: EntryCodec, key: string, object: KubeObject): Entry {
  const revision = Number(object.metadata.resourceVersion ?? 0) || 0;
  return new StoredEntry(codec, key, revision, object.metadata.labels ?? noLabels, codec.fieldsOf(object), object);
}

/** The same state under another revision: a deletion's event carries the last state with the revision of the deletion. */
export function atRevision(entry: Entry, revision: number): Entry {
  const { codec } = entry as StoredEntry;
  const last = entry.object();
  const object = { ...last, metadata: { ...last.metadata, resourceVersion: String(revision) } };
  return new StoredEntry(codec, entry.key, revision, entry.labels, entry.fields, object);
}

/** Drops what can be made again, at once; for entries of a first list, which nobody has asked for yet. */
export function cool(entry: Entry): void {
  (entry as StoredEntry).cool();
}

/** Takes a new entry of a cache among the hot ones, so that its turn to be dropped comes. */
export function warm(entry: Entry): void {
  (entry as StoredEntry).touch();
}

const noLabels: Readonly<Record<string, string>> = Object.freeze({});
const hotEntries = 4096;
const hot: (StoredEntry | undefined)[] = new Array(hotEntries).fill(undefined);
let hand = 0;

function keepHot(entry: StoredEntry): void {
  for (let tries = 0; tries < hotEntries; tries++) {
    const resident = hot[hand];
    if (resident?.used) {
      resident.used = false;
      hand = (hand + 1) % hotEntries;
      continue;
    }
    resident?.cool();
    break;
  }
  hot[hand] = entry;
  hand = (hand + 1) % hotEntries;
}

class StoredEntry implements Entry {
  readonly codec: EntryCodec;
  readonly key: string;
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
  /** Asked for since its last turn in the ring of hot entries. */
  used = false;
  #isHot = false;
  #object: KubeObject | undefined;
  #json: Buffer | undefined;
  #memo: Map<string, unknown> | undefined;

  constructor(
    codec: EntryCodec,
    key: string,
    revision: number,
    labels: Readonly<Record<string, string>>,
    fields: Readonly<Record<string, string>>,
    object: KubeObject,
  ) {
    this.codec = codec;
    this.key = key;
    this.revision = revision;
    this.labels = labels;
    this.fields = fields;
    this.#object = object;
  }

  object(): KubeObject {
    this.touch();
    this.#object ??= this.codec.fromJson(this.#json as Buffer);
    return this.#object;
  }

  json(): Buffer {
    this.#json ??= this.codec.toJson(this.#object as KubeObject);
    return this.#json;
  }

  memo<T>(slot: string, make: (entry: Entry) => T): T {
    this.touch();
    this.#memo ??= new Map();
    if (this.#memo.has(slot)) return this.#memo.get(slot) as T;
    const value = make(this);
    this.#memo?.set(slot, value);
    return value;
  }

  with(object: KubeObject): Entry {
    return newUnstoredEntry(this.codec, this.key, object);
  }

  cool(): void {
    if (this.#object !== undefined) this.json();
    this.#object = undefined;
    this.#memo = undefined;
    this.#isHot = false;
    this.used = false;
  }

  /** Bytes that this entry holds at least; for bounds on histories. */
  get sizeBytes(): number {
    return this.#json?.byteLength ?? 2048;
  }

  touch(): void {
    this.used = true;
    if (this.#isHot) return;
    this.#isHot = true;
    keepHot(this);
  }
}

export const sizeOf = (entry: Entry): number => (entry as StoredEntry).sizeBytes;
