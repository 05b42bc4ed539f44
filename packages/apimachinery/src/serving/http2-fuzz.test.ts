/** Random frames: the server must not violate the protocol itself, must not fail, and must release the client's state. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import fc from "../testing/fast-check.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { RawClient } from "../transport/http2/testing/raw-client.ts";
import {
  continuationFrame,
  dataFrame,
  goAwayFrame,
  headersFrame,
  indexedBlock,
  literalBlock,
  pingFrame,
  priorityFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { flags, frame, frameTypes, preface, settingsFrame } from "../transport/http2/wire/frames.ts";
import type { ExchangeHandler } from "./exchange.ts";

const runs = process.env["COX_TEST_LONG"] === undefined ? 100 : 5000;

const handlers: Readonly<Record<string, ExchangeHandler>> = {
  "/early": (exchange) => exchange.respond(200, {}, "early"),
  "/hold": async (exchange) => void (await once(exchange.signal, "abort")),
  "/body": async (exchange) => exchange.respond(200, {}, await exchange.body(100)),
  "/piped": async (exchange) => {
    const stream = exchange.stream(200, {});
    for await (const chunk of exchange.bodyStream()) if (!stream.write(chunk)) await stream.drained();
    stream.end();
  },
  "/big": async (exchange) => {
    const stream = exchange.stream(200, {});
    for (let i = 0; i < 5; i++) if (!stream.write(Buffer.alloc(40_000))) await stream.drained();
    stream.end();
  },
  "/broken": (exchange) => {
    exchange.stream(200, {}).write("the beginning");
    exchange.destroy();
  },
  "/leave": (exchange) => {
    exchange.goAway();
    exchange.respond(204, {});
  },
};

const streamId = fc.constantFrom(1, 3, 5, 7, 9, 11, 0, 2);
const flag = fc.constantFrom(0, 1, 4, 5, 0x24, 0x0d, 0xff);
const octets = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
const size = fc.oneof(fc.integer({ min: 0, max: 200_000 }), fc.constantFrom(0, 1, 65_535, 2 ** 31 - 1, 2 ** 32 - 1));
const block = fc
  .tuple(
    fc.constantFrom("GET", "POST", "HEAD", "CONNECT"),
    fc.constantFrom(...Object.keys(handlers), "", "*"),
    fc.boolean(),
    octets,
  )
  .map(([method, path, isIndexed, rest]) =>
    Buffer.concat([(isIndexed ? indexedBlock : literalBlock)(requestFields(method, path)), rest.subarray(0, 2)]),
  );
const goodBlock = fc.constantFrom(...Object.keys(handlers)).map((path) => literalBlock(requestFields("POST", path)));

const anyFrame = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(streamId, goodBlock, fc.constantFrom(4, 5)).map((args) => headersFrame(...args)) },
  { weight: 1, arbitrary: fc.tuple(streamId, block, flag).map((args) => headersFrame(...args)) },
  { weight: 1, arbitrary: fc.tuple(streamId, octets, flag).map((args) => continuationFrame(...args)) },
  { weight: 4, arbitrary: fc.tuple(streamId, octets, fc.constantFrom(0, 0, flags.endStream)).map((args) => dataFrame(...args)) },
  { weight: 1, arbitrary: fc.tuple(streamId, octets, flag).map((args) => dataFrame(...args)) },
  { weight: 2, arbitrary: fc.tuple(streamId, fc.integer({ min: 0, max: 20 })).map((args) => resetFrame(...args)) },
  { weight: 2, arbitrary: fc.tuple(streamId, size).map((args) => windowFrame(...args)) },
  { weight: 1, arbitrary: fc.tuple(streamId, streamId).map((args) => priorityFrame(...args)) },
  { weight: 2, arbitrary: fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), size), { maxLength: 3 }).map(settingsFrame) },
  { weight: 1, arbitrary: flag.map((one) => pingFrame("12345678", one)) },
  { weight: 1, arbitrary: streamId.map((stream) => goAwayFrame(stream)) },
  { weight: 1, arbitrary: fc.tuple(fc.nat(15), flag, streamId, octets).map((args) => frame(...args)) },
);

/** After END_STREAM only RST_STREAM may follow on a stream, and after RST_STREAM nothing. */
function checkOrder(client: RawClient): void {
  const over = new Map<number, "ended" | "reset">();
  for (const { type, flag, stream } of client.frames) {
    if (stream === 0) continue;
    const state = over.get(stream);
    assert.ok(
      state === undefined || (state === "ended" && type !== frameTypes.data && type !== frameTypes.headers),
      client.shown(),
    );
    if (type === frameTypes.resetStream) over.set(stream, "reset");
    else if (type < 2 && (flag & flags.endStream) !== 0) over.set(stream, "ended");
  }
}

test("random frames, cut anywhere, do not break the server", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => handlers[exchange.url]?.(exchange) ?? exchange.respond(404, {}));
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyFrame, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 4000 }),
      async (frames, piece) => {
        const client = await bench.connect({ isSilent: true });
        const bytes = Buffer.concat([preface, settingsFrame([]), ...frames]);
        for (let at = 0; at < bytes.length && client.socket.writable; at += piece) {
          client.socket.write(bytes.subarray(at, at + piece));
          await new Promise(setImmediate);
        }
        // With an incomplete header block no reply may come until the connection ends.
        await client.until(() => client.isClosed || client.frames.length > 2, "anything");
        checkOrder(client);
        const codes = client.of("goAway").map(({ payload }) => payload.readUInt32BE(4));
        assert.ok(!codes.includes(2), `INTERNAL_ERROR: ${client.shown()}`);
        client.socket.destroy();
        await waitFor(() => bench.server.active === 0 && bench.server.connections === 0, {
          what: "the server to forget it",
        });
      },
    ),
    { numRuns: runs, interruptAfterTimeLimit: 60_000 },
  );
});
