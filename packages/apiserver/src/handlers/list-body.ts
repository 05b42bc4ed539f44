/**
 * The items of a list as chunks of bytes, made when they are asked for and shared by all who read the same list: what is
 * made is kept from the second reader on, in a fixed number of bytes for the whole process, and made again when it was
 * dropped. The same list is the same array of entries, which the cache gives out as long as nothing in it changes.
 */
import { encodeMessage } from "@coxswain/apimachinery/codec/protobuf";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { scheme } from "@coxswain/apimachinery/schema/scheme";
import type { Entry } from "../storage/storage.ts";
import { fromHub, itemPrefix, jsonOf, slotOf } from "./convert.ts";
import type { ServedResource } from "./served-resources.ts";

/** Pieces of the bytes of one item, in order. Views of shared memory: read only. */
export type ItemBytes = (entry: Entry, first: boolean) => readonly Uint8Array[];

export interface ListBody {
  /** The chunk's bytes; undefined behind the last one. To be asked for in order. */
  chunk(index: number): Buffer | undefined;
  /** Whether there is one more behind a chunk that was given. */
  hasAfter(index: number): boolean;
}

/** A chunk ends with the item that makes it this long. */
const chunkBytes = 128 * 1024;
/** Or with the one that has taken it so long: items that have to be decoded and encoded take 0.1 ms for each kilobyte. */
const chunkMs = 3;
/** What all kept chunks of the process may hold together. */
export const keptBytesLimit = 64 * 1024 * 1024;

class Body implements ListBody {
  readonly #entries: readonly Entry[];
  readonly #bytesOf: ItemBytes;
  /** Index of the first entry of each chunk. */
  readonly #starts = [0];
  readonly kept = new KeptChunks();
  readers = 0;

  constructor(entries: readonly Entry[], bytesOf: ItemBytes) {
    this.#entries = entries;
    this.#bytesOf = bytesOf;
  }

  chunk(index: number): Buffer | undefined {
    const there = this.kept.get(index);
    if (there !== undefined) return there;
    // Chunks are read in order by everybody, so that the one before has said where this begins.
    const start = this.#starts[index] ?? this.#entries.length;
    if (start >= this.#entries.length) return undefined;
    const made = this.#make(start, index);
    if (this.readers > 1) this.kept.set(index, made);
    return made;
  }

  hasAfter(index: number): boolean {
    return (this.#starts[index + 1] ?? 0) < this.#entries.length;
  }

  #make(start: number, index: number): Buffer {
    const parts: Uint8Array[] = [];
    let size = 0;
    let end = start;
    const began = performance.now();
    // A chunk that is made again must end where it ended before: its other readers are behind that end.
    const known = this.#starts[index + 1];
    const isFull = (): boolean => size >= chunkBytes || (size > 0 && performance.now() - began > chunkMs);
    while (end < this.#entries.length && (known === undefined ? !isFull() : end < known)) {
      for (const part of this.#bytesOf(this.#entries[end] as Entry, end === 0)) {
        parts.push(part);
        size += part.length;
      }
      end++;
    }
    this.#starts[index + 1] = end;
    const chunk = Buffer.allocUnsafeSlow(size);
    let at = 0;
    for (const part of parts) {
      chunk.set(part, at);
      at += part.length;
    }
    return chunk;
  }
}

/** Apart from the body, so that what is kept of a list that is no more does not keep its entries. */
class KeptChunks {
  readonly #chunks: (Buffer | undefined)[] = [];
  #sizeBytes = 0;

  get(index: number): Buffer | undefined {
    const chunk = this.#chunks[index];
    if (chunk !== undefined) {
      recentlyUsed.delete(this);
      recentlyUsed.add(this);
    }
    return chunk;
  }

  set(index: number, chunk: Buffer): void {
    // A list that is longer than all the room is not kept beyond it: its own chunks would drop each other.
    while (keptTotal + chunk.length > keptBytesLimit) {
      const oldest = recentlyUsed.values().next().value;
      if (oldest === undefined || oldest === this) return;
      oldest.#drop();
    }
    this.#chunks[index] = chunk;
    this.#sizeBytes += chunk.length;
    keptTotal += chunk.length;
    recentlyUsed.delete(this);
    recentlyUsed.add(this);
  }

  #drop(): void {
    keptTotal -= this.#sizeBytes;
    this.#sizeBytes = 0;
    this.#chunks.length = 0;
    recentlyUsed.delete(this);
  }
}

let keptTotal = 0;
const recentlyUsed = new Set<KeptChunks>();

/** Bytes of chunks that the process holds now; at most `keptBytesLimit`. */
export const keptListBytes = (): number => keptTotal;

const bodies = new WeakMap<readonly Entry[], Map<unknown, { readonly body: Body; readonly moment: number }>>();

/** Items in a form that few ask for: made for one reader, never kept. */
export function ownBody(entries: readonly Entry[], bytesOf: ItemBytes): ListBody {
  return new Body(entries, bytesOf);
}

/**
 * Shared under `slot`, for as long as `moment` is the same.
 * @param moment what the bytes depend on besides the entries, which goes on for ever: the second in which ages are told.
 */
export function sharedBody(entries: readonly Entry[], slot: unknown, bytesOf: () => ItemBytes, moment = 0): ListBody {
  let forms = bodies.get(entries);
  if (forms === undefined) {
    forms = new Map();
    bodies.set(entries, forms);
  }
  let form = forms.get(slot);
  if (form?.moment !== moment) {
    form = { body: new Body(entries, bytesOf()), moment };
    forms.set(slot, form);
  }
  form.body.readers++;
  return form.body;
}

/** `{…},{…}`: built-in items without kind and apiVersion, which the list says for them; custom resources keep both. */
export function jsonBody(entries: readonly Entry[], served: ServedResource): ListBody {
  // By identity: a custom resource that was changed is served anew.
  return sharedBody(entries, served, () => {
    const prefix = itemPrefix(served);
    const first = entries[0] === undefined ? undefined : jsonOf(entries[0], served);
    // One encoder writes them all: what the first begins with, all begin with.
    if (first === undefined || prefix.length === 0 || !startsWith(first, prefix)) {
      return (entry, isFirst) => (isFirst ? [jsonOf(entry, served)] : [comma, jsonOf(entry, served)]);
    }
    return (entry, isFirst) => [isFirst ? openBrace : commaBrace, jsonOf(entry, served).subarray(prefix.length)];
  });
}

const comma = Buffer.from(",");
const openBrace = Buffer.from("{");
const commaBrace = Buffer.from(",{");

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length > prefix.length && bytes.compare(prefix, 0, prefix.length, 0, prefix.length) === 0;
}

/** `repeated X items = 2`: each item with its tag and length, as its entry keeps it. */
export interface ProtobufItems {
  readonly slot: string;
  readonly make: (object: KubeObject) => Buffer;
}

export function protobufBody(entries: readonly Entry[], served: ServedResource, items: ProtobufItems): ListBody {
  return sharedBody(entries, served.kind, () => protobufBytes(items));
}

export function protobufBytes({ slot, make }: ProtobufItems): ItemBytes {
  return (entry) => [entry.kept?.(slot, make) ?? make(entry.object())];
}

/** Length of what `protobufBytes` gives; known without encoding when it was encoded once. */
export function protobufSize({ slot, make }: ProtobufItems, entry: Entry): number {
  return entry.keptSize?.(slot, make) ?? make(entry.object()).length;
}

export function protobufItems(served: ServedResource): ProtobufItems {
  return itemsOf(slotOf(served), served.kind, (object) => (served.isHub ? object : fromHub(served, object)));
}

export function protobufMetadataItems(kind: GroupVersionKind): ProtobufItems {
  return itemsOf(`${formatGroupVersion(kind)} ${kind.kind}`, kind, ({ metadata }) => ({ metadata }));
}

function itemsOf(slot: string, kind: GroupVersionKind, convert: (object: KubeObject) => KubeObject): ProtobufItems {
  const type = scheme.kind(kind);
  if (type === undefined) throw new Error(`${kind.kind} has no protobuf form`);
  return {
    slot: `item:${slot}`,
    make(object) {
      const message = encodeMessage(convert(object), type);
      return Buffer.concat([fieldHead(2, message.length), message]);
    },
  };
}

/** Tag and length of a length-delimited field. */
export function fieldHead(field: number, length: number): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(length)]);
}

export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
