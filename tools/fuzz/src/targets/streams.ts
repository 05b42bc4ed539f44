/** Upgraded connections. */
import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { constants, deflateSync } from "node:zlib";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { acceptWebSocket } from "@coxswain/apiserver/request/web-socket";
import { SpdyConnection } from "@coxswain/testing/nodes/kubelet/spdy";
import { spdyDictionary } from "@coxswain/testing/nodes/kubelet/spdy-dictionary";
import type { Target } from "../target.ts";

/** A frame of a WebSocket client, masked with zeros. */
const webSocketFrame = (first: number, payload: string): Buffer =>
  Buffer.concat([Buffer.of(first, 0x80 | payload.length, 0, 0, 0, 0), Buffer.from(payload)]);

const spdyFrame = (head: readonly number[], payload: Buffer, flags = 0): Buffer => {
  const rest = Buffer.alloc(4);
  rest.writeUInt32BE(payload.length);
  rest[0] = flags;
  return Buffer.concat([Buffer.from(head), rest, payload]);
};
const text = (value: string): Buffer => Buffer.concat([Buffer.of(0, 0, 0, value.length), Buffer.from(value)]);
const block = deflateSync(Buffer.concat([Buffer.of(0, 0, 0, 1), text("streamtype"), text("stdin")]), {
  dictionary: spdyDictionary,
  finishFlush: constants.Z_SYNC_FLUSH,
});
const open = spdyFrame([0x80, 3, 0, 1], Buffer.concat([Buffer.of(0, 0, 0, 1, 0, 0, 0, 0, 0, 0), block]));
const dataOf = (flags: number): Buffer => spdyFrame([0, 0, 0, 1], Buffer.from("data"), flags);

/** The peer of the connection: sends the input in two parts, split at the offset given by its first byte, and ends. */
function peer(input: Buffer, sent: Buffer[] = []): Duplex {
  const at = 1 + (input[0] ?? 0);
  const parts = [input.subarray(1, at), input.subarray(at)].filter(({ length }) => length > 0);
  return new Duplex({
    read() {
      this.push(parts.shift() ?? null);
    },
    write(chunk: Buffer, _, done) {
      sent.push(chunk);
      done();
    },
  });
}

export const targets: readonly Target[] = [
  {
    name: "websocket",
    seeds: [
      Buffer.concat([Buffer.of(9), webSocketFrame(0x81, "text"), webSocketFrame(0x89, "ping"), webSocketFrame(0x88, "\x03\xe8")]),
      Buffer.concat([Buffer.of(3), webSocketFrame(0x02, "part"), webSocketFrame(0x80, "rest")]),
    ],
    dictionary: [
      Buffer.of(0x88, 0x80, 0, 0, 0, 0),
      Buffer.of(0x81, 0xfe, 0xff, 0xff),
      Buffer.of(0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0),
      Buffer.of(0x8a, 0x80),
      Buffer.of(0xc1),
    ],
    async run(input) {
      const sent: Buffer[] = [];
      const socket = peer(input, sent);
      const closed = new Promise((resolve) => socket.once("close", resolve));
      const headers = {
        ...{ upgrade: "websocket", connection: "Upgrade" },
        ...{ "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13" },
      };
      const exchange = { method: "GET", headers, upgrade: { socket, head: Buffer.alloc(0) } } as Exchange; // cast: the parser reads these fields only
      const stream = await acceptWebSocket(exchange, { originRequired: false });
      stream?.send(Buffer.from("an event"), "text");
      stream?.close();
      await closed;
      assert.match(Buffer.concat(sent).toString("latin1"), /^HTTP\/1\.1 101 /);
    },
  },
  {
    name: "spdy",
    seeds: [
      Buffer.concat([Buffer.of(20), open, dataOf(0), spdyFrame([0x80, 3, 0, 6], Buffer.alloc(4)), dataOf(1)]),
      Buffer.concat([Buffer.of(200), open, spdyFrame([0x80, 3, 0, 3], Buffer.of(0, 0, 0, 1, 0, 0, 0, 5))]),
    ],
    dictionary: [open, dataOf(0), dataOf(1), Buffer.of(0x80, 3, 0, 3), Buffer.of(0x80, 3, 0, 7), block],
    declares: [Error],
    async run(input) {
      await new SpdyConnection(peer(input)).serve((stream) => {
        stream.input.resume();
        void stream.write(Buffer.from("answer")).then(() => stream.end());
      });
      await new Promise(setImmediate);
    },
  },
];
