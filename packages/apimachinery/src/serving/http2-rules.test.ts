/** Valid and invalid frames of a client and the server's reaction. Source: RFC 9113, sections 4 to 6 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import {
  continuationFrame,
  dataFrame,
  endOfBoth,
  getFrame,
  headersFrame,
  literalBlock,
  paddedDataFrame,
  pingFrame,
  postFrame,
  priorityFrame,
  priorityOctets,
  requestFields,
  resetFrame,
  windowFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { flags, frame, frameTypes, settings, settingsFrame } from "../transport/http2/wire/frames.ts";
import type { ExchangeHandler } from "./exchange.ts";

/** `/hold` is never answered, other paths report the length of the body. */
const handler: ExchangeHandler = async (exchange) => {
  if (exchange.url === "/hold") return void (await once(exchange.signal, "abort"));
  const body = await exchange.body(1_000_000);
  exchange.respond(200, {}, String(body.length));
};

interface Rules {
  readonly section: string;
  /** Accepted outcomes of the request on stream 1. */
  readonly want: readonly string[];
  /** Sent after preface and SETTINGS, in one write. */
  readonly cases: Readonly<Record<string, Buffer | readonly Buffer[]>>;
}

const answered = ["status 200"];
const connection = (code: string): string[] => [`connection ${code}`];
/** A stream error may be treated as a connection error (5.4.2). */
const streamOrConnection = (code: string): string[] => [`stream ${code}`, `connection ${code}`];

const typed = (type: number, stream: number, payload: Buffer, flag = 0): Buffer => frame(type, flag, stream, payload);
const octets = (count: number): Buffer => Buffer.alloc(count);
const setting = (id: number, value: number): Buffer => settingsFrame([[id, value]]);
const request = literalBlock(requestFields("GET", "/"));
const requestAnd = (...more: number[]): Buffer => headersFrame(1, Buffer.concat([request, Buffer.from(more)]));
const unfinished = headersFrame(1, request, flags.endStream);
const held = getFrame(1, "/hold");
const upload = postFrame(1);
const end = dataFrame(1, "", flags.endStream);
const tooLong = 16_385;

const rules: readonly Rules[] = [
  {
    section: "4.1 frames",
    want: answered,
    cases: {
      "unknown types on the connection": [
        ...[0x0a, 0x0c, 0x10, 0xff].map((type) => typed(type, 0, octets(16_384), 0xff)),
        getFrame(1),
      ],
      "unknown types on a stream that is idle": [typed(0xbb, 1, octets(3)), typed(0xbb, 7, octets(0)), getFrame(1)],
      "unknown types on a stream that is open": [upload, typed(0xbb, 1, octets(3)), end],
      "the reserved bit": headersFrame(0x80000001, request),
      "flags without a meaning": headersFrame(1, request, endOfBoth | 0xd2),
    },
  },
  {
    section: "4.2 sizes",
    want: answered,
    cases: {
      "DATA of 16,384 octets": [upload, dataFrame(1, octets(16_384)), end],
      "DATA of none": [upload, dataFrame(1, ""), end],
      "HEADERS of 16,384 octets": headersFrame(
        1,
        Buffer.concat([request, literalBlock([["a", "b".repeat(16_384 - request.length - 6)]])]),
      ),
    },
  },
  {
    section: "4.2 sizes",
    want: connection("FRAME_SIZE_ERROR"),
    cases: {
      "HEADERS that are too long": headersFrame(1, octets(tooLong)),
      "CONTINUATION that is too long": [unfinished, continuationFrame(1, octets(tooLong))],
      "SETTINGS that are too long": typed(frameTypes.settings, 0, octets(16_386)),
      "an unknown frame on the connection that is too long": typed(0xbb, 0, octets(tooLong)),
      "SETTINGS of five octets": typed(frameTypes.settings, 0, octets(5)),
      "PING of seven octets": pingFrame("1234567"),
      "PING of nine octets": pingFrame("123456789"),
      "RST_STREAM of three octets": [held, typed(frameTypes.resetStream, 1, octets(3))],
      "RST_STREAM of five octets": [held, typed(frameTypes.resetStream, 1, octets(5))],
      "WINDOW_UPDATE of three octets": typed(frameTypes.windowUpdate, 0, octets(3)),
      "WINDOW_UPDATE of five octets on a stream": [held, typed(frameTypes.windowUpdate, 1, octets(5))],
      "GOAWAY of seven octets": typed(frameTypes.goAway, 0, octets(7)),
      "an acknowledgement of SETTINGS with content": typed(frameTypes.settings, 0, octets(6), flags.ack),
    },
  },
  {
    section: "4.2 sizes",
    want: streamOrConnection("FRAME_SIZE_ERROR"),
    cases: {
      "DATA that is too long": [upload, dataFrame(1, octets(tooLong))],
      "PRIORITY of four octets": [held, typed(frameTypes.priority, 1, octets(4))],
      "PRIORITY of six octets": [held, typed(frameTypes.priority, 1, octets(6))],
    },
  },
  {
    section: "4.3 field blocks",
    want: answered,
    cases: {
      "a block cut in the midst of its fields": [
        headersFrame(1, request.subarray(0, 1), flags.endStream),
        ...[1, 2, 3, 5, 8, 13, 21].map((at, i, cuts) => continuationFrame(1, request.subarray(at, cuts[i + 1]), 0)),
        continuationFrame(1, octets(0)),
      ],
    },
  },
  {
    section: "4.3 field blocks",
    want: connection("COMPRESSION_ERROR"),
    cases: {
      "the index 0": requestAnd(0x80),
      "an undefined index": requestAnd(0xbe),
      "the name of an undefined index": requestAnd(0x7f, 0x07, 0x01, 0x61),
      "a table that is larger than allowed": headersFrame(1, Buffer.concat([Buffer.of(0x3f, 0xe2, 0x1f), request])),
      "a size of the table at the end": requestAnd(0x20),
      "a text that is cut off": requestAnd(0x00, 0x05, 0x61),
      "a number without end": requestAnd(0xff, ...Array(20).fill(0xff)),
      "eleven bits behind the last character": requestAnd(0x00, 0x01, 0x61, 0x82, 0x1f, 0xff),
      "zeros behind the last character": requestAnd(0x00, 0x01, 0x61, 0x81, 0x18),
      "the end of the text as a character": requestAnd(0x00, 0x01, 0x61, 0x84, 0xff, 0xff, 0xff, 0xff),
      "the index 0 in trailers": [upload, headersFrame(1, Buffer.of(0x80))],
    },
  },
  {
    section: "5.1 idle streams",
    want: connection("PROTOCOL_ERROR"),
    cases: {
      DATA: dataFrame(1, "x"),
      RST_STREAM: resetFrame(1),
      WINDOW_UPDATE: windowFrame(1, 1),
      CONTINUATION: continuationFrame(1, request, endOfBoth),
    },
  },
  {
    section: "5.1 half-closed streams",
    want: streamOrConnection("STREAM_CLOSED"),
    cases: {
      HEADERS: [held, headersFrame(1, request)],
      trailers: [held, headersFrame(1, [["a", "b"]])],
      "HEADERS without an end": [held, headersFrame(1, request, flags.endHeaders)],
      DATA: [held, dataFrame(1, "x")],
      "DATA without content": [held, end],
      "DATA after trailers": [postFrame(1, "/hold"), headersFrame(1, [["a", "b"]]), dataFrame(1, "x")],
    },
  },
  {
    section: "5.1.1 identifiers",
    want: [...connection("PROTOCOL_ERROR"), ...connection("STREAM_CLOSED")],
    cases: {
      "an even one": getFrame(2),
      "one below the last": [getFrame(3, "/hold"), getFrame(1)],
      "DATA on one that was left out": [getFrame(3, "/hold"), dataFrame(1, "x")],
    },
  },
  {
    section: "5.3 priorities",
    want: answered,
    cases: {
      "on a stream that is idle": [priorityFrame(1, 0), priorityFrame(9, 1), getFrame(1)],
      "on a stream that is open": [upload, priorityFrame(1, 5), end],
      "with the request": headersFrame(1, Buffer.concat([priorityOctets(0), request]), endOfBoth | flags.priority),
    },
  },
  {
    section: "5.3 priorities",
    want: [...answered, ...streamOrConnection("PROTOCOL_ERROR")],
    cases: {
      "a stream that depends on itself": [upload, priorityFrame(1, 1), end],
      "a request that depends on itself": headersFrame(
        1,
        Buffer.concat([priorityOctets(1), request]),
        endOfBoth | flags.priority,
      ),
    },
  },
  {
    section: "6.1, 6.2 padding",
    want: answered,
    cases: {
      "of DATA": [upload, paddedDataFrame(1, "abc", 255), paddedDataFrame(1, "", 0, flags.endStream)],
      "of HEADERS": headersFrame(1, Buffer.concat([Buffer.of(9), request, octets(9)]), endOfBoth | flags.padded),
      "of HEADERS with a priority": headersFrame(
        1,
        Buffer.concat([Buffer.of(9), priorityOctets(0), request, octets(9)]),
        endOfBoth | flags.padded | flags.priority,
      ),
    },
  },
  {
    section: "6.1, 6.2 padding",
    want: connection("PROTOCOL_ERROR"),
    cases: {
      "of DATA, as long as the frame": [upload, dataFrame(1, Buffer.of(3, 0, 0), flags.padded)],
      "of HEADERS, as long as the frame": headersFrame(1, Buffer.of(3, 0, 0), endOfBoth | flags.padded),
      "of HEADERS, over the priority": headersFrame(1, Buffer.of(1, 0, 0, 0, 0, 0), endOfBoth | flags.padded | flags.priority),
    },
  },
  {
    section: "6.1, 6.2 padding",
    want: [...connection("FRAME_SIZE_ERROR"), ...connection("PROTOCOL_ERROR")],
    cases: {
      "of DATA without a length": [upload, dataFrame(1, "", flags.padded)],
      "of HEADERS without a length": headersFrame(1, octets(0), endOfBoth | flags.padded),
      "truncated priority fields": headersFrame(1, octets(4), endOfBoth | flags.priority),
    },
  },
  {
    section: "6 the wrong stream",
    want: connection("PROTOCOL_ERROR"),
    cases: {
      "DATA of the connection": dataFrame(0, "x"),
      "HEADERS of the connection": headersFrame(0, request),
      "PRIORITY of the connection": priorityFrame(0, 1),
      "RST_STREAM of the connection": resetFrame(0),
      "CONTINUATION of the connection": [unfinished, continuationFrame(0, octets(0))],
      "SETTINGS of a stream": [held, typed(frameTypes.settings, 1, octets(0))],
      "PING of a stream": [held, typed(frameTypes.ping, 1, octets(8))],
      "GOAWAY of a stream": [held, typed(frameTypes.goAway, 1, octets(8))],
      "PUSH_PROMISE of a client": [held, typed(frameTypes.pushPromise, 1, Buffer.concat([octets(4), request]), flags.endHeaders)],
    },
  },
  {
    section: "6.2, 6.10 a block in several frames",
    want: connection("PROTOCOL_ERROR"),
    cases: {
      "CONTINUATION of nothing": continuationFrame(1, request),
      "CONTINUATION of a block that had its end": [held, continuationFrame(1, octets(0))],
      "CONTINUATION of another stream": [unfinished, continuationFrame(3, octets(0))],
      "HEADERS of another stream between": [unfinished, getFrame(3)],
      "HEADERS of the same stream between": [unfinished, headersFrame(1, request)],
      "DATA between": [unfinished, dataFrame(1, "x")],
      "PING between": [unfinished, pingFrame("12345678")],
      "RST_STREAM between": [unfinished, resetFrame(1)],
      "an unknown type between": [unfinished, typed(0xbb, 1, octets(1))],
    },
  },
  {
    section: "6.5 SETTINGS",
    want: answered,
    cases: {
      "that are unknown": [setting(0x99, 0xffffffff), setting(0, 1), getFrame(1)],
      "at their bounds": [
        setting(settings.headerTableSize, 0xffffffff),
        setting(settings.headerTableSize, 0),
        setting(settings.enablePush, 1),
        setting(settings.maxConcurrentStreams, 0),
        setting(settings.initialWindowSize, 2 ** 31 - 1),
        setting(settings.maxFrameSize, 2 ** 24 - 1),
        setting(settings.maxFrameSize, 16_384),
        getFrame(1),
      ],
      "twice in a frame, where the last counts": [
        settingsFrame([
          [settings.initialWindowSize, 0],
          [settings.initialWindowSize, 100],
        ]),
        getFrame(1),
      ],
    },
  },
  {
    section: "6.5 SETTINGS",
    want: connection("PROTOCOL_ERROR"),
    cases: {
      "ENABLE_PUSH of 2": setting(settings.enablePush, 2),
      "MAX_FRAME_SIZE of 16,383": setting(settings.maxFrameSize, 16_383),
      "MAX_FRAME_SIZE of 2^24": setting(settings.maxFrameSize, 2 ** 24),
    },
  },
  {
    section: "6.5 SETTINGS",
    want: connection("FLOW_CONTROL_ERROR"),
    cases: { "INITIAL_WINDOW_SIZE of 2^31": setting(settings.initialWindowSize, 2 ** 31) },
  },
  {
    section: "6.7 PING",
    want: answered,
    cases: { "an answer that was not requested": [pingFrame("12345678", flags.ack), getFrame(1)] },
  },
];

for (const { section, want, cases } of rules) {
  for (const [name, send] of Object.entries(cases)) {
    test(`${section}: ${name}: ${want[0]}`, async (t) => {
      const bench = await startHttp2Bench(t, handler);
      const client = await bench.connect();
      client.send(...(Array.isArray(send) ? send : [send]));
      const outcome = await client.outcome(1);
      assert.ok(want.includes(outcome), `${outcome}, and not ${want.join(" or ")}`);
      if (outcome.startsWith("stream ")) {
        client.send(getFrame(1001));
        assert.equal((await client.answer(1001)).status, 200);
      }
      if (client.isClosed) await waitFor(() => bench.server.active === 0, { what: "the handlers to hear of the end" });
    });
  }
}
