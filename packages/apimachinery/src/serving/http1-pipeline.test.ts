/** The order in which the requests of one connection are served; `http1-pipelining.test.ts` has real ones. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { Http1Pipeline } from "./http1-pipeline.ts";

function setUp() {
  const socket = new Socket();
  const pipeline = new Http1Pipeline(socket);
  const served: string[] = [];
  const refused: boolean[] = [];
  return {
    ...{ socket, pipeline, served, refused },
    add(name: string, { complete = true, headersSent = false } = {}): void {
      // Casts: all that is read of them.
      pipeline.add({ complete } as IncomingMessage, { headersSent } as ServerResponse, () => void served.push(name));
    },
    upgrade: () => pipeline.addUpgrade({ complete: true } as IncomingMessage, () => void served.push("upgrade")), // cast: as above
    fail: () => pipeline.fail((isAnswered) => void refused.push(isAnswered)),
    answered: (times = 1): void => {
      for (let i = 0; i < times; i++) pipeline.answered();
    },
  };
}

test("each request is served once the one before was answered", () => {
  const { served, add, answered } = setUp();
  for (const name of ["a", "b", "c"]) add(name);
  assert.deepEqual(served, ["a"]);
  answered();
  assert.deepEqual(served, ["a", "b"]);
  answered(2);
  assert.deepEqual(served, ["a", "b", "c"]);
  add("d");
  assert.deepEqual(served, ["a", "b", "c", "d"]);
});

test("nothing is read while 16 requests wait, whoever resumes the socket, until none waits", () => {
  const { socket, served, add, answered } = setUp();
  for (let i = 0; i < 16; i++) add(`${i}`);
  assert.equal(socket.isPaused(), false, "fifteen wait");
  add("16");
  assert.equal(socket.isPaused(), true);
  socket.resume();
  socket.emit("resume");
  assert.equal(socket.isPaused(), true);
  answered(15);
  assert.equal(socket.isPaused(), true, "one waits");
  answered();
  assert.equal(served.length, 17);
  assert.equal(socket.isPaused(), false);
  socket.emit("resume");
  assert.equal(socket.isPaused(), false, "it is not paused again");
});

test("an upgrade waits for the requests before it, and ends a connection that is paused", () => {
  const waiting = setUp();
  waiting.add("a");
  waiting.upgrade();
  assert.deepEqual([waiting.served, waiting.socket.destroyed], [["a"], false]);
  waiting.answered();
  assert.deepEqual([waiting.served, waiting.socket.destroyed], [["a", "upgrade"], false]);
  const paused = setUp();
  for (let i = 0; i < 17; i++) paused.add(`${i}`);
  paused.upgrade();
  assert.equal(paused.socket.destroyed, true);
  paused.answered(17);
  assert.deepEqual(paused.served, ["0"]);
});

test("what cannot be read is refused behind the answers of the requests before it", () => {
  const { served, refused, add, fail, answered } = setUp();
  for (const name of ["a", "b"]) add(name);
  fail();
  answered();
  assert.deepEqual([served, refused], [["a", "b"], []]);
  answered();
  assert.deepEqual(refused, [false]);
});

test("without a request before it, it is refused at once", () => {
  const { refused, add, fail, answered } = setUp();
  fail();
  assert.deepEqual(refused, [false]);
  add("a");
  answered();
  fail();
  assert.deepEqual(refused, [false, false], "the one before is answered");
});

for (const headersSent of [true, false]) {
  test(`a broken body is refused at once, as one whose answer has ${headersSent ? "" : "not "}begun`, () => {
    const { refused, add, fail } = setUp();
    add("a", { complete: false, headersSent });
    fail();
    assert.deepEqual(refused, [headersSent]);
  });
}

test("a request whose body breaks while it waits is not served, and is refused behind those before it", () => {
  const { served, refused, add, fail, answered } = setUp();
  add("a");
  add("b");
  add("broken", { complete: false });
  fail();
  answered();
  assert.deepEqual([served, refused], [["a", "b"], []]);
  answered();
  assert.deepEqual([served, refused], [["a", "b"], [false]]);
});

test("nothing is served after the end of the connection", async () => {
  const { socket, served, add, answered } = setUp();
  for (const name of ["a", "b"]) add(name);
  socket.destroy();
  await new Promise((resolve) => socket.once("close", resolve));
  answered();
  assert.deepEqual(served, ["a"]);
});
