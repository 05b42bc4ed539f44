import assert from "node:assert/strict";
import { test } from "node:test";
import { longestTurnOf } from "../testing/cpu-time.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { continuationFrame, headersFrame, literalBlock, requestFields } from "../transport/http2/testing/raw-frames.ts";
import { flags } from "../transport/http2/wire/frames.ts";

/** Literals with incremental indexing (RFC 7541, 6.2.1) and empty values. */
const inserted = (name: (at: number) => string, count: number): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, (_, at) => {
      const text = name(at);
      return Buffer.concat([Buffer.from([0x40, text.length]), Buffer.from(text), Buffer.from([0])]);
    }),
  );

for (const { name, of, count } of [
  { name: "one name that may occur often", of: () => "set-cookie", count: 6000 },
  { name: "one other name", of: () => "x", count: 7500 },
  { name: "different names", of: (at: number) => `x-${at}`, count: 6500 },
  { name: "more fields than a request may have", of: () => "x", count: 120_000 },
]) {
  test(`a request with very many fields of ${name} does not block the event loop`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, {}, String(Object.keys(exchange.headers).length)));
    const block = Buffer.concat([literalBlock(requestFields("GET", "/")), inserted(of, count)]);
    const parts = Array.from({ length: Math.ceil(block.length / 16_000) }, (_, at) =>
      block.subarray(at * 16_000, (at + 1) * 16_000),
    );
    const client = await bench.connect();
    const streams = 10;
    const longest = await longestTurnOf(60, async (round) => {
      const ids = Array.from({ length: streams }, (_, at) => 1 + 2 * (at + streams * round));
      for (const id of ids) {
        client.send(
          headersFrame(id, parts[0] as Buffer, flags.endStream),
          ...parts.slice(1).map((part, at) => continuationFrame(id, part, at === parts.length - 2 ? flags.endHeaders : 0)),
        );
      }
      for (const id of ids) assert.ok([200, 431].includes((await client.answer(id)).status));
    });
    assert.ok(longest < 100, `a turn of ${longest} ms`);
  });
}
