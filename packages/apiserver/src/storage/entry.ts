import { ownMemory } from "@coxswain/apimachinery/codec/own-memory";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry } from "./storage.ts";

/** The forms an entry has in memory, and what selectors see of it. */
export interface EntryCodec {
  /** As etcd holds it: the object without its resourceVersion. */
  fromStored(bytes: Buffer): KubeObject;
  toJson(object: KubeObject): string;
  fromJson(bytes: Buffer): KubeObject;
  fieldsOf(object: KubeObject): Record<string, string>;
}

/**
 * An `Entry` that holds the decoded object while it is hot and only bytes when it is not: JSON, or what etcd holds. At most
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

/**
 * Drops what can be made again, at once.
 * @param stored the bytes that the entry was decoded from, for entries of a first list, which nobody has asked for yet:
 * they are held instead of JSON, which is made when somebody does. A server is ready sooner for it.
 */
export function cool(entry: Entry, stored?: Buffer): void {
  (entry as StoredEntry).cool(stored);
}

/**
 * A newer entry has come in this one's place: from now on its bytes are wanted, if anything. Its object would otherwise be among
 * the hot ones for thousands of changes, long enough to be copied by each young collection. Encodes nothing for that.
 */
export function retire(entry: Entry): void {
  (entry as StoredEntry).retire();
}

/** The bytes that etcd holds of an entry, kept as long as it is hot: an update asks whether it changes any. */
export function storedBytes(entry: Entry, make: () => Buffer): Buffer {
  return entry.memo(storedSlot, make);
}

const storedSlot = "stored";

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

/** Encoded bytes apart from their entry, so that those in the queue do not keep entries that are no more. */
interface KeptBytes {
  readonly slot: string;
  /** undefined: dropped, or not made yet. */
  bytes: Buffer | undefined;
  /** 0: never made. */
  sizeBytes: number;
  /** Asked for since its last turn in the queue. */
  used: boolean;
  /** When it came into the queue, monotonic ms. */
  since: number;
  readonly next: KeptBytes | undefined;
}

/** What all kept encodings of the process may hold together. */
export const keptBytesLimit = 128 * 1024 * 1024;
/** What nobody asked for in this time goes when others come, much of it having belonged to entries that are no more. */
export const keptIdleMs = 5 * 60_000;
let keptTotal = 0;
/** In the order of their turns to be dropped, beginning at `keptFrom`. */
let keptQueue: KeptBytes[] = [];
let keptFrom = 0;

/** Bytes of kept encodings that the process holds now; at most `keptBytesLimit`. */
export const keptEncodingBytes = (): number => keptTotal;

function keepBytes(kept: KeptBytes, bytes: Buffer): void {
  kept.sizeBytes = bytes.length;
  if (bytes.length > keptBytesLimit / 8) return;
  const now = performance.now();
  dropIdle(now);
  // A second chance for what was used since its last turn; each one only once in a row, so that this ends.
  for (let chances = 100; keptTotal + bytes.length > keptBytesLimit; ) {
    if (takeTurn(now, chances > 0)) chances--;
  }
  if (keptFrom > 1000 && keptFrom * 2 > keptQueue.length) {
    keptQueue = keptQueue.slice(keptFrom);
    keptFrom = 0;
  }
  kept.bytes = bytes;
  kept.used = false;
  kept.since = now;
  keptTotal += bytes.length;
  keptQueue.push(kept);
}

function dropIdle(now: number): void {
  while (keptFrom < keptQueue.length && now - (keptQueue[keptFrom] as KeptBytes).since > keptIdleMs) takeTurn(now, true);
}

/** The oldest of the queue goes, or, if it may and was used, to the end. @returns whether it stays */
function takeTurn(now: number, mayStay: boolean): boolean {
  const oldest = keptQueue[keptFrom++] as KeptBytes;
  if (oldest.used && mayStay) {
    oldest.used = false;
    oldest.since = now;
    keptQueue.push(oldest);
    return true;
  }
  keptTotal -= oldest.sizeBytes;
  oldest.bytes = undefined;
  return false;
}

/** Bytes in memory of their own, where a newline follows them: a GET answers with both and copies nothing. */
function beforeNewline(json: string): Buffer {
  const size = Buffer.byteLength(json);
  const line = Buffer.allocUnsafeSlow(size + 1);
  line.write(json);
  line[size] = 0x0a;
  return line.subarray(0, -1);
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
  /** Only as long as there is no JSON. */
  #stored: Buffer | undefined;
  #memo: Map<string, unknown> | undefined;
  #kept: KeptBytes | undefined;

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
    this.#object ??= this.#decoded();
    return this.#object;
  }

  #decoded(): KubeObject {
    if (this.#json !== undefined) return this.codec.fromJson(this.#json);
    const object = this.codec.fromStored(this.#stored as Buffer);
    object.metadata.resourceVersion = String(this.revision);
    return object;
  }

  json(): Buffer {
    if (this.#json === undefined) {
      this.#json = beforeNewline(this.codec.toJson(this.#object ?? this.#decoded()));
      this.#stored = undefined;
    }
    return this.#json;
  }

  jsonLine(): Buffer {
    const { buffer, byteOffset, byteLength } = this.json();
    return Buffer.from(buffer, byteOffset, byteLength + 1);
  }

  memo<T>(slot: string, make: (entry: Entry) => T): T {
    this.touch();
    this.#memo ??= new Map();
    if (this.#memo.has(slot)) return this.#memo.get(slot) as T;
    const value = make(this);
    this.#memo?.set(slot, value);
    return value;
  }

  kept(slot: string, make: (object: KubeObject) => Buffer): Buffer {
    const kept = this.#keptIn(slot);
    return kept.bytes ?? this.#keep(kept, make);
  }

  keptSize(slot: string, make: (object: KubeObject) => Buffer): number {
    const kept = this.#keptIn(slot);
    if (kept.sizeBytes === 0) this.#keep(kept, make);
    return kept.sizeBytes;
  }

  #keptIn(slot: string): KeptBytes {
    // Nearly always there is one slot; an entry has no room for a map that nobody uses.
    for (let kept = this.#kept; kept !== undefined; kept = kept.next) {
      if (kept.slot !== slot) continue;
      kept.used = true;
      return kept;
    }
    this.#kept = { slot, bytes: undefined, sizeBytes: 0, used: false, since: 0, next: this.#kept };
    return this.#kept;
  }

  /** Without warming the entry: who reads thousands for their bytes needs none of the objects again. */
  #keep(kept: KeptBytes, make: (object: KubeObject) => Buffer): Buffer {
    const bytes = ownMemory(make(this.#object ?? this.#decoded()));
    keepBytes(kept, bytes);
    return bytes;
  }

  with(object: KubeObject): Entry {
    return newUnstoredEntry(this.codec, this.key, object);
  }

  cool(stored?: Buffer): void {
    if (stored !== undefined && this.#json === undefined) this.#stored = ownMemory(stored);
    if (this.#object !== undefined && this.#stored === undefined) this.json();
    this.#object = undefined;
    this.#memo = undefined;
    this.#isHot = false;
    this.used = false;
  }

  retire(): void {
    const stored = this.#memo?.get(storedSlot) as Buffer | undefined;
    if (this.#json !== undefined || this.#stored !== undefined || stored !== undefined) this.cool(stored);
  }

  /** Bytes that this entry holds at least; for bounds on histories. */
  get sizeBytes(): number {
    return (this.#json ?? this.#stored)?.byteLength ?? 2048;
  }

  touch(): void {
    this.used = true;
    if (this.#isHot) return;
    this.#isHot = true;
    keepHot(this);
  }
}

export const sizeOf = (entry: Entry): number => (entry as StoredEntry).sizeBytes;
