import protobuf from "protobufjs/minimal.js";
import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import type { KubeObject } from "../meta/types.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { decodeProtobufInSteps, decodeUnknown, messageIn } from "./protobuf.ts";

/** An object and its encoding by `encodeProtobuf`. */
export interface EncodedObject {
  readonly bytes: Uint8Array;
  readonly object: KubeObject;
}

/**
 * As `decodeProtobuf`, for the next revision of an object. Top-level structs with unchanged bytes (e.g. a pod's spec or
 * status) are not decoded but shared with the previous revision. Metadata is always decoded.
 * @param bytes from `encodeProtobuf`, so that each struct field occurs once
 */
export function decodeProtobufReusing(bytes: Uint8Array, before: EncodedObject): KubeObject {
  return atOnce(decodeProtobufReusingInSteps(bytes, before));
}

/** As `decodeProtobufReusing`, in steps for large objects. */
export function* decodeProtobufReusingInSteps(bytes: Uint8Array, before: EncodedObject): Steps<KubeObject> {
  const { apiVersion, kind, raw } = decodeUnknown(bytes);
  // Cast: `scheme.kind` finds nothing for an invalid one.
  const type = scheme.kind({ ...parseGroupVersion(apiVersion), kind } as GroupVersionKind);
  const structs = type === undefined ? noStructs : lendable.getOrInsertComputed(type, structsOf);
  if (type === undefined || structs.size === 0) return yield* decodeProtobufInSteps(bytes);
  const then = decodeUnknown(before.bytes);
  if (then.apiVersion !== apiVersion || then.kind !== kind) return yield* decodeProtobufInSteps(bytes);
  const earlier = new Map(fieldsOf(then.raw));
  const shared = new Set<string>();
  const rest: Buffer[] = [];
  for (const [number, field] of fieldsOf(raw)) {
    const name = structs.get(number);
    if (name !== undefined && earlier.get(number)?.equals(field)) shared.add(name);
    else rest.push(field);
  }
  if (shared.size === 0) return yield* decodeProtobufInSteps(bytes);
  const object: Record<string, unknown> = { apiVersion, kind, ...(yield* messageIn(Buffer.concat(rest), type)) };
  for (const name of shared) {
    const value = (before.object as unknown as Record<string, unknown>)[name]; // cast: read by the names of the descriptor
    if (value === undefined) delete object[name];
    else object[name] = value;
  }
  return object as unknown as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
}

const noStructs: ReadonlyMap<number, string> = new Map();
/** A pure cache: descriptors do not change. */
const lendable = new WeakMap<TypeDescriptor, ReadonlyMap<number, string>>();

/** Field number → name of the top-level structs that can be shared; empty for kinds without any, e.g. ConfigMap. */
function structsOf({ message }: TypeDescriptor): ReadonlyMap<number, string> {
  return new Map(
    message.flatMap(({ number, name, type }): [number, string][] =>
      type.kind === "struct" && name !== undefined && name !== "metadata" ? [[number, name]] : [],
    ),
  );
}

/** Number and bytes of each field, tag included. @throws Error for malformed bytes */
function fieldsOf(message: Uint8Array): [number, Buffer][] {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const reader = protobuf.Reader.create(bytes);
  const fields: [number, Buffer][] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    reader.skipType(tag & 7);
    fields.push([tag >>> 3, bytes.subarray(start, reader.pos)]);
  }
  return fields;
}
