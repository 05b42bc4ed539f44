import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { settle } from "../testing/wait-for.ts";
import type { Exchange } from "./exchange.ts";
import { ExchangeRequest } from "./express-request.ts";

/** A request whose body the test sends. */
function setUp(more: object = {}) {
  const body = new PassThrough();
  const ending = new AbortController();
  const seen = { destroyed: 0, bodies: 0 };
  const exchange = {
    ...{
      headers: { host: "h" },
      rawHeaders: ["Host", "h"],
      method: "POST",
      url: "/a",
      httpVersion: "2.0",
      remoteAddress: "10.0.0.1",
    },
    bodyStream() {
      seen.bodies++;
      return body;
    },
    destroy: () => void seen.destroyed++,
    signal: ending.signal,
    get isGone() {
      return ending.signal.aborted;
    },
    ...more,
  };
  const request = new ExchangeRequest(exchange as unknown as Exchange); // cast: what requests use of it
  return { body, request, seen, ending };
}

test("the body is requested when it is read, and complete at its end", async () => {
  const { body, request, seen } = setUp();
  assert.equal(seen.bodies, 0);
  body.end("hello");
  assert.equal(Buffer.concat(await request.toArray()).toString(), "hello");
  assert.deepEqual([seen.bodies, request.complete, request.aborted, seen.destroyed], [1, true, false, 0]);
});

test("a body that ends too early aborts the request", async () => {
  const { body, request, seen } = setUp();
  request.resume();
  await settle();
  const aborted = once(request, "aborted");
  body.destroy();
  await aborted;
  assert.deepEqual([request.complete, request.aborted, seen.destroyed], [false, true, 1]);
});

test("a body that fails destroys the request with its error", async () => {
  const { body, request } = setUp();
  request.resume();
  await settle();
  const failed = new Promise((resolve) => request.once("error", resolve));
  body.destroy(new Error("reset"));
  assert.match(String(await failed), /reset/);
});

test("an upgrade has no body", async () => {
  const { request, seen } = setUp({ upgrade: {} });
  assert.deepEqual(await request.toArray(), []);
  assert.deepEqual([request.upgrade, request.complete, seen.bodies], [true, true, 0]);
});

test("its socket is that of the client: closed with the connection, and destroying it ends this exchange", async () => {
  const { request, seen, ending } = setUp({ tls: {} });
  const { socket } = request;
  assert.deepEqual([socket.remoteAddress, socket.encrypted, socket.readable, socket.destroyed], ["10.0.0.1", true, true, false]);
  assert.equal(request.connection, socket);
  socket.destroy();
  assert.equal(seen.destroyed, 1);
  const closed = once(socket, "close");
  ending.abort();
  await closed;
  assert.deepEqual([socket.readable, socket.writable, socket.destroyed], [false, false, true]);
});

for (const [httpVersion, numbers] of [
  ["1.1", [1, 1]],
  ["2.0", [2, 0]],
] as const) {
  test(`HTTP ${httpVersion} has its numbers`, () => {
    const { request } = setUp({ httpVersion });
    assert.deepEqual([request.httpVersionMajor, request.httpVersionMinor, request.socket.encrypted], [...numbers, false]);
  });
}
