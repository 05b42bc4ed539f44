import protobuf from "protobufjs/minimal.js";
import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest, StatusError } from "../errors/status-error.ts";
import { hasManyValues } from "../meta/deep-equal.ts";
import { goQuote } from "../meta/go-quote.ts";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import type { KubeObject } from "../meta/types.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { cannotHandle, unrecognized } from "./json.ts";
import {
  largeMessageBytes,
  type ReadOptions,
  readingInGoWords,
  readMessage,
  readString,
  skipUnknown,
} from "./protobuf-decode.ts";
import { readMessageInSteps } from "./protobuf-decode-steps.ts";
import { BackWriter, writeMessage } from "./protobuf-encode.ts";
import { messageBytesInSteps } from "./protobuf-encode-steps.ts";

/** Magic prefix of every Kubernetes protobuf body and etcd value. */
export const protobufPrefix = Buffer.from("k8s\0");

/** The envelope: type and bytes of an object. Source: apimachinery pkg/runtime/types.go, Unknown */
interface Unknown {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Uint8Array;
  readonly contentEncoding: string;
  readonly contentType: string;
}

/**
 * Encodes an object of a built-in kind with its envelope, byte for byte as upstream does.
 * @param gvk kind to encode as; default: the object's own apiVersion and kind
 * @throws Error for kinds without protobuf encoding (custom resources, Table)
 */
export function encodeProtobuf(object: object, gvk?: GroupVersionKind): Buffer {
  const { apiVersion, kind, type } = kindToEncode(object, gvk);
  // Cast: decoded, or made by a program, as the descriptor says.
  return envelope(apiVersion, kind, (writer) => writeMessage(writer, object as Record<string, unknown>, type));
}

/** As `encodeProtobuf`, in steps for many values. */
export function* encodeProtobufInSteps(object: object, gvk?: GroupVersionKind): Steps<Buffer> {
  if (!hasManyValues(object)) return encodeProtobuf(object, gvk);
  yield;
  const { apiVersion, kind, type } = kindToEncode(object, gvk);
  // Cast: decoded, or made by a program, as the descriptor says.
  const raw = yield* messageBytesInSteps(object as Record<string, unknown>, type);
  return encodeUnknown({ apiVersion, kind, raw });
}

/**
 * What `encodeProtobuf` makes of an object with a resourceVersion, from what it has made of the same object without one: copies the bytes
 * around the place of the field, without encoding the object again.
 * @param bytes with their envelope
 * @returns undefined when they are of another kind than `gvk`, or not laid out as `encodeProtobuf` does: encode the object then
 */
export function insertResourceVersion(bytes: Buffer, gvk: GroupVersionKind, resourceVersion: string): Buffer | undefined {
  const head = headBefore(formatGroupVersion(gvk), gvk.kind);
  if (bytes.length < head.length || bytes.compare(head, 0, head.length, 0, head.length) !== 0) return undefined;
  const reader = protobuf.Reader.create(bytes);
  reader.pos = head.length;
  const rawBytes = reader.uint32();
  const rawAt = reader.pos;
  if (reader.uint32() !== metadataTag) return undefined;
  const metadataBytes = reader.uint32();
  const metadataAt = reader.pos;
  // Name, generateName, namespace, selfLink and uid; strings are always encoded, also empty ones.
  for (let tag = 10; tag < resourceVersionTag; tag += 8) {
    if (reader.uint32() !== tag) return undefined;
    reader.skip(reader.uint32());
  }
  if (reader.uint32() !== resourceVersionTag || reader.uint32() !== 0) return undefined;
  const more = resourceVersion.length;
  const metadataField = 1 + varintBytes(metadataBytes + more) + metadataBytes + more;
  const raw = rawBytes + metadataField - (metadataAt + metadataBytes - rawAt);
  const place = reader.pos;
  const whole = Buffer.allocUnsafeSlow(head.length + varintBytes(raw) + raw + (bytes.length - rawAt - rawBytes));
  let at = writeVarint(whole, head.copy(whole), raw);
  whole[at++] = metadataTag;
  at = writeVarint(whole, at, metadataBytes + more);
  at += bytes.copy(whole, at, metadataAt, place - 1);
  whole[at++] = more;
  at += whole.write(resourceVersion, at, "latin1");
  bytes.copy(whole, at, place);
  return whole;
}

/** Tags of the field 1 of each kind and of the field 6 of ObjectMeta. */
const [metadataTag, resourceVersionTag] = [10, 50];

/** The bytes of an envelope before the length of its object. A pure cache, as `knownKinds`. */
const heads = new Map<string, Buffer>();

function headBefore(apiVersion: string, kind: string): Buffer {
  return heads.getOrInsertComputed(`${apiVersion} ${kind}`, () => {
    const end = encodeUnknown({ apiVersion, kind, raw: noBytes });
    // After it: the empty object's length, and two empty strings of two bytes each.
    return Buffer.from(end.subarray(0, end.length - 5));
  });
}

/** Length of a varint in bytes. @param value not negative, below 2^53 */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

/** Encodes a varint to `bytes` at `at`. @param value not negative, below 2^53 @returns the offset after it */
export function writeVarint(bytes: Buffer, at: number, value: number): number {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80;
  bytes[at] = rest;
  return at + 1;
}

/** True when `encodeProtobuf` supports the kind. */
export function hasProtobufForm(gvk: GroupVersionKind): boolean {
  const type = scheme.kind(gvk);
  return type !== undefined && !type.jsonOnly;
}

/**
 * Encodes a message without envelope.
 * @param type any struct, not necessarily a kind
 */
export function encodeMessage(object: object, type: TypeDescriptor): Buffer {
  writer.reset();
  writeMessage(writer, object as Record<string, unknown>, type); // cast: decoded, or made by a program, as the descriptor says
  return writer.finish();
}

/**
 * Decodes an object with its envelope to canonical form; apiVersion and kind are those of the envelope.
 * @param expected default for apiVersion and kind when the envelope has none
 * @throws StatusError 400 with upstream's text for malformed bytes, 413 for too many elements
 */
export function decodeProtobuf(bytes: Uint8Array, expected?: GroupVersionKind, options?: ReadOptions): KubeObject {
  const { raw, known } = openEnvelope(bytes, expected);
  if (raw.length >= largeMessageBytes) return atOnce(decodeProtobufInSteps(bytes, expected, options));
  try {
    const object: object = readMessage(raw, known.type, options, headOf(known));
    return object as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
  } catch (err) {
    throw refusalOf(err, known, expected);
  }
}

/** As `decodeProtobuf`, in steps for large objects. */
export function* decodeProtobufInSteps(bytes: Uint8Array, expected?: GroupVersionKind, options?: ReadOptions): Steps<KubeObject> {
  const { raw, known } = openEnvelope(bytes, expected);
  try {
    const object: object = { ...headOf(known), ...(yield* messageIn(raw, known.type, options)) };
    return object as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
  } catch (err) {
    throw refusalOf(err, known, expected);
  }
}

/** Reads a message, in steps when it is large. */
export function* messageIn(bytes: Uint8Array, type: TypeDescriptor, options?: ReadOptions): Steps<Record<string, unknown>> {
  if (bytes.length < largeMessageBytes) return readMessage(bytes, type, options);
  return yield* readMessageInSteps(bytes, type, options);
}

/** A kind with a protobuf form, as envelopes name it. */
interface KnownKind extends GroupVersionKind {
  readonly apiVersion: string;
  readonly type: TypeDescriptor;
}

/** A pure cache, by apiVersion and kind: one for each kind of the scheme at most. */
const knownKinds = new Map<string, Map<string, KnownKind>>();

const headOf = ({ apiVersion, kind }: KnownKind): Record<string, unknown> => ({ apiVersion, kind });

/** @throws as `decodeProtobuf` */
function openEnvelope(bytes: Uint8Array, expected: GroupVersionKind | undefined): { raw: Uint8Array; known: KnownKind } {
  let unknown: Unknown;
  try {
    unknown = decodeUnknown(bytes);
  } catch (err) {
    const why = messageOf(err);
    throw expected === undefined ? badRequest(why) : unrecognized(expected.kind, why, bytes);
  }
  const { apiVersion, kind, raw } = unknown;
  return { raw, known: knownKinds.get(apiVersion)?.get(kind) ?? lookUpKind(apiVersion, kind, expected) };
}

/** @throws StatusError for a kind without a protobuf form */
function lookUpKind(apiVersion: string, named: string, expected: GroupVersionKind | undefined): KnownKind {
  const parsed = parseGroupVersion(apiVersion);
  const { group = "", version = "" } = parsed ?? expected ?? {};
  const gvk = { group, version, kind: named === "" ? (expected?.kind ?? "") : named };
  const type = scheme.kind(gvk);
  if (type === undefined || type.jsonOnly) {
    const text = goQuote(formatGroupVersion(gvk));
    const file = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
    const why = `no kind ${goQuote(gvk.kind)} is registered for version ${text} in scheme "${file}"`;
    throw refusalOf(new Error(why), gvk, expected);
  }
  const known = { ...gvk, apiVersion: formatGroupVersion(gvk), type };
  if (parsed !== undefined && named !== "")
    knownKinds.getOrInsertComputed(apiVersion, () => new Map<string, KnownKind>()).set(named, known);
  return known;
}

function refusalOf(err: unknown, gvk: GroupVersionKind, expected: GroupVersionKind | undefined): StatusError {
  if (err instanceof StatusError) return err;
  const why = messageOf(err);
  return expected === undefined ? badRequest(why) : cannotHandle(gvk, expected.kind, why);
}

/**
 * Decodes the message of an envelope as the given kind, ignoring the envelope's; apiVersion and kind are those of the envelope.
 * @throws as `decodeProtobuf`
 */
export function decodeProtobufAs(kind: GroupVersionKind, bytes: Uint8Array, options?: ReadOptions): KubeObject {
  try {
    const { apiVersion, kind: said, raw } = decodeUnknown(bytes);
    const type = scheme.kind(kind);
    if (type === undefined)
      throw new Error(`no kind ${goQuote(kind.kind)} is registered for version ${goQuote(formatGroupVersion(kind))}`);
    const object: object = readMessage(raw, type, options, { apiVersion, kind: said });
    return object as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
  } catch (err) {
    throw refusalOf(err, kind, undefined);
  }
}

/** Encodes an envelope, magic prefix included. */
export function encodeUnknown(unknown: Pick<Unknown, "apiVersion" | "kind" | "raw"> & Partial<Unknown>): Buffer {
  return envelope(unknown.apiVersion, unknown.kind, (writer) => writer.bytes(unknown.raw), unknown);
}

/**
 * Decodes an envelope; `raw` is a view into `bytes`.
 * @throws Error with the text of upstream's generated code
 * Source: apimachinery pkg/runtime/serializer/protobuf/protobuf.go
 */
export function decodeUnknown(bytes: Uint8Array): Unknown {
  if (bytes.length === 0) throw new Error("empty data");
  if (!hasPrefix(bytes))
    throw new Error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  if (bytes.length === protobufPrefix.length) throw new Error("empty body");
  return readingInGoWords(() => readUnknown(bytes));
}

/** Compares byte by byte: a call for each would cost more than the rest of a small envelope. */
function hasPrefix(bytes: Uint8Array): boolean {
  for (let at = 0; at < protobufPrefix.length; at++) if (bytes[at] !== protobufPrefix[at]) return false;
  return true;
}

const noBytes = new Uint8Array();

/** apiVersions and kinds are the same few texts. */
const nameIn = (reader: protobuf.Reader): string => (Buffer.isBuffer(reader.buf) ? readString(reader) : reader.string());

function readUnknown(bytes: Uint8Array): Unknown {
  const reader = protobuf.Reader.create(bytes);
  reader.pos = protobufPrefix.length;
  let [apiVersion, kind, contentEncoding, contentType] = ["", "", "", ""];
  let raw: Uint8Array = noBytes;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: {
        const end = reader.uint32() + reader.pos;
        if (end > reader.len) throw new Error("unexpected EOF");
        while (reader.pos < end) {
          const part = reader.uint32();
          if (part === 10) apiVersion = nameIn(reader);
          else if (part === 18) kind = nameIn(reader);
          else skipUnknown(reader, part, "TypeMeta", { 1: "APIVersion", 2: "Kind" });
        }
        break;
      }
      case 18:
        raw = reader.bytes();
        break;
      case 26:
        contentEncoding = reader.string();
        break;
      case 34:
        contentType = reader.string();
        break;
      default:
        skipUnknown(reader, tag, "Unknown", { 1: "TypeMeta", 2: "Raw", 3: "ContentEncoding", 4: "ContentType" });
    }
  }
  return { apiVersion, kind, raw, contentEncoding, contentType };
}

function kindToEncode(
  object: object,
  gvk: GroupVersionKind | undefined,
): { apiVersion: string; kind: string; type: TypeDescriptor } {
  const own: { apiVersion?: string; kind?: string } = object;
  const apiVersion = gvk === undefined ? (own.apiVersion ?? "") : formatGroupVersion(gvk);
  const kind = gvk?.kind ?? own.kind ?? "";
  const type = scheme.kind(gvk ?? { group: "", version: "", ...parseGroupVersion(apiVersion), kind });
  if (type === undefined || type.jsonOnly) throw new Error(`${apiVersion} ${kind} has no protobuf form`);
  return { apiVersion, kind, type };
}

/** Shared: encoding is synchronous, and the writer's grown buffer is reused. */
const writer = new BackWriter();

function envelope(apiVersion: string, kind: string, writeRaw: (writer: BackWriter) => void, rest: Partial<Unknown> = {}): Buffer {
  writer.reset(); // an earlier encoding may have failed halfway
  writer.string(rest.contentType ?? "");
  writer.uint32(34);
  writer.string(rest.contentEncoding ?? "");
  writer.uint32(26);
  let end = writer.mark;
  writeRaw(writer);
  writer.uint32(writer.mark - end);
  writer.uint32(18);
  end = writer.mark;
  writer.string(kind);
  writer.uint32(18);
  writer.string(apiVersion);
  writer.uint32(10);
  writer.uint32(writer.mark - end);
  writer.uint32(10);
  writer.bytes(protobufPrefix);
  return writer.finish();
}
