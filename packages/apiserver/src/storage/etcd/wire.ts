import protobuf from "protobufjs/minimal.js";

/**
 * Encoders and decoders of etcd's v3 messages, handwritten with protobufjs: only the used fields, no intermediate
 * objects. Revisions are numbers (they stay below 2^53), lease ids bigint (they do not). Unknown fields are skipped.
 * Source: etcd api/etcdserverpb/rpc.proto, api/mvccpb/kv.proto
 */
type Writer = protobuf.Writer;
type Reader = protobuf.Reader;

export interface KeyValue {
  key: string;
  createRevision: number;
  modRevision: number;
  version: number;
  /** A view into the received message; copy it to keep it. */
  value: Buffer;
  lease: bigint;
}

export interface RangeRequest {
  key: string;
  /** Exclusive; undefined: the single key. */
  end?: string;
  limit?: number;
  revision?: number;
  keysOnly?: boolean;
  countOnly?: boolean;
}

export interface RangeResponse {
  /** The store's revision at the time of the response, also for reads at an older revision. */
  revision: number;
  kvs: KeyValue[];
  more: boolean;
  count: number;
}

export type Compare = { key: string; target: "modRevision"; value: number } | { key: string; target: "version"; value: number };

export type Operation =
  | { type: "range"; range: RangeRequest }
  | { type: "put"; key: string; value: Uint8Array; lease?: bigint }
  | { type: "delete"; key: string };

export interface TxnRequest {
  /** All must hold. */
  compare: readonly Compare[];
  success: readonly Operation[];
  failure: readonly Operation[];
}

export interface TxnResponse {
  /** Revision of the transaction when it wrote, otherwise the store's current one. */
  revision: number;
  succeeded: boolean;
  /** One element per operation; set for range operations. */
  ranges: (RangeResponse | undefined)[];
}

export interface WatchCreateRequest {
  key: string;
  end?: string;
  /** First revision to deliver. */
  startRevision: number;
  prevKv: boolean;
}

export interface WatchEventMessage {
  type: "put" | "delete";
  kv: KeyValue;
  prevKv: KeyValue | undefined;
}

/** The watch id of a progress reply, which applies to all watches of the stream. */
export const everyWatch = -1;

export interface WatchResponse {
  revision: number;
  watchId: number;
  created: boolean;
  canceled: boolean;
  compactRevision: number;
  cancelReason: string;
  /** Further events of the same revision follow in the next message. */
  fragment: boolean;
  events: WatchEventMessage[];
}

/** The first key after all keys with `prefix` (whose last byte must not be 0xff). */
export function endOfPrefix(prefix: string): string {
  const last = prefix.length - 1;
  return prefix.slice(0, last) + String.fromCharCode(prefix.charCodeAt(last) + 1);
}

// Field tags: number << 3 | wire type (0 varint, 2 length-delimited).

/** etcdserverpb.RangeRequest; fields with their zero value are omitted. */
export function encodeRange(request: RangeRequest): Buffer {
  const writer = protobuf.Writer.create();
  writeRange(writer, request);
  return finish(writer);
}

function writeRange(writer: Writer, request: RangeRequest): void {
  writer.uint32(10).string(request.key);
  if (request.end !== undefined) writer.uint32(18).string(request.end);
  if (request.limit) writer.uint32(24).int64(request.limit);
  if (request.revision) writer.uint32(32).int64(request.revision);
  if (request.keysOnly) writer.uint32(64).bool(true);
  if (request.countOnly) writer.uint32(72).bool(true);
}

/** etcdserverpb.RangeResponse. `count` is that of all keys in the range, whatever the limit. */
export function decodeRange(bytes: Uint8Array): RangeResponse {
  return readRange(protobuf.Reader.create(bytes), bytes.length);
}

function readRange(reader: Reader, end: number): RangeResponse {
  const response: RangeResponse = { revision: 0, kvs: [], more: false, count: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) response.revision = readHeader(reader);
    else if (tag === 18) response.kvs.push(readKeyValue(reader));
    else if (tag === 24) response.more = reader.bool();
    else if (tag === 32) response.count = readInt(reader);
    else reader.skipType(tag & 7);
  }
  return response;
}

/** etcdserverpb.TxnRequest: `success` is executed when all comparisons hold, otherwise `failure`. */
export function encodeTxn(request: TxnRequest): Buffer {
  const writer = protobuf.Writer.create();
  for (const compare of request.compare) {
    writer.uint32(10).fork();
    // result EQUAL is the default; targets: VERSION 0, MOD 2.
    if (compare.target === "modRevision") writer.uint32(16).int32(2);
    writer.uint32(26).string(compare.key);
    writer.uint32(compare.target === "modRevision" ? 48 : 32).int64(compare.value);
    writer.ldelim();
  }
  for (const operation of request.success) writeOperation(writer, 18, operation);
  for (const operation of request.failure) writeOperation(writer, 26, operation);
  return finish(writer);
}

function writeOperation(writer: Writer, tag: number, operation: Operation): void {
  writer.uint32(tag).fork();
  if (operation.type === "range") {
    writer.uint32(10).fork();
    writeRange(writer, operation.range);
  } else if (operation.type === "put") {
    writer.uint32(18).fork();
    writePut(writer, operation);
  } else {
    writer.uint32(26).fork().uint32(10).string(operation.key);
  }
  writer.ldelim().ldelim();
}

function writePut(writer: Writer, put: { key: string; value: Uint8Array; lease?: bigint }): void {
  writer.uint32(10).string(put.key).uint32(18).bytes(put.value);
  if (put.lease !== undefined) writeBigInt(writer.uint32(24), put.lease);
}

/** `ranges` has an element for each operation of the executed branch; undefined for those that are no range. */
export function decodeTxn(bytes: Uint8Array): TxnResponse {
  const reader = protobuf.Reader.create(bytes);
  const response: TxnResponse = { revision: 0, succeeded: false, ranges: [] };
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 10) response.revision = readHeader(reader);
    else if (tag === 16) response.succeeded = reader.bool();
    else if (tag === 26) response.ranges.push(readOperationResponse(reader));
    else reader.skipType(tag & 7);
  }
  return response;
}

function readOperationResponse(reader: Reader): RangeResponse | undefined {
  const end = reader.uint32() + reader.pos;
  let range: RangeResponse | undefined;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) {
      const length = reader.uint32();
      range = readRange(reader, reader.pos + length);
    } else reader.skipType(tag & 7);
  }
  return range;
}

/** Without a lease; a put with one is an operation of a transaction. */
export function encodePut(key: string, value: Uint8Array): Buffer {
  const writer = protobuf.Writer.create();
  writePut(writer, { key, value });
  return finish(writer);
}

/** The header's revision, for responses without other relevant fields: put, compaction. */
export function decodeRevision(bytes: Uint8Array): number {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 10) return readHeader(reader);
    reader.skipType(tag & 7);
  }
  return 0;
}

/** Not `physical`: etcd answers before the space is free. */
export function encodeCompaction(revision: number): Buffer {
  return finish(protobuf.Writer.create().uint32(8).int64(revision));
}

/** etcdserverpb.LeaseGrantRequest; etcd chooses the id. */
export function encodeLeaseGrant(ttlSeconds: number): Buffer {
  return finish(protobuf.Writer.create().uint32(8).int64(ttlSeconds));
}

/** The lease's id, which has 64 bits; 0 when the response has none. */
export function decodeLeaseGrant(bytes: Uint8Array): bigint {
  const reader = protobuf.Reader.create(bytes);
  let id = 0n;
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 16) id = readBigInt(reader);
    else reader.skipType(tag & 7);
  }
  return id;
}

/** etcdserverpb.WatchRequest with a create request. Large responses may be fragmented: see `decodeWatch`. */
export function encodeWatchCreate(request: WatchCreateRequest): Buffer {
  const writer = protobuf.Writer.create().uint32(10).fork();
  writer.uint32(10).string(request.key);
  if (request.end !== undefined) writer.uint32(18).string(request.end);
  writer.uint32(24).int64(request.startRevision);
  if (request.prevKv) writer.uint32(48).bool(true);
  writer.uint32(64).bool(true); // fragment: one transaction may exceed the message limit
  return finish(writer.ldelim());
}

/** Requests a response with the current revision and no events on the stream. */
export function encodeWatchProgress(): Buffer {
  return finish(protobuf.Writer.create().uint32(26).fork().ldelim());
}

/** etcdserverpb.WatchResponse; `fragment`: the next response continues this one's revision. */
export function decodeWatch(bytes: Uint8Array): WatchResponse {
  const reader = protobuf.Reader.create(bytes);
  const response: WatchResponse = {
    revision: 0,
    watchId: 0,
    created: false,
    canceled: false,
    compactRevision: 0,
    cancelReason: "",
    fragment: false,
    events: [],
  };
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 90) response.events.push(readEvent(reader));
    else if (tag === 10) response.revision = readHeader(reader);
    else if (tag === 16) response.watchId = readInt(reader);
    else if (tag === 24) response.created = reader.bool();
    else if (tag === 32) response.canceled = reader.bool();
    else if (tag === 40) response.compactRevision = readInt(reader);
    else if (tag === 50) response.cancelReason = reader.string();
    else if (tag === 56) response.fragment = reader.bool();
    else reader.skipType(tag & 7);
  }
  return response;
}

function readEvent(reader: Reader): WatchEventMessage {
  const end = reader.uint32() + reader.pos;
  const event: WatchEventMessage = { type: "put", kv: emptyKeyValue(), prevKv: undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 8) event.type = reader.uint32() === 1 ? "delete" : "put";
    else if (tag === 18) event.kv = readKeyValue(reader);
    else if (tag === 26) event.prevKv = readKeyValue(reader);
    else reader.skipType(tag & 7);
  }
  return event;
}

const noBytes = Buffer.alloc(0);
const emptyKeyValue = (): KeyValue => ({ key: "", createRevision: 0, modRevision: 0, version: 0, value: noBytes, lease: 0n });

function readKeyValue(reader: Reader): KeyValue {
  const end = reader.uint32() + reader.pos;
  const kv = emptyKeyValue();
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) kv.key = reader.string();
    else if (tag === 16) kv.createRevision = readInt(reader);
    else if (tag === 24) kv.modRevision = readInt(reader);
    else if (tag === 32) kv.version = readInt(reader);
    else if (tag === 42) kv.value = readBytes(reader);
    else if (tag === 48) kv.lease = readBigInt(reader);
    else reader.skipType(tag & 7);
  }
  return kv;
}

function readHeader(reader: Reader): number {
  const end = reader.uint32() + reader.pos;
  let revision = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 24) revision = readInt(reader);
    else reader.skipType(tag & 7);
  }
  return revision;
}

function readBytes(reader: Reader): Buffer {
  const length = reader.uint32();
  const start = reader.pos;
  reader.skip(length);
  const source = reader.buf as Buffer; // cast: readers are made from Buffers
  return Buffer.from(source.buffer, source.byteOffset + start, length);
}

/** Reads a varint below 2^53; negative values (ten bytes, `everyWatch`) read as -1. */
export function readInt(reader: Reader): number {
  let value = 0;
  let scale = 1;
  for (let i = 0; i < 10; i++) {
    const byte = reader.buf[reader.pos++]!;
    if (i === 9) return -1;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 128;
  }
  return value;
}

/** Reads a signed 64-bit varint without loss of precision; `readInt` is for those that fit into a number. */
export function readBigInt(reader: Reader): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = reader.buf[reader.pos++]!;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return BigInt.asIntN(64, value);
}

function writeBigInt(writer: Writer, value: bigint): void {
  // protobufjs accepts 64-bit numbers as two halves, in the shape of the `long` package.
  const bits = BigInt.asUintN(64, value);
  writer.uint64({ low: Number(bits & 0xffffffffn) | 0, high: Number(bits >> 32n) | 0, unsigned: true });
}

function finish(writer: Writer): Buffer {
  const bytes = writer.finish();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
