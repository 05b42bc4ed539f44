/** Header blocks that repeatedly fill and flush the dynamic table, on many connections, must not block the event loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { longestTurnOf } from "../testing/cpu-time.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { continuationFrame, headersFrame, indexedBlock, requestFields } from "../transport/http2/testing/raw-frames.ts";
import { flags } from "../transport/http2/wire/frames.ts";

const frameBytes = 16 * 1024;
const connections = 50;
const blocksOfEach = 4;
const longestTurnMs = 300;
const request = indexedBlock(requestFields("GET", "/"));

/** A block of 256 kB that repeats one representation. */
function blockOf(field: readonly number[]): Buffer[] {
  const part = Buffer.from(Array.from({ length: Math.floor(frameBytes / field.length) }, () => field).flat());
  return Array.from({ length: 15 }, () => part);
}

const floods: Readonly<Record<string, Buffer[]>> = {
  "fields of two octets that are to be remembered": blockOf([0x7c, 0x00]),
  "fields that empty the table": blockOf([0x7c, 0x7f, 0xa0, 0x1f, ...Buffer.alloc(4127, "x")]),
  "names and values in Huffman's code": blockOf(
    [0x40, 0x84, 0xff, 0xff, 0xff, 0xff, 0x84, 0xff, 0xff, 0xff, 0xff].map((octet, at) =>
      at > 1 && octet === 0xff ? 0x00 : octet,
    ),
  ),
};

for (const [name, parts] of Object.entries(floods)) {
  test(name, async (t) => {
    const bench = await startHttp2Bench(t, async (exchange) => exchange.respond(200, {}, "ok"));
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const clients = await Promise.all(Array.from({ length: connections }, () => bench.connect()));
      await Promise.all(
        clients.map(async (client) => {
          for (let block = 0; block < blocksOfEach; block++) {
            const id = 2 * block + 1;
            const rest = parts.map((part, at) => continuationFrame(id, part, at === parts.length - 1 ? flags.endHeaders : 0));
            client.send(headersFrame(id, request, flags.endStream), ...rest);
          }
          const other = await client.answer(1).catch(() => undefined);
          assert.ok(other === undefined || other.status === 431 || other.status === 200, String(other?.status));
          client.socket.destroy();
        }),
      );
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}
