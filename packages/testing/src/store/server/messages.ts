import type {
  Compare,
  Operation,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  TxnResponse,
} from "@coxswain/apiserver/storage/etcd/wire";
import type { Member, StatusResponse } from "@coxswain/apiserver/storage/etcd/wire-cluster";
import protobuf from "protobufjs/minimal.js";
import { writeKeyValue } from "../watch-messages.ts";

/** etcd's side of its messages: reads requests, writes responses. Source: etcd api/etcdserverpb/rpc.proto */
type Reader = protobuf.Reader;
type Writer = protobuf.Writer;

/** Thrown for requests that are not supported. */
export class NotServed extends Error {}

const keyOf = (reader: Reader): string => Buffer.from(reader.bytes()).toString();
const numberOf = (reader: Reader): number => Number(reader.int64());

function fields(reader: Reader, end: number, read: Readonly<Record<number, () => void>>): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    const take = read[tag];
    if (take === undefined) reader.skipType(tag & 7);
    else take();
  }
}

/** Reads the length of an embedded message. @returns the position of its end */
const within = (reader: Reader): number => reader.uint32() + reader.pos;

export function decodeRangeRequest(bytes: Uint8Array): RangeRequest {
  return readRange(protobuf.Reader.create(bytes), bytes.length);
}

function readRange(reader: Reader, end: number): RangeRequest {
  const range: RangeRequest = { key: "" };
  fields(reader, end, {
    10: () => {
      range.key = keyOf(reader);
    },
    18: () => {
      range.end = keyOf(reader);
    },
    24: () => {
      range.limit = numberOf(reader);
    },
    32: () => {
      range.revision = numberOf(reader);
    },
    64: () => {
      range.keysOnly = reader.bool();
    },
    72: () => {
      range.countOnly = reader.bool();
    },
  });
  return fromZero(range);
}

/** `\0` as the end of a range means all keys from its beginning on. */
function fromZero(range: RangeRequest): RangeRequest {
  return range.end === "\0" ? { ...range, end: "\u{10ffff}" } : range;
}

type Put = Extract<Operation, { type: "put" }>;

export function decodePutRequest(bytes: Uint8Array): Put {
  return readPut(protobuf.Reader.create(bytes), bytes.length);
}

function readPut(reader: Reader, end: number): Put {
  const put: Put = { type: "put", key: "", value: Buffer.alloc(0) };
  fields(reader, end, {
    10: () => {
      put.key = keyOf(reader);
    },
    18: () => {
      put.value = reader.bytes();
    },
    24: () => {
      put.lease = BigInt(reader.int64().toString());
    },
  });
  return put;
}

/** @throws NotServed for a range of keys */
export function decodeDeleteRequest(bytes: Uint8Array): Operation {
  return readDelete(protobuf.Reader.create(bytes), bytes.length);
}

function readDelete(reader: Reader, end: number): Operation {
  let key = "";
  fields(reader, end, {
    10: () => {
      key = keyOf(reader);
    },
    18: () => {
      throw new NotServed("a range of keys cannot be deleted");
    },
  });
  return { type: "delete", key };
}

/** @throws NotServed for comparisons and operations that API servers do not use */
export function decodeTxnRequest(bytes: Uint8Array): TxnRequest {
  const reader = protobuf.Reader.create(bytes);
  const [compare, success, failure]: [Compare[], Operation[], Operation[]] = [[], [], []];
  fields(reader, bytes.length, {
    10: () => void compare.push(readCompare(reader)),
    18: () => void success.push(readOperation(reader)),
    26: () => void failure.push(readOperation(reader)),
  });
  return { compare, success, failure };
}

function readCompare(reader: Reader): Compare {
  let [target, value, key] = [0, 0, ""];
  fields(reader, within(reader), {
    8: () => {
      if (reader.int32() !== 0) throw new NotServed("only equality is compared");
    },
    16: () => {
      target = reader.int32();
    },
    26: () => {
      key = keyOf(reader);
    },
    32: () => {
      value = numberOf(reader);
    },
    48: () => {
      value = numberOf(reader);
    },
    514: () => {
      throw new NotServed("ranges are not compared");
    },
  });
  if (target === 0) return { key, target: "version", value };
  if (target === 2) return { key, target: "modRevision", value };
  throw new NotServed("only versions and revisions of the last change are compared");
}

function readOperation(reader: Reader): Operation {
  let operation: Operation | undefined;
  fields(reader, within(reader), {
    10: () => {
      operation = { type: "range", range: readRange(reader, within(reader)) };
    },
    18: () => {
      operation = readPut(reader, within(reader));
    },
    26: () => {
      operation = readDelete(reader, within(reader));
    },
    34: () => {
      throw new NotServed("there are no transactions in transactions");
    },
  });
  if (operation === undefined) throw new NotServed("an empty operation");
  return operation;
}

/** The first field, a number, of requests for compaction (revision), lease grant (seconds), lease revocation and renewal (ID). */
export function decodeFirstNumber(bytes: Uint8Array): bigint {
  let value = 0n;
  const reader = protobuf.Reader.create(bytes);
  fields(reader, bytes.length, {
    8: () => {
      value = BigInt(reader.int64().toString());
    },
  });
  return value;
}

const memberId = 1;

function withHeader(revision: number): Writer {
  const writer = protobuf.Writer.create();
  writer.uint32(10).fork().uint32(8).uint64(1).uint32(16).uint64(memberId).uint32(24).int64(revision).uint32(32).uint64(1);
  return writer.ldelim();
}

/** A response with only a header, as to a put or a compaction. */
export const encodeHeader = (revision: number): Uint8Array => withHeader(revision).finish();

export function encodeRangeResponse(response: RangeResponse): Uint8Array {
  return writeRange(withHeader(response.revision), response).finish();
}

function writeRange(writer: Writer, { kvs, more, count }: RangeResponse): Writer {
  for (const kv of kvs) writeKeyValue(writer.uint32(18).fork(), kv);
  if (more) writer.uint32(24).bool(true);
  return writer.uint32(32).int64(count);
}

/** @param operations the executed operations, in the order of the results in `response` */
export function encodeTxnResponse({ revision, succeeded, ranges }: TxnResponse, operations: readonly Operation[]): Uint8Array {
  const writer = withHeader(revision);
  if (succeeded) writer.uint32(16).bool(true);
  for (const [index, { type }] of operations.entries()) {
    writer.uint32(26).fork();
    const range = ranges[index];
    if (range !== undefined) writer.uint32(10).fork().raw(encodeRangeResponse(range)).ldelim();
    else if (type === "delete") writer.uint32(26).fork().raw(encodeDeleteResponse(revision, 1)).ldelim();
    else writer.uint32(18).fork().raw(encodeHeader(revision)).ldelim();
    writer.ldelim();
  }
  return writer.finish();
}

/** @param deleted number of removed keys */
export function encodeDeleteResponse(revision: number, deleted: number): Uint8Array {
  return withHeader(revision).uint32(16).int64(deleted).finish();
}

/** Response to a lease grant or renewal, which have the same fields. */
export function encodeLease(revision: number, id: bigint, seconds: number): Uint8Array {
  return withHeader(revision).uint32(16).int64(Number(id)).uint32(24).int64(seconds).finish();
}

/** Lists the store itself as the only member. */
export function encodeMemberList(revision: number, { clientUrls }: Pick<Member, "clientUrls">): Uint8Array {
  const writer = withHeader(revision).uint32(18).fork().uint32(8).uint64(memberId).uint32(18).string("memory");
  for (const url of clientUrls) writer.uint32(34).string(url);
  return writer.ldelim().finish();
}

export function encodeStatus(
  revision: number,
  { version, dbSizeBytes }: Pick<StatusResponse, "version" | "dbSizeBytes">,
): Uint8Array {
  const writer = withHeader(revision).uint32(18).string(version).uint32(24).int64(dbSizeBytes);
  return writer.uint32(32).uint64(memberId).finish();
}
