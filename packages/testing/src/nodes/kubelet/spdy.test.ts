import assert from "node:assert/strict";
import { Duplex, type Readable } from "node:stream";
import { test } from "node:test";
import { constants, deflateSync } from "node:zlib";
import { SpdyConnection } from "./spdy.ts";
import { spdyDictionary } from "./spdy-dictionary.ts";

const finFlag = 1;

/** @param head the first word: of a control frame, or the stream ID of a data frame */
function frame(head: readonly number[], payload: Buffer, flags = 0): Buffer {
  return Buffer.concat([Buffer.from([...head, flags, 0, 0, payload.length]), payload]);
}
const dataOf = (id: number, text: string, flags = 0): Buffer => frame([0, 0, 0, id], Buffer.from(text), flags);

test("data after the client has closed its side, or for a stream that it has not opened, is ignored", async () => {
  const none = deflateSync(Buffer.alloc(4), { dictionary: spdyDictionary, finishFlush: constants.Z_SYNC_FLUSH });
  const open = frame([0x80, 3, 0, 1], Buffer.concat([Buffer.of(0, 0, 0, 1, 0, 0, 0, 0, 0, 0), none]));
  const sent = [
    open,
    dataOf(3, "other"),
    dataOf(1, "some"),
    dataOf(1, " more", finFlag),
    dataOf(1, "late"),
    dataOf(1, "", finFlag),
  ];
  const socket = new Duplex({
    read() {
      this.push(sent.shift() ?? null);
    },
    write: (_chunk, _encoding, done) => done(),
  });
  const inputs: Readable[] = [];
  await new SpdyConnection(socket).serve(({ input }) => void inputs.push(input));
  assert.deepEqual(await Promise.all(inputs.map(async (input) => Buffer.concat(await input.toArray()).toString())), [
    "some more",
  ]);
});
