import protobuf from "protobufjs/minimal.js";
import { badRequest, StatusError } from "../errors/status-error.ts";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import type { KubeObject } from "../meta/types.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { BackWriter } from "./back-writer.ts";
import { readMessage } from "./protobuf-decode.ts";
import { writeMessage } from "./protobuf-encode.ts";

/** Every Kubernetes protobuf body and etcd value begins with it. */
export const protobufPrefix = Buffer.from("k8s\0");

/** The envelope: what the object is, and its bytes. Source: apimachinery pkg/runtime/types.go, Unknown */
export interface Unknown {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Uint8Array;
  readonly contentEncoding: string;
  readonly contentType: string;
}

/**
 * An object of a built-in kind in its envelope, byte for byte as upstream writes it.
 * @param gvk kind to write it as; the object's own apiVersion and kind unless given
 * @throws Error for kinds that have no protobuf form (custom resources, Table)
 */
export function encodeProtobuf(object: object, gvk?: GroupVersionKind): Buffer {
  const { apiVersion, kind, type } = kindToEncode(object, gvk);
  return envelope(apiVersion, kind, (writer) => writeMessage(writer, object as Record<string, unknown>, type));
}

/** Whether `encodeProtobuf` can write the kind. */
export function hasProtobufForm(gvk: GroupVersionKind): boolean {
  const type = scheme.kind(gvk);
  return type !== undefined && !type.jsonOnly;
}

/**
 * The message without envelope.
 * @param type of the struct, a kind or not
 */
export function encodeMessage(object: object, type: TypeDescriptor): Buffer {
  writer.reset();
  writeMessage(writer, object as Record<string, unknown>, type);
  return writer.finish();
}

/**
 * An object with its envelope, in canonical form, with the apiVersion and kind that the envelope names.
 * @param expected taken for what the envelope leaves out
 * @param maxElements of all lists and maps together
 * @throws StatusError 400 for bytes that are none, 413 for too many elements
 */
export function decodeProtobuf(bytes: Uint8Array, expected?: GroupVersionKind, maxElements?: number): KubeObject {
  const unknown = decodeUnknown(bytes);
  const gv = parseGroupVersion(unknown.apiVersion) ?? expected;
  const gvk = {
    group: gv?.group ?? "",
    version: gv?.version ?? "",
    kind: unknown.kind === "" ? (expected?.kind ?? "") : unknown.kind,
  };
  const type = scheme.kind(gvk);
  if (type === undefined || type.jsonOnly) {
    const version = JSON.stringify(formatGroupVersion(gvk));
    throw badRequest(
      `no kind ${JSON.stringify(gvk.kind)} is registered for version ${version} in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"`,
    );
  }
  return {
    apiVersion: formatGroupVersion(gvk),
    kind: gvk.kind,
    ...decodeMessage(unknown.raw, type, maxElements),
  } as unknown as KubeObject;
}

/** A message without envelope. @throws StatusError 400, 413 for more than `maxElements` */
export function decodeMessage(bytes: Uint8Array, type: TypeDescriptor, maxElements?: number): Record<string, unknown> {
  try {
    return readMessage(bytes, type, maxElements);
  } catch (err) {
    if (err instanceof StatusError) throw err;
    throw badRequest(`unable to decode ${type.goName}: ${(err as Error).message}`);
  }
}

export function encodeUnknown(unknown: Pick<Unknown, "apiVersion" | "kind" | "raw"> & Partial<Unknown>): Buffer {
  return envelope(unknown.apiVersion, unknown.kind, (writer) => writer.bytes(unknown.raw), unknown);
}

export const noEnvelope = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";

export function hasEnvelope(bytes: Uint8Array): boolean {
  return protobufPrefix.equals(bytes.subarray(0, 4));
}

/** The envelope's parts; `raw` is a view into `bytes`. @throws StatusError 400 */
export function decodeUnknown(bytes: Uint8Array): Unknown {
  if (!hasEnvelope(bytes)) throw badRequest(noEnvelope);
  try {
    return readUnknown(bytes.subarray(4));
  } catch (err) {
    throw badRequest(`unable to decode the protobuf envelope: ${(err as Error).message}`);
  }
}

function readUnknown(bytes: Uint8Array): Unknown {
  const reader = protobuf.Reader.create(bytes);
  let [apiVersion, kind, contentEncoding, contentType] = ["", "", "", ""];
  let raw: Uint8Array = new Uint8Array();
  while (reader.pos < reader.len) {
    switch (reader.uint32()) {
      case 10: {
        const end = reader.uint32() + reader.pos;
        if (end > reader.len) throw new Error("unexpected EOF");
        while (reader.pos < end) {
          const tag = reader.uint32();
          if (tag === 10) apiVersion = reader.string();
          else if (tag === 18) kind = reader.string();
          else if ((tag & 7) === 2) reader.skip(reader.uint32());
          else throw new Error(`proto: wrong wireType = ${tag & 7}`);
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
        throw new Error("proto: unknown field");
    }
  }
  return { apiVersion, kind, raw, contentEncoding, contentType };
}

function kindToEncode(
  object: object,
  gvk: GroupVersionKind | undefined,
): { apiVersion: string; kind: string; type: TypeDescriptor } {
  const own = object as { apiVersion?: string; kind?: string };
  const apiVersion = gvk === undefined ? (own.apiVersion ?? "") : formatGroupVersion(gvk);
  const kind = gvk?.kind ?? own.kind ?? "";
  const type = scheme.kind(gvk ?? { group: "", version: "", ...parseGroupVersion(apiVersion), kind });
  if (type === undefined || type.jsonOnly) throw new Error(`${apiVersion} ${kind} has no protobuf form`);
  return { apiVersion, kind, type };
}

/** Encoding is synchronous, so one writer with its grown buffer serves all. */
const writer = new BackWriter();

function envelope(apiVersion: string, kind: string, writeRaw: (writer: BackWriter) => void, rest: Partial<Unknown> = {}): Buffer {
  writer.reset(); // of a message that could not be written to its end
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
