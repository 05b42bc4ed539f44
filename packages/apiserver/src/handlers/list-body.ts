/**
 * The items of a list as encoded chunks, created on demand and shared by all readers of the same list. From the second reader
 * on chunks are cached, within a limit for the process, and encoded again after eviction. Two requests have the same list when they
 * have the same array of entries, which the watch cache returns until the next change.
 */
import { encodeMessage, varintBytes, writeVarint } from "@coxswain/apimachinery/objects/codec/protobuf";
import { messageBytesInSteps } from "@coxswain/apimachinery/objects/codec/protobuf-encode-steps";
import { hasManyValues } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { sliceMs } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ByteShare, CachedBytes } from "@coxswain/apimachinery/process/memory/byte-share";
import type { Entry } from "../storage/storage.ts";
import { fromHubInSteps, itemPrefix, jsonOf, slotOf } from "./convert.ts";
import type { ServedResource } from "./served-resources.ts";

/** The parts of one encoded item, in order. Views of shared memory: read only. */
export type ItemBytes = (entry: Entry, first: boolean) => readonly Uint8Array[];

export interface ListBody {
  /** The bytes of a chunk; undefined after the last one. Chunks must be read in order. */
  chunk(index: number): Buffer | undefined;
  /** Whether another chunk follows chunk `index`, which has been read. */
  hasAfter(index: number): boolean;
}

/** A chunk ends with the item that reaches this size or half a slice: items may have to be decoded and encoded. */
const chunkBytes = 128 * 1024;

class Body implements ListBody {
  readonly #entries: readonly Entry[];
  readonly #bytesOf: ItemBytes;
  /** Index of the first entry of each chunk. */
  readonly #starts = [0];
  readonly #share: ByteShare | undefined;
  readonly #chunks: Chunk[] = [];
  readers = 0;

  /** @param share undefined: no chunk is cached */
  constructor(entries: readonly Entry[], bytesOf: ItemBytes, share: ByteShare | undefined) {
    this.#entries = entries;
    this.#bytesOf = bytesOf;
    this.#share = share;
  }

  chunk(index: number): Buffer | undefined {
    const there = this.#chunks[index];
    if (there?.bytes !== undefined) {
      there.used = true;
      return there.bytes;
    }
    // Chunks are read in order, so the previous chunk has set the start of this one.
    const start = this.#starts[index] ?? this.#entries.length;
    if (start >= this.#entries.length) return undefined;
    const made = this.#make(start, index);
    if (this.readers > 1 && this.#share !== undefined) {
      const chunk = new Chunk(this.#chunks, made);
      if (this.#share.keep(chunk)) this.#chunks[index] = chunk;
    }
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
    // A chunk that is encoded again must have the same end, since other readers have read up to it.
    const known = this.#starts[index + 1];
    const isFull = (): boolean => size >= chunkBytes || (size > 0 && performance.now() - began > sliceMs / 2);
    while (end < this.#entries.length && (known === undefined ? !isFull() : end < known)) {
      for (const part of this.#bytesOf(this.#entries[end]!, end === 0)) {
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

/** A chunk apart from its body, so that cached chunks do not keep the entries of an outdated list alive. */
class Chunk implements CachedBytes {
  readonly owner: object;
  readonly sizeBytes: number;
  bytes: Buffer | undefined;
  used = false;
  since = 0;

  constructor(owner: object, bytes: Buffer) {
    this.owner = owner;
    this.sizeBytes = bytes.length;
    this.bytes = bytes;
  }

  drop(): void {
    this.bytes = undefined;
  }
}

/** A body for a rarely requested form: one reader, never cached. */
export function ownBody(entries: readonly Entry[], bytesOf: ItemBytes): ListBody {
  return new Body(entries, bytesOf, undefined);
}

/** The bodies that readers of the same list share. */
export class ListBodies {
  readonly #share: ByteShare;
  readonly #bodies = new WeakMap<readonly Entry[], Map<unknown, { readonly body: Body; readonly moment: number }>>();

  /** @param share of the chunks that are cached */
  constructor(share: ByteShare) {
    this.#share = share;
  }

  /**
   * A body shared under `slot` while `moment` is the same.
   * @param moment what the bytes depend on besides the entries: the second for which ages are computed
   */
  shared(entries: readonly Entry[], slot: unknown, bytesOf: () => ItemBytes, moment = 0): ListBody {
    const forms = this.#bodies.getOrInsertComputed(entries, () => new Map());
    let form = forms.get(slot);
    if (form?.moment !== moment) {
      form = { body: new Body(entries, bytesOf(), this.#share), moment };
      forms.set(slot, form);
    }
    form.body.readers++;
    return form.body;
  }

  /** `{…},{…}`: built-in items without kind and apiVersion, as upstream's lists have them; custom resources keep both. */
  json(entries: readonly Entry[], served: ServedResource): ListBody {
    // Keyed by identity, since a changed custom resource is a new ServedResource.
    return this.shared(entries, served, () => {
      const prefix = itemPrefix(served);
      const first = entries[0] === undefined ? undefined : jsonOf(entries[0], served);
      // One encoder writes all items, so all begin with the prefix when the first one does.
      if (first === undefined || prefix.length === 0 || !startsWith(first, prefix)) {
        return (entry, isFirst) => (isFirst ? [jsonOf(entry, served)] : [comma, jsonOf(entry, served)]);
      }
      return (entry, isFirst) => [isFirst ? openBrace : commaBrace, jsonOf(entry, served).subarray(prefix.length)];
    });
  }

  /** The items of a protobuf list. */
  protobuf(entries: readonly Entry[], served: ServedResource, items: ProtobufItems): ListBody {
    return this.shared(entries, served.kind, () => protobufBytes(items));
  }
}

const comma = Buffer.from(",");
const openBrace = Buffer.from("{");
const commaBrace = Buffer.from(",{");

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length > prefix.length && bytes.compare(prefix, 0, prefix.length, 0, prefix.length) === 0;
}

/** `repeated X items = 2`: each item with its tag and length, cached with its entry. */
export interface ProtobufItems {
  readonly slot: string;
  readonly make: (object: KubeObject) => Buffer;
  /** As `make`, in steps for large objects. */
  readonly makeInSteps: (object: KubeObject) => Steps<Buffer>;
}

/** The items' encodings, kept with their entries and shared by all lists in the same version. */
export function protobufBytes({ slot, make }: ProtobufItems): ItemBytes {
  return (entry) => [entry.kept(slot, make)];
}

/** Length of what `protobufBytes` returns; computed without encoding when it was encoded before. */
export function protobufSize({ slot, make }: ProtobufItems, entry: Entry): number {
  return entry.keptSize(slot, make);
}

/** List items in the served version; encoded from the hub version for others. @throws Error for a kind without protobuf form */
export function protobufItems(served: ServedResource): ProtobufItems {
  return itemsOf(slotOf(served), served.kind, function* (object) {
    return served.isHub ? object : yield* fromHubInSteps(served, object);
  });
}

/** List items that contain only metadata, for PartialObjectMetadataList. */
export function protobufMetadataItems(kind: GroupVersionKind): ProtobufItems {
  return itemsOf(`${formatGroupVersion(kind)} ${kind.kind}`, kind, ({ metadata }) => inOneStep({ metadata }));
}

type Fields = Record<string, unknown>;

// biome-ignore lint/correctness/useYield: the result of a conversion that has nothing to interrupt
function* inOneStep(object: KubeObject): Steps<KubeObject> {
  return object;
}

function itemsOf(slot: string, kind: GroupVersionKind, convert: (object: KubeObject) => Steps<KubeObject>): ProtobufItems {
  const type = scheme.kind(kind);
  if (type === undefined) throw new Error(`${kind.kind} has no protobuf form`);
  return {
    slot: `item:${slot}`,
    make(object) {
      const message = encodeMessage(atOnce(convert(object)), type);
      return Buffer.concat([fieldHead(2, message.length), message]);
    },
    *makeInSteps(object) {
      const shown = yield* convert(object);
      yield;
      const message = hasManyValues(shown)
        ? yield* messageBytesInSteps(shown as object as Fields, type) // cast: encoded by the descriptor
        : encodeMessage(shown, type);
      return Buffer.concat([fieldHead(2, message.length), message]);
    },
  };
}

/** Tag and length of a length-delimited field. */
export function fieldHead(field: number, length: number): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(length)]);
}

/** A protobuf varint. @param value not negative, below 2^53 */
export function varint(value: number): Buffer {
  const bytes = Buffer.alloc(varintBytes(value));
  writeVarint(bytes, 0, value);
  return bytes;
}
