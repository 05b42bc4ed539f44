import { ownMemory } from "@coxswain/apimachinery/objects/codec/json-encode";
import { hasManyValues } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { ByteShare, CachedBytes } from "@coxswain/apimachinery/process/memory/byte-share";

/** Conversions between the forms that an entry has in memory, and the fields that selectors match. */
export interface EntryCodec {
  /** Decodes the stored form: the object without its resourceVersion. */
  fromStored(bytes: Buffer): KubeObject;
  toJson(object: KubeObject): string;
  /** As `toJson`, in steps for many values. */
  toJsonInSteps(object: KubeObject): Steps<string>;
  fromJson(bytes: Buffer): KubeObject;
  fieldsOf(object: KubeObject): Record<string, string>;
  /** Memory accounting shared by all entries of the program; undefined for entries that do not outlive a request. */
  readonly memory?: EntryMemory;
}

const storedSlot = "stored";
/** Encoding or decoding more bytes may take longer than a turn's share of work. */
const largeBytes = 64 * 1024;

const noLabels: Readonly<Record<string, string>> = Object.freeze({});
/** Maximum number of entries that hold their decoded object at a time. */
const hotEntries = 4096;

/** Larger entries that hold their decoded object are limited by their size, too. */
const countedFromBytes = 8 * 1024;

/** The memory that entries share beyond their JSON: decoded objects and other encodings. */
export class EntryMemory {
  /** Memory of encodings other than the JSON. */
  readonly encodings: ByteShare;
  readonly #hot: (Entry | undefined)[] = new Array(hotEntries).fill(undefined);
  #hand = 0;
  readonly #mostLargeBytes: number;
  /** Large decoded entries, longest unused first, with the size of their JSON. */
  readonly #large = new Map<Entry, number>();
  #largeBytes = 0;

  /** @param mostLargeBytes decoded objects take three to ten times as much as their JSON */
  constructor(encodings: ByteShare, mostLargeBytes = Number.POSITIVE_INFINITY) {
    this.encodings = encodings;
    this.#mostLargeBytes = mostLargeBytes;
  }

  /** Size of the JSON of all large decoded entries. */
  get largeBytes(): number {
    return this.#largeBytes;
  }

  /** Counts a hot entry when its size becomes known; beyond the limit other large ones drop their decoded objects. */
  weigh(entry: Entry, sizeBytes: number): void {
    if (sizeBytes < countedFromBytes) return;
    this.forget(entry);
    this.#large.set(entry, sizeBytes);
    this.#largeBytes += sizeBytes;
    let chances = this.#large.size;
    for (const [other, bytes] of this.#large) {
      if (this.#largeBytes <= this.#mostLargeBytes) return;
      if (other === entry) continue;
      if (other.used && chances-- > 0) {
        other.used = false;
        this.#large.delete(other);
        this.#large.set(other, bytes);
      } else other.cool();
    }
  }

  /** Stops counting the size of the entry. */
  forget(entry: Entry): void {
    const sizeBytes = this.#large.get(entry);
    if (sizeBytes === undefined) return;
    this.#large.delete(entry);
    this.#largeBytes -= sizeBytes;
  }

  /** Adds a decoded entry to the hot ring; when the ring is full, another entry drops its decoded object. @returns its place there */
  keepHot(entry: Entry): number {
    const hot = this.#hot;
    let resident = hot[this.#hand];
    for (let tries = 0; tries < hotEntries && resident?.used; tries++) {
      resident.used = false;
      this.#hand = (this.#hand + 1) % hotEntries;
      resident = hot[this.#hand];
    }
    // When all entries were used since the last round, the one at the hand is evicted anyway.
    const place = this.#hand;
    hot[place]?.cool();
    hot[place] = entry;
    this.#hand = (place + 1) % hotEntries;
    return place;
  }

  /** The entry is no longer decoded. The ring would keep its JSON in memory when nothing else refers to it any more. */
  leave(entry: Entry, place: number): void {
    if (this.#hot[place] === entry) this.#hot[place] = undefined;
    this.forget(entry);
  }
}

class Encoding implements CachedBytes {
  readonly slot: string;
  readonly next: Encoding | undefined;
  /** undefined: evicted, or not encoded yet. */
  bytes: Buffer | undefined;
  /** 0: never encoded. */
  sizeBytes = 0;
  used = false;
  since = 0;

  constructor(slot: string, next: Encoding | undefined) {
    this.slot = slot;
    this.next = next;
  }

  drop(): void {
    this.bytes = undefined;
  }
}

/** The JSON in a separate buffer with a newline at the end, so that a GET response with the newline needs no copy. */
function beforeNewline(json: string): Buffer {
  const size = Buffer.byteLength(json);
  const line = Buffer.allocUnsafeSlow(size + 1);
  line.write(json);
  line[size] = 0x0a;
  return line.subarray(0, -1);
}

/**
 * One object with its encodings; immutable from outside. It holds the decoded object while it is hot, and only bytes otherwise:
 * JSON or the stored form. At most `hotEntries` entries are decoded at a time, which bounds the heap. Eviction is
 * second chance (CLOCK): an entry used since the hand last passed it is kept for another round.
 */
export class Entry {
  /** Relative key, `<namespace>/<name>`. */
  readonly key: string;
  /** The mod revision; `metadata.resourceVersion` in decimal. */
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Selectable fields: `metadata.name`, `metadata.namespace` and what the resource adds (`spec.nodeName`). */
  readonly fields: Readonly<Record<string, string>>;
  /** The entry of the underlying storage that this one shows in another version. */
  readonly origin: Entry | undefined;
  readonly #codec: EntryCodec;
  /** Used since the hand of the hot ring last passed it. */
  used = false;
  /** In the hot ring; undefined: not there. */
  #place: number | undefined;
  /** A cache or a history holds it. Others end with their request, and the hot ring would only prolong their lives. */
  #isKept = false;
  #object: KubeObject | undefined;
  #json: Buffer | undefined;
  /** The stored form; set only while `#json` is undefined. */
  #stored: Buffer | undefined;
  /** `#stored` is what `toStored` made of the object. */
  #isOwnForm = false;
  #memo: Map<string | symbol, unknown> | undefined;
  #kept: Encoding | undefined;

  constructor(
    codec: EntryCodec,
    key: string,
    revision: number,
    object: KubeObject,
    labels = object.metadata.labels ?? noLabels,
    fields: Readonly<Record<string, string>> = codec.fieldsOf(object),
    origin?: Entry,
  ) {
    this.#codec = codec;
    this.key = key;
    this.revision = revision;
    this.labels = labels;
    this.fields = fields;
    this.origin = origin;
    // The origin's memo holds this entry, which joins the hot ring only when it is used: a list would otherwise need two places for each object.
    if (origin !== undefined) this.#isKept = origin.#isKept;
    this.#object = object;
  }

  /**
   * The decoded object with its resourceVersion. Shared: never change it, `structuredClone` or spread first.
   * @typeParam T the kind of the resource that the entry was read from
   */
  object<T extends KubeObject = KubeObject>(): T {
    this.#use();
    this.#object ??= this.#decoded();
    return this.#object as T; // cast: a storage holds objects of one kind, which the caller names
  }

  #decoded(): KubeObject {
    if (this.#json !== undefined) return this.#codec.fromJson(this.#json);
    const object = this.#codec.fromStored(this.#stored!);
    object.metadata.resourceVersion = String(this.revision);
    return object;
  }

  /** The object in its hub version as JSON bytes with apiVersion, kind and resourceVersion, no newline. Shared. */
  json(): Buffer {
    if (this.#json === undefined) {
      this.#json = beforeNewline(this.#codec.toJson(this.#object ?? this.#decoded()));
      this.#stored = undefined;
      this.#weigh();
    }
    return this.#json;
  }

  /** Whether the object is large enough to be encoded and decoded in steps. */
  get isLarge(): boolean {
    const bytes = this.#bytes;
    return bytes === undefined ? hasManyValues(this.#object) : bytes.length > largeBytes;
  }

  /** Length of the JSON or stored form in bytes; undefined when the entry has neither, or it is large. */
  get smallBytes(): number | undefined {
    const length = this.#bytes?.length ?? 0;
    return length > 0 && length <= largeBytes ? length : undefined;
  }

  get #bytes(): Buffer | undefined {
    return this.#json ?? this.#stored ?? this.#storedMemo;
  }

  /** What `toStored` made of the object, if it is known; not what it was decoded from, which may lack defaults. */
  get encoded(): Buffer | undefined {
    return this.#storedMemo;
  }

  get #storedMemo(): Buffer | undefined {
    const memo = this.#memo?.get(storedSlot) as Buffer | undefined; // cast: this slot holds the stored form
    return memo ?? (this.#isOwnForm ? this.#stored : undefined);
  }

  /** Encodes a large object in steps, so that `json()` has it already. */
  *encodeInSteps(): Steps<void> {
    if (this.#json !== undefined || this.#object === undefined) return;
    const json = yield* this.#codec.toJsonInSteps(this.#object);
    this.#json = beforeNewline(json);
    this.#stored = undefined;
    this.#weigh();
  }

  #weigh(): void {
    const bytes = this.#bytes;
    if (this.#place !== undefined && bytes !== undefined) this.#codec.memory?.weigh(this, bytes.length);
  }

  /** `json()` plus a trailing newline, without a copy. Shared. */
  jsonLine(): Buffer {
    const { buffer, byteOffset, byteLength } = this.json();
    return Buffer.from(buffer, byteOffset, byteLength + 1);
  }

  /** Memoizes a value derived from this entry (another version's bytes, protobuf, Table rows, watch frames) while it is hot. */
  memo<T>(slot: string | symbol, make: (entry: Entry) => T): T {
    this.#use();
    this.#memo ??= new Map();
    if (this.#memo.has(slot)) return this.#memo.get(slot) as T; // cast: a slot holds what its `make` returned
    const value = make(this);
    this.#memo?.set(slot, value);
    return value;
  }

  /** True when `memo` returns an earlier result. */
  hasMemo(slot: string): boolean {
    return this.#memo?.has(slot) === true;
  }

  /**
   * The result of `make`, cached longer than the decoded object, within a limit for the process. `make` must be
   * deterministic for a slot. Shared: read only.
   */
  kept(slot: string, make: (object: KubeObject) => Buffer): Buffer {
    const kept = this.#keptIn(slot);
    return kept.bytes ?? this.#keep(kept, make);
  }

  /** Length of `kept`'s result; encodes only when that never happened. */
  keptSize(slot: string, make: (object: KubeObject) => Buffer): number {
    const kept = this.#keptIn(slot);
    if (kept.sizeBytes === 0) this.#keep(kept, make);
    return kept.sizeBytes;
  }

  #keptIn(slot: string): Encoding {
    // An entry mostly has one slot; a linked list saves the memory of a map.
    for (let kept = this.#kept; kept !== undefined; kept = kept.next) {
      if (kept.slot !== slot) continue;
      kept.used = true;
      return kept;
    }
    this.#kept = new Encoding(slot, this.#kept);
    return this.#kept;
  }

  /** Makes what `kept` returns, in steps for large objects. */
  *keepInSteps(slot: string, make: (object: KubeObject) => Steps<Buffer>): Steps<void> {
    const kept = this.#keptIn(slot);
    if (kept.bytes !== undefined) return;
    const bytes = yield* make(this.#object ?? this.#decoded());
    if (kept.bytes === undefined) this.#keep(kept, () => bytes);
  }

  /** Does not mark the entry hot: a list that encodes thousands of entries does not need their objects again. */
  #keep(kept: Encoding, make: (object: KubeObject) => Buffer): Buffer {
    const bytes = ownMemory(make(this.#object ?? this.#decoded()));
    kept.sizeBytes = bytes.length;
    if (this.#codec.memory?.encodings.keep(kept) === true) kept.bytes = bytes;
    return bytes;
  }

  /** An entry with the same key for an object that is not stored (dry-run, the last state of a deletion). */
  with(object: KubeObject): Entry {
    return newUnstoredEntry(this.#codec, this.key, object);
  }

  /** The same state at another revision: a DELETED event carries the last state with the revision of the deletion. */
  atRevision(revision: number): Entry {
    const last = this.object();
    const object = { ...last, metadata: { ...last.metadata, resourceVersion: String(revision) } };
    const entry = new Entry(this.#codec, this.key, revision, object, this.labels, this.fields);
    const encoded = this.#storedMemo;
    entry.#stored = this.#stored ?? encoded; // it contains no resourceVersion
    if (encoded !== undefined) entry.stored(() => encoded);
    return entry;
  }

  /** The stored bytes, memoized while the entry is hot: updates compare against them to detect no-ops. */
  stored(make: () => Buffer): Buffer {
    const known = this.#isOwnForm ? this.#stored : undefined;
    return this.memo(storedSlot, known === undefined ? make : () => known);
  }

  /** As `stored`, in steps. */
  *storedInSteps(make: () => Steps<Buffer>): Steps<Buffer> {
    const known = this.#storedMemo;
    if (known !== undefined) return known;
    const bytes = yield* make();
    return this.stored(() => bytes);
  }

  /**
   * Drops the decoded object and everything else that can be recomputed. Of an object without JSON it keeps the stored form, if that is
   * known: JSON is encoded on first use, which many objects never have.
   * @param stored the bytes that the entry was decoded from, for entries of an initial list that are not read yet
   */
  cool(stored?: Buffer): void {
    if (this.#place !== undefined) this.#codec.memory?.leave(this, this.#place);
    this.#place = undefined;
    this.#isKept = true;
    const encoded = this.#storedMemo;
    if (encoded !== undefined && this.#json === undefined) {
      this.#stored = encoded;
      this.#isOwnForm = true;
    } else if (stored !== undefined) this.#keepStored(stored);
    if (this.#object !== undefined && this.#stored === undefined) this.json();
    this.#object = undefined;
    this.#memo = undefined;
    this.used = false;
  }

  /**
   * Keeps the object of an entry in an initial list decoded, because it is expected to be read soon.
   * @param stored the bytes that the entry was decoded from, kept until its JSON is encoded
   */
  stayWarm(stored: Buffer): void {
    this.#keepStored(stored);
    this.warm();
  }

  /** Keeps the bytes that the entry was decoded from, if the memory of its decoded object is limited by their size. */
  decodedFrom(stored: Buffer): void {
    if (stored.length >= countedFromBytes) this.#keepStored(stored);
  }

  #keepStored(stored: Buffer): void {
    if (this.#json === undefined) this.#stored = ownMemory(stored);
  }

  /**
   * For an entry that a newer one has replaced: drops its object when encoded bytes exist, without encoding for that purpose. It
   * would otherwise stay in the hot ring for thousands of changes, long enough to be copied by each young-generation collection.
   */
  retire(): void {
    if (this.#json !== undefined || this.#stored !== undefined || this.#storedMemo !== undefined) this.cool();
  }

  /** Must be called for an entry that is kept beyond a request: it joins the hot ring, so that its object is evicted eventually. */
  warm(): void {
    this.#isKept = true;
    this.#use();
  }

  #use(): void {
    this.used = true;
    if (this.#place !== undefined || !this.#isKept) return;
    this.#place = this.#codec.memory?.keepHot(this) ?? 0;
    this.#weigh();
  }

  /** Estimated bytes that the entry holds; used to bound histories. */
  get sizeBytes(): number {
    return this.#bytes?.byteLength ?? 2048;
  }
}

/** An entry at `revision`, which it writes into the object. @param origin the entry that it shows in another version */
export function newEntry(codec: EntryCodec, key: string, revision: number, object: KubeObject, origin?: Entry): Entry {
  object.metadata.resourceVersion = String(revision);
  return new Entry(codec, key, revision, object, object.metadata.labels ?? noLabels, codec.fieldsOf(object), origin);
}

/** An entry that is not stored (dry-run): `object` unchanged, with the resourceVersion it has. */
export function newUnstoredEntry(codec: EntryCodec, key: string, object: KubeObject): Entry {
  return new Entry(codec, key, Number(object.metadata.resourceVersion ?? 0) || 0, object);
}
