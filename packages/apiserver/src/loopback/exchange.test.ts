import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { Readable } from "node:stream";
import { test } from "node:test";
import type { TransportRequest } from "@coxswain/apimachinery/client/transport-messages";
import { LoopbackExchange } from "./exchange.ts";

const requestOf = (signal: AbortSignal): TransportRequest => ({ method: "GET", path: "/", headers: {}, signal });

test("a long-lived abort signal does not retain finished requests", async () => {
  const { signal } = new AbortController();
  for (const finish of [
    (exchange: LoopbackExchange) => exchange.respond(200, {}, "{}"),
    (exchange: LoopbackExchange) => exchange.destroy(),
    (exchange: LoopbackExchange) => exchange.stream(200, {}).end("{}"),
  ]) {
    const exchange = new LoopbackExchange(requestOf(signal));
    assert.equal(getEventListeners(signal, "abort").length, 1);
    finish(exchange);
    const body = await exchange.response.then(
      (response) => response.body.toArray(),
      () => [],
    );
    assert.ok(body.length <= 1);
    await new Promise(setImmediate);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
});

test("a complete response is read at once or as a stream, with nothing or something in it", async () => {
  for (const [given, want] of [
    ["", []],
    ["text", ["text"]],
    [Buffer.from("bytes"), ["bytes"]],
  ] as const) {
    const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
    exchange.setHeader("X-Made", "a");
    exchange.respond(201, { "Content-Length": 4 }, given);
    const response = await exchange.response;
    assert.deepEqual([response.status, response.headers], [201, { "x-made": "a", "content-length": "4" }]);
    assert.equal(String(await response.bytes?.()), want.join());
    assert.deepEqual((await response.body.toArray()).map(String), want);
  }
});

test("a caller that aborts ends its request, before and after the response has begun", async () => {
  const reason = new Error("enough");
  for (const isEarly of [true, false]) {
    const caller = new AbortController();
    if (isEarly) caller.abort(reason);
    const exchange = new LoopbackExchange(requestOf(caller.signal));
    let body: Awaited<typeof exchange.response>["body"] | undefined;
    if (!isEarly) {
      exchange.stream(200, {});
      ({ body } = await exchange.response);
      caller.abort(reason);
    }
    assert.equal(exchange.signal.reason, reason);
    if (body === undefined) await assert.rejects(exchange.response, reason);
    else await assert.rejects(body.toArray(), reason);
  }
});

test("a streamed response is read in parts as they arrive, and those that came before are read first", async () => {
  let over = 0;
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  exchange.onOver = () => void over++;
  const stream = exchange.stream(200, { "Content-Type": "text/plain" });
  stream.write("one ");
  const response = await exchange.response;
  assert.deepEqual([response.status, response.headers["content-type"]], [200, "text/plain"]);
  const parts = response.parts!();
  assert.equal(String((await parts.next()).value), "one ");
  const next = parts.next();
  stream.write(Buffer.from("two"));
  assert.equal(String((await next).value), "two");
  const last = parts.next();
  assert.equal(over, 0);
  stream.end("three");
  assert.equal(String((await last).value), "three");
  assert.equal((await parts.next()).done, true);
  assert.deepEqual([over > 0, exchange.isGone, exchange.bytesWritten], [true, false, 12]);
});

test("the writer of parts waits for their reader, and learns when it has gone", async () => {
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  const stream = exchange.stream(200, {});
  const parts = (await exchange.response).parts!();
  const reading = parts.next();
  assert.equal(stream.write(Buffer.alloc(100 * 1024)), true, "a waiting reader takes it at once");
  await reading;
  assert.equal(stream.write(Buffer.alloc(63 * 1024)), true);
  await stream.drained();
  assert.equal(stream.write(Buffer.alloc(1024)), false);
  let isDrained = false;
  const drained = stream.drained().then(() => {
    isDrained = true;
  });
  await new Promise(setImmediate);
  assert.equal(isDrained, false);
  await parts.next();
  await drained;
  stream.write(Buffer.alloc(100 * 1024));
  const waiting = stream.drained();
  await parts.return!();
  await assert.rejects(waiting, /the client disconnected/);
  await assert.rejects(stream.drained(), /the client disconnected/);
  assert.equal(stream.write("more"), false);
  assert.equal(exchange.isGone, true);
});

test("a streamed response is read as a whole, before and after its end, and as a stream", async () => {
  for (const isEarly of [true, false]) {
    for (const read of ["bytes", "body"] as const) {
      const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
      const stream = exchange.stream(200, {});
      stream.write("a");
      const response = await exchange.response;
      const text = async (): Promise<string> =>
        read === "bytes" ? String(await response.bytes?.()) : (await response.body.toArray()).join("");
      const early = isEarly ? text() : undefined;
      stream.write("b");
      stream.end("c");
      assert.equal(await (early ?? text()), "abc", `${read} ${isEarly}`);
    }
  }
});

test("a writer that waits before anything is read goes on, however the response is read then", async () => {
  for (const read of ["bytes", "parts", "body"] as const) {
    const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
    const stream = exchange.stream(200, {});
    assert.equal(stream.write(Buffer.alloc(100 * 1024)), false);
    const ending = stream.drained().then(() => stream.end("end"));
    const response = await exchange.response;
    let length = 0;
    if (read === "bytes") length = (await response.bytes!()).length;
    else for await (const part of read === "parts" ? response.parts!() : response.body) length += part.length;
    await ending;
    assert.equal(length, 100 * 1024 + 3, read);
  }
});

test("a reader of a response that is broken off gets the reason, however it reads", async () => {
  const reason = new Error("broken off");
  for (const isEarly of [true, false]) {
    for (const read of ["bytes", "body", "parts"] as const) {
      const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
      const stream = exchange.stream(200, {});
      const response = await exchange.response;
      const reading = (): Promise<unknown> =>
        read === "bytes" ? response.bytes!() : read === "body" ? response.body.toArray() : response.parts!().next();
      const early = isEarly ? reading() : undefined;
      exchange.destroy(reason);
      await assert.rejects(early ?? reading(), reason, `${read} ${isEarly}`);
      assert.equal(stream.write("late"), false);
    }
  }
});

test("a request that the server breaks off is no longer worked on", async () => {
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  exchange.destroy(new Error("broken off"));
  assert.equal(exchange.isGone, true);
  await assert.rejects(exchange.response, /broken off/);
});

test("a handler waits for its reader each time, leaves no listeners, and learns when the reader has gone", async () => {
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  const stream = exchange.stream(200, {});
  const { body } = await exchange.response;
  const listeners = body.listenerCount("close") + body.listenerCount("drain");
  const fill = (): void => {
    for (let i = 0; i < 100 && stream.write(Buffer.alloc(16 * 1024)); i++);
  };
  for (let i = 0; i < 20; i++) {
    fill();
    const drained = stream.drained();
    while (body.read() !== null);
    await drained;
  }
  assert.equal(body.listenerCount("close") + body.listenerCount("drain"), listeners);
  fill();
  const waiting = stream.drained();
  body.destroy();
  await assert.rejects(waiting, /the client disconnected/);
  assert.equal(stream.write("more"), false);
  assert.equal(exchange.isGone, true);
});

test("an answer has the headers that were set and added before, and is given once", async () => {
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  exchange.setHeader("Warning", "one");
  exchange.appendHeader("warning", "two");
  exchange.setHeader("X-Old", "1");
  assert.equal(exchange.headersSent, false);
  exchange.respond(201, { "x-old": 2, "X-None": undefined }, "{}");
  exchange.respond(500, {}, "late");
  const { status, headers, body } = await exchange.response;
  assert.deepEqual([status, headers], [201, { warning: "one, two", "x-old": "2" }]);
  assert.equal((await body.toArray()).join(""), "{}");
  assert.deepEqual([exchange.status, exchange.bytesWritten, exchange.headersSent], [201, 2, true]);
});

test("a body may be as long as the limit, and no longer", async () => {
  const exchange = new LoopbackExchange({ ...requestOf(new AbortController().signal), method: "POST", body: "12345" });
  assert.equal(String(await exchange.body(5)), "12345");
  await assert.rejects(exchange.body(4), /limit is 4/);
  assert.equal(exchange.bodyBytes, 5);
});

test("a request's body is there at once, whole or as a stream, up to the limit", async () => {
  for (const body of ["é", Buffer.from("é"), undefined]) {
    const exchange = new LoopbackExchange({ ...requestOf(new AbortController().signal), ...(body !== undefined && { body }) });
    const want = body === undefined ? "" : "é";
    assert.deepEqual([exchange.bodyIsReceived, exchange.bodyBytes], [true, Buffer.byteLength(want)]);
    assert.equal(String(await exchange.body(2)), want);
    assert.equal(Buffer.concat(await (exchange.bodyStream() as Readable).toArray()).toString(), want);
    if (want !== "") await assert.rejects(exchange.body(1), { code: 413, message: /limit is 1$/ });
  }
});

test("a header that is appended follows what was set before it", async () => {
  const exchange = new LoopbackExchange(requestOf(new AbortController().signal));
  exchange.appendHeader("Warning", "a");
  exchange.appendHeader("warning", "b");
  exchange.respond(200, {});
  assert.equal((await exchange.response).headers["warning"], "a, b");
});
