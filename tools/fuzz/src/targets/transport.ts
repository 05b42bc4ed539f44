/** Bytes of transport connections. */
import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { SimpleHeadReader } from "@coxswain/apimachinery/serving/simple-head";
import { framedMessage, MessageTooLarge, newMessageReader, statusMessage } from "@coxswain/apimachinery/transport/grpc/call";
import { ClientConnection } from "@coxswain/apimachinery/transport/http2/client/connection";
import { areTrailers, requestHeadOf } from "@coxswain/apimachinery/transport/http2/server/input";
import { ConnectionError, errorCodes } from "@coxswain/apimachinery/transport/http2/wire/connection-error";
import {
  checkFrame,
  frame,
  newFrameReader,
  preface,
  settingsFrame,
  unpadded,
} from "@coxswain/apimachinery/transport/http2/wire/frames";
import { decodeHuffman, encodeFields, HpackError, newFieldsDecoder } from "@coxswain/apimachinery/transport/http2/wire/hpack";
import { decodePacket, encodeData, encodeDialRequest } from "@coxswain/apiserver/egress/konnectivity-packets";
import { decodeRange, decodeTxn, decodeWatch } from "@coxswain/apiserver/storage/etcd/wire";
import { decodeMemberList, decodeStatus } from "@coxswain/apiserver/storage/etcd/wire-cluster";
import type { Target } from "../target.ts";

const request = encodeFields([
  ":method",
  "GET",
  ":scheme",
  "https",
  ":authority",
  "localhost",
  ":path",
  "/api",
  "accept",
  "application/json",
  "content-length",
  "3",
]);
const response = encodeFields([":status", "200", "content-type", "application/json"]);
/** Encoded header, KeyValue and Event messages of etcd. */
const header = Buffer.from([0x0a, 2, 0x18, 5]);
const keyValue = Buffer.from([0x0a, 1, 0x61, 0x10, 1, 0x18, 2, 0x20, 1, 0x2a, 1, 0x62]);
const range = Buffer.concat([header, Buffer.from([0x12, keyValue.length]), keyValue, Buffer.from([0x18, 1, 0x20, 3])]);
const event = Buffer.concat([Buffer.from([0x08, 0, 0x12, keyValue.length]), keyValue]);
const watch = Buffer.concat([header, Buffer.from([0x10, 1, 0x18, 1, 0x5a, event.length]), event]);
const varints = [
  Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
  Buffer.of(0x12),
  Buffer.of(0x0a),
  Buffer.of(0x0b),
  Buffer.of(0x5a),
];

export const targets: readonly Target[] = [
  {
    name: "hpack",
    seeds: [request, Buffer.from("828684418cf1e3c2e5f23a6ba0ab90f4ff", "hex"), Buffer.from("40016101623fe11f20be", "hex")],
    dictionary: [
      Buffer.of(0x82),
      Buffer.of(0xbe),
      Buffer.of(0x40),
      Buffer.of(0x3f, 0xe1, 0x1f),
      Buffer.of(0x20),
      Buffer.of(0xff, 0x80, 0x80, 0x80, 0x80, 0),
    ],
    declares: [HpackError],
    run(input) {
      const { fields, tooLarge } = newFieldsDecoder({ mostListBytes: 64 * 1024 }).decode(input);
      if (tooLarge) return;
      requestHeadOf(fields);
      areTrailers(fields);
      if (fields.every((text, at) => at % 2 === 1 || text === text.toLowerCase()))
        assert.deepEqual(newFieldsDecoder().decode(encodeFields(fields)).fields, fields);
    },
  },
  {
    name: "huffman",
    seeds: [Buffer.from("f1e3c2e5f23a6ba0ab90f4ff", "hex")],
    declares: [HpackError],
    run: (input) => void decodeHuffman(input, 0, input.length),
  },
  {
    name: "http2-frames",
    seeds: [
      Buffer.concat([Buffer.of(20), settingsFrame([[1, 2]]), frame(1, 5, 1, request), frame(0, 9, 1, Buffer.from("\x02ab\0\0"))]),
    ],
    dictionary: [
      frame(3, 0, 1, Buffer.alloc(4)),
      frame(8, 0, 0, Buffer.alloc(4)),
      frame(6, 0, 0, Buffer.alloc(8)),
      Buffer.of(0, 0x40, 0),
    ],
    declares: [ConnectionError],
    run(input) {
      const read = newFrameReader((type, flag, stream, payload) => {
        checkFrame(type, flag, stream, payload.length);
        unpadded(flag, payload);
      });
      const at = 1 + (input[0] ?? 0);
      read(input.subarray(1, at));
      read(input.subarray(at));
    },
  },
  {
    name: "http2-client",
    seeds: [
      Buffer.concat([
        Buffer.of(40),
        settingsFrame([
          [3, 5],
          [4, 100_000],
        ]),
        frame(1, 4, 1, response),
        frame(0, 1, 1, Buffer.from("ab")),
        frame(3, 0, 3, Buffer.alloc(4)),
      ]),
      Buffer.concat([
        Buffer.of(9),
        settingsFrame([]),
        frame(1, 0, 1, response.subarray(0, 3)),
        frame(9, 5, 1, response.subarray(3)),
      ]),
      Buffer.concat([Buffer.of(3), settingsFrame([]), frame(6, 0, 0, Buffer.alloc(8)), frame(7, 0, 0, Buffer.alloc(8))]),
    ],
    dictionary: [
      settingsFrame([]),
      frame(4, 1, 0, Buffer.alloc(0)),
      frame(1, 5, 1, response),
      frame(9, 4, 1, Buffer.alloc(0)),
      frame(8, 0, 1, Buffer.from([0, 0, 1, 0])),
      frame(3, 0, 1, Buffer.alloc(4)),
    ],
    run(input) {
      let reasons = 0;
      const codes: number[] = [];
      const read = newFrameReader((type, _, __, payload) => {
        if (type === 7) codes.push(payload.readUInt32BE(4));
      });
      let skip = preface.length;
      const socket = new Duplex({
        read() {},
        write(chunk: Buffer, _, done) {
          read(chunk.subarray(skip));
          skip = 0;
          done();
        },
      });
      const windows = { streamWindowBytes: 70_000, connectionWindowBytes: 70_000 };
      const made = new ClientConnection(socket, windows, { ready() {}, leaving() {}, closed: () => void reasons++ });
      let ended = 0;
      const handlers = { fields() {}, data() {}, closed: () => void ended++ };
      for (const body of [0, 10]) made.request(request, Buffer.alloc(body), true, handlers);
      const at = 1 + (input[0] ?? 0);
      for (const chunk of [input.subarray(1, at), input.subarray(at)]) if (!socket.destroyed) socket.emit("data", chunk);
      const before = ended;
      socket.destroy();
      return new Promise((resolve) => setImmediate(resolve)).then(() => {
        assert.equal(reasons, 1, "closed once");
        assert.ok(before <= 2 && ended === 2, "each request ends once");
        assert.ok(!codes.includes(errorCodes.internal), "an internal error");
      });
    },
  },
  {
    name: "http1-head",
    seeds: [
      "GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n",
      "GET / HTTP/1.1\r\nhost:a\r\nconnection: keep-alive\r\n\r\n",
    ],
    dictionary: ["\r\n", ": ", "Host: ", "Connection: ", "Transfer-Encoding: chunked", " HTTP/1.1", "GET /"],
    run(input) {
      const reader = new SimpleHeadReader();
      const head = reader.read(input);
      assert.deepEqual(reader.read(input), head, "the same each time");
      if (head === undefined) return;
      assert.equal(new Set(head.names).size, head.names.length);
      assert.ok(head.url.startsWith("/"));
    },
  },
  {
    name: "grpc-messages",
    seeds: [Buffer.concat([Buffer.of(3), framedMessage(Buffer.from("abc")), framedMessage(Buffer.alloc(0))]), "%E2%82%AC%"],
    dictionary: [Buffer.of(0, 0, 0, 0, 1), Buffer.of(0xff, 0xff, 0xff, 0xff)],
    declares: [Error, MessageTooLarge],
    run(input) {
      statusMessage(input.toString("latin1"));
      const read = newMessageReader(() => {}, 1 << 20);
      const at = 1 + (input[0] ?? 0);
      read(input.subarray(1, at));
      read(input.subarray(at));
    },
  },
  // protobufjs throws RangeError for truncated bytes.
  {
    name: "etcd-range",
    seeds: [range],
    dictionary: varints,
    declares: [Error, RangeError],
    run: (input) => void decodeRange(input),
  },
  {
    name: "etcd-txn",
    seeds: [Buffer.concat([header, Buffer.from([0x10, 1, 0x1a, range.length + 2, 0x0a, range.length]), range])],
    dictionary: varints,
    declares: [Error, RangeError],
    run: (input) => void decodeTxn(input),
  },
  {
    name: "etcd-watch",
    seeds: [watch],
    dictionary: varints,
    declares: [Error, RangeError],
    run: (input) => void decodeWatch(input),
  },
  {
    name: "etcd-cluster",
    seeds: [Buffer.from([0x12, 6, 8, 1, 0x22, 2, 0x61, 0x62]), Buffer.from([0x0a, 2, 0x10, 1, 0x12, 1, 0x33, 0x18, 5])],
    dictionary: varints,
    declares: [Error, RangeError],
    run(input) {
      decodeStatus(input);
      decodeMemberList(input);
    },
  },
  {
    name: "konnectivity",
    seeds: [encodeData("5", Buffer.from("a")), encodeDialRequest("a:1", "7")],
    dictionary: varints,
    declares: [Error, RangeError],
    run: (input) => void decodePacket(input),
  },
];
