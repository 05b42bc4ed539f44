import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRange, decodeTxn, encodePut, encodeRange, encodeTxn, type KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import protobuf from "protobufjs/minimal.js";
import {
  decodeDeleteRequest,
  decodeFirstNumber,
  decodePutRequest,
  decodeRangeRequest,
  decodeTxnRequest,
  encodeRangeResponse,
  encodeTxnResponse,
  NotServed,
} from "./messages.ts";

const bytesOf = (write: (writer: protobuf.Writer) => protobuf.Writer): Uint8Array => write(protobuf.Writer.create()).finish();
/** A transaction with one comparison or operation of these bytes. */
const txnOf = (field: number, write: (writer: protobuf.Writer) => protobuf.Writer): Uint8Array =>
  bytesOf((writer) => write(writer.uint32(field).fork()).ldelim());

for (const request of [
  { key: "/a" },
  { key: "/a", end: "/b", limit: 5, revision: 7 },
  { key: "/a", end: "/b", keysOnly: true },
  { key: "/a", end: "/b", countOnly: true },
])
  test(`a range request is read with all its fields: ${JSON.stringify(request)}`, () => {
    assert.deepEqual(decodeRangeRequest(encodeRange(request)), request);
  });

test("a range without an end is of all keys from its beginning on; fields that are not known are skipped", () => {
  const bytes = bytesOf((writer) =>
    writer
      .uint32(10)
      .string("/a")
      .uint32(18)
      .bytes(Buffer.from([0]))
      .uint32(40)
      .int32(1),
  );
  assert.deepEqual(decodeRangeRequest(bytes), { key: "/a", end: "\u{10ffff}" });
});

test("a put is read with its lease, a deletion with its key", () => {
  const put = { type: "put", key: "/a", value: Buffer.from("v") };
  assert.deepEqual({ ...decodePutRequest(encodePut("/a", put.value)) }, put);
  const leased = bytesOf((writer) => writer.uint32(10).string("/a").uint32(18).bytes(put.value).uint32(24).int64(5));
  assert.deepEqual(decodePutRequest(leased), { ...put, lease: 5n });
  const deletion = bytesOf((writer) => writer.uint32(10).string("/a"));
  assert.deepEqual(decodeDeleteRequest(deletion), { type: "delete", key: "/a" });
});

test("the first number of a request is read, zero when there is none", () => {
  assert.equal(decodeFirstNumber(bytesOf((writer) => writer.uint32(16).int64(3).uint32(8).int64(77))), 77n);
  assert.equal(decodeFirstNumber(new Uint8Array()), 0n);
});

test("a transaction is read with its comparisons and both its branches, in their order", () => {
  const request = {
    compare: [
      { key: "/a", target: "modRevision", value: 3 },
      { key: "/b", target: "version", value: 0 },
    ],
    success: [
      { type: "put", key: "/a", value: Buffer.from("1"), lease: 9n },
      { type: "delete", key: "/b" },
    ],
    failure: [{ type: "range", range: { key: "/a", end: "/c", limit: 2 } }],
  } as const;
  const read = decodeTxnRequest(
    encodeTxn({ ...request, compare: [...request.compare], success: [...request.success], failure: [...request.failure] }),
  );
  assert.deepEqual(read, request);
});

for (const [what, bytes, message] of [
  [
    "a range of keys to delete",
    bytesOf((w) => w.uint32(10).string("/a").uint32(18).string("/b")),
    "a range of keys cannot be deleted",
  ],
  ["a comparison by order", txnOf(10, (w) => w.uint32(8).int32(1)), "only equality is compared"],
  [
    "a comparison of creation revisions",
    txnOf(10, (w) => w.uint32(16).int32(1)),
    "only versions and revisions of the last change are compared",
  ],
  [
    "a comparison of values",
    txnOf(10, (w) => w.uint32(16).int32(3)),
    "only versions and revisions of the last change are compared",
  ],
  ["a comparison of a range", txnOf(10, (w) => w.uint32(514).string("/b")), "ranges are not compared"],
  ["a transaction in one", txnOf(18, (w) => w.uint32(34).fork().ldelim()), "there are no transactions in transactions"],
  ["an empty operation", txnOf(26, (w) => w), "an empty operation"],
] as const)
  test(`${what} is not served`, () => {
    const read = what.startsWith("a range") ? decodeDeleteRequest : decodeTxnRequest;
    assert.throws(
      () => read(bytes),
      (err) => err instanceof NotServed && err.message === message,
    );
  });

const kv: KeyValue = {
  ...{ key: "/a", createRevision: 2, modRevision: 3, version: 2, value: Buffer.from("v"), lease: 4n },
};

test("the answer to a range has the keys with all their fields, the number of all, and whether there are more", () => {
  const response = { revision: 9, kvs: [kv, { ...kv, key: "/b", lease: 0n }], more: true, count: 5 };
  assert.deepEqual(decodeRange(Buffer.from(encodeRangeResponse(response))), response);
  const empty = { revision: 9, kvs: [], more: false, count: 0 };
  assert.deepEqual(decodeRange(Buffer.from(encodeRangeResponse(empty))), empty);
});

test("the answer to a transaction has one result for each operation, that of a read with its keys", () => {
  const range = { revision: 9, kvs: [kv], more: false, count: 1 };
  const operations = [
    { type: "put", key: "/b", value: Buffer.from("") },
    { type: "range", range: { key: "/a" } },
    { type: "delete", key: "/c" },
  ] as const;
  for (const succeeded of [true, false]) {
    const response = { revision: 9, succeeded, ranges: [undefined, range, undefined] };
    assert.deepEqual(decodeTxn(Buffer.from(encodeTxnResponse(response, operations))), response);
  }
});
