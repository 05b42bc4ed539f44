import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { SimpleOutput } from "./simple-output.ts";

/** A socket that takes what is written when the test says so, or at once. */
function aSocket({ takesAtOnce = true } = {}) {
  const waiting: (() => void)[] = [];
  const received = { text: "" };
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      received.text += chunk.toString("latin1");
      if (takesAtOnce) done();
      else waiting.push(() => done());
    },
  });
  return { socket, received, take: () => waiting.shift()?.() };
}
const turns = async (): Promise<void> => {
  for (let i = 0; i < 4; i++) await new Promise(setImmediate);
};

test("the end of each response is reported once, when the socket has accepted all of it", async () => {
  const { socket, received } = aSocket();
  const output = new SimpleOutput(socket);
  const ends: string[] = [];
  output.answer("head ", Buffer.from("body|"), () => ends.push("whole"));
  await turns();
  assert.deepEqual(ends, ["whole"]);
  output.push(Buffer.from("some "));
  output.push(Buffer.from("more|"));
  await turns();
  assert.deepEqual(ends, ["whole"], "a response that goes on");
  output.end(() => ends.push("streamed"));
  await turns();
  assert.deepEqual(ends, ["whole", "streamed"]);
  output.push(Buffer.from("last"));
  output.end(() => ends.push("streamed with its data"));
  await turns();
  output.answer("", Buffer.alloc(1 << 20, "x"), () => ends.push("large"));
  for (let i = 0; i < 100 && ends.length < 4; i++) await turns();
  assert.deepEqual(ends, ["whole", "streamed", "streamed with its data", "large"]);
  assert.equal(received.text.replace(/x+$/, ""), "head body|some more|last");
  assert.equal(received.text.match(/x+$/)?.[0].length, 1 << 20);
});

test("an end is not reported before a slow socket has taken the data, and never when the client has gone", async () => {
  const { socket, take } = aSocket({ takesAtOnce: false });
  const output = new SimpleOutput(socket);
  const ends: string[] = [];
  output.answer("head", Buffer.alloc(0), () => ends.push("first"));
  await turns();
  assert.deepEqual(ends, []);
  take();
  await turns();
  assert.deepEqual(ends, ["first"]);
  output.answer("head", Buffer.alloc(0), () => assert.fail("the client has gone"));
  output.close();
  take();
  await turns();
  assert.deepEqual(ends, ["first"]);
});

test("a queue of 64 KiB is full, and what is flushed is sent once", async () => {
  const { socket, received } = aSocket();
  const output = new SimpleOutput(socket);
  output.push(Buffer.alloc(64 * 1024 - 1, "a"));
  assert.equal(output.isFull, false);
  output.push(Buffer.from("b"));
  assert.equal(output.isFull, true);
  let isDrained = false;
  void output.drained().then(() => {
    isDrained = true;
  });
  await turns();
  assert.deepEqual([isDrained, output.isFull, received.text.length], [true, false, 64 * 1024]);
  output.push(Buffer.from("c"));
  output.flush();
  await turns();
  assert.equal(received.text.slice(-2), "bc");
});
