/** The handler's view of an exchange over HTTP/2, and the resulting frames. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { discardLogger } from "../process/logging/logger.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { RawClient } from "../transport/http2/testing/raw-client.ts";
import {
  dataFrame,
  getFrame,
  headersFrame,
  postFrame,
  requestFields,
  resetFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { errorCodes } from "../transport/http2/wire/connection-error.ts";
import { flags, frameTypes, settings } from "../transport/http2/wire/frames.ts";
import type { Exchange } from "./exchange.ts";
import type { HttpServer } from "./https-server.ts";

interface Held {
  readonly server: HttpServer;
  readonly client: RawClient;
  /** The exchange of the first request. */
  readonly exchange: Exchange;
}

/** Opens a request on stream 1 whose response is left to the test. `/good` is answered at once. */
async function hold(t: TestContext, options: { post?: boolean; window?: number } = {}): Promise<Held> {
  const requested: Exchange[] = [];
  const bench = await startHttp2Bench(t, async (one) => {
    if (one.url === "/good") return one.respond(204, {});
    requested.push(one);
    await once(one.signal, "abort");
  });
  const window = options.window ?? 2 ** 20;
  const client = await bench.connect({ settings: [[settings.initialWindowSize, window]], moreWindow: 2 ** 24 });
  client.send(options.post === true ? postFrame(1) : getFrame(1));
  const exchange = await waitFor(() => requested[0], { what: "the request" });
  return { server: bench.server, client, exchange };
}

for (const { name, leave } of [
  { name: "resets its stream", leave: (client: RawClient) => client.send(resetFrame(1)) },
  { name: "breaks off its connection", leave: (client: RawClient) => void client.socket.destroy() },
  { name: "closes its connection", leave: (client: RawClient) => void client.socket.end() },
  { name: "breaks a rule", leave: (client: RawClient) => client.send(dataFrame(0, "")) },
]) {
  for (const begun of [false, true]) {
    test(`a handler's signal is aborted when its client ${name}, ${begun ? "during" : "before"} the response`, async (t) => {
      const { server, client, exchange } = await hold(t);
      const stream = begun ? exchange.stream(200, {}) : undefined;
      stream?.write("the beginning");
      if (begun) await client.next("data", 1);
      assert.deepEqual([exchange.isGone, exchange.signal.aborted], [false, false]);
      leave(client);
      await once(exchange.signal, "abort");
      assert.equal(exchange.isGone, true);
      // Responding to an aborted exchange has no effect.
      if (stream === undefined) exchange.respond(200, {}, "too late");
      assert.equal(stream?.write("too late") ?? false, false);
      stream?.end("too late");
      if (stream !== undefined) await assert.rejects(stream.drained());
      exchange.destroy();
      await waitFor(() => server.active === 0, { what: "the end of the exchange" });
    });
  }
}

test("a handler gets no abort when the client disconnects after the complete response", async (t) => {
  const { server, client, exchange } = await hold(t);
  exchange.respond(200, {}, "done");
  await client.answer(1);
  await waitFor(() => server.active === 0, { what: "the end of the exchange" });
  client.socket.destroy();
  await waitFor(() => server.connections === 0, { what: "the end of the connection" });
  assert.deepEqual([exchange.isGone, exchange.signal.aborted], [false, false]);
});

for (const { name, begin } of [
  { name: "before it began", begin: () => {} },
  { name: "behind its headers", begin: (exchange: Exchange) => void exchange.stream(200, {}) },
  { name: "in its midst", begin: (exchange: Exchange) => void exchange.stream(200, {}).write("the beginning") },
]) {
  test(`a response that is destroyed ${name} ends with RST_STREAM, and the connection continues`, async (t) => {
    const { client, exchange } = await hold(t);
    begin(exchange);
    await client.ping();
    exchange.destroy();
    const outcome = await client.outcome(1);
    assert.match(outcome, /^stream (INTERNAL_ERROR|CANCEL)$/);
    assert.equal(client.isWhole(1), false);
    client.send(getFrame(3, "/good"));
    assert.equal((await client.answer(3)).status, 204);
  });
}

test("a body whose stream the client resets ends with an error", async (t) => {
  const { client, exchange } = await hold(t, { post: true });
  const body = exchange.body(1000);
  client.send(dataFrame(1, "the beginning"), resetFrame(1));
  await assert.rejects(body, /the client disconnected/);
});

test("reading a body whose client has disconnected fails instead of returning an empty body", async (t) => {
  const { client, exchange } = await hold(t, { post: true });
  client.send(dataFrame(1, "all of it", flags.endStream), resetFrame(1));
  await client.ping();
  await assert.rejects(exchange.body(1000), /the client disconnected/);
  const stream = exchange.bodyStream();
  const [err] = await once(stream, "error");
  assert.match((err as Error).message, /the client disconnected/);
});

test("bodyStream ends with an error when the client resets it, and normally when it ends", async (t) => {
  for (const isWhole of [true, false]) {
    const { client, exchange } = await hold(t, { post: true });
    const body = exchange.bodyStream();
    let read = "";
    body.on("data", (chunk: Buffer) => {
      read += chunk.toString();
    });
    const ended = once(body, "end").then(
      () => "whole",
      () => "broken off",
    );
    const closed = once(exchange.signal, "abort").then(() => "broken off");
    client.send(dataFrame(1, "the "), dataFrame(1, "beginning"), isWhole ? dataFrame(1, "", flags.endStream) : resetFrame(1));
    assert.equal(await Promise.race([ended, closed]), isWhole ? "whole" : "broken off");
    if (isWhole) assert.equal(read, "the beginning");
  }
});

test("a response has the given headers without connection headers, and a date", async (t) => {
  const { client, exchange } = await hold(t);
  exchange.setHeader("Audit-Id", "7");
  exchange.setHeader("cache-control", "private");
  exchange.appendHeader("warning", "one");
  exchange.appendHeader("Warning", "two");
  assert.deepEqual([exchange.headersSent, exchange.status, exchange.bytesWritten], [false, 0, 0]);
  const more = { connection: "close", "keep-alive": "5", "transfer-encoding": "chunked", upgrade: "x", "proxy-connection": "x" };
  exchange.respond(203, { "Cache-Control": "no-cache", "x-number": 5, "content-length": "1", ...more }, "über");
  assert.deepEqual([exchange.headersSent, exchange.status, exchange.bytesWritten], [true, 203, 5]);
  const { body } = await client.answer(1);
  assert.equal(String(body), "über");
  const fields = client.of("headers", 1)[0]?.fields ?? [];
  const pairs = fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${name === "date" ? "?" : fields[i + 1]}`] : []));
  assert.equal(pairs[0], ":status: 203");
  const want = ["audit-id: 7", "cache-control: no-cache", "content-length: 5", "date: ?"];
  assert.deepEqual(pairs.slice(1).sort(), [...want, "warning: one", "warning: two", "x-number: 5"]);
});

for (const { name, method, status } of [
  { name: "HEAD", method: "HEAD", status: 200 },
  { name: "204", method: "GET", status: 204 },
  { name: "304", method: "GET", status: 304 },
]) {
  for (const kind of ["respond", "stream"] as const) {
    test(`a response to ${name} has no content, whatever the handler passes to ${kind}`, async (t) => {
      const bench = await startHttp2Bench(t, (exchange) => {
        if (kind === "respond") return exchange.respond(status, {}, "a body");
        const stream = exchange.stream(status, {});
        stream.write("a body");
        stream.end("and more");
      });
      const client = await bench.connect();
      client.send(headersFrame(1, requestFields(method, "/")));
      assert.equal((await client.answer(1)).status, status);
      await client.ping();
      assert.equal(client.body(1).length, 0);
      assert.equal(await client.outcome(1), `status ${status}`);
    });
  }
}

test("a stream's bytes arrive in the order of their writes, and none after its end", async (t) => {
  const { client, exchange } = await hold(t);
  const stream = exchange.stream(200, { "content-type": "text/plain" });
  assert.deepEqual([exchange.headersSent, exchange.status], [true, 200]);
  assert.equal((await client.next("headers", 1)).flag, flags.endHeaders);
  stream.write("a");
  stream.write(Buffer.from("b"));
  stream.write("");
  await client.ping();
  stream.write("ü");
  stream.end("d");
  stream.write("too late");
  stream.end("too late");
  const { body, headers } = await client.answer(1);
  assert.deepEqual([String(body), headers.get("content-length")], ["abüd", undefined]);
  assert.equal(exchange.bytesWritten, 5);
});

test("an answer with more header fields than fit into a frame arrives completely", async (t) => {
  const { client, exchange } = await hold(t);
  const warnings = Array.from({ length: 500 }, (_, i) => `299 - "${"w".repeat(100)} ${i}"`);
  exchange.setHeader("warning", warnings);
  exchange.respond(200, {}, "done");
  const { body } = await client.answer(1);
  assert.equal(String(body), "done");
  const fields = client.of("headers", 1)[0]?.fields ?? [];
  assert.deepEqual(
    fields.filter((_, i) => fields[i - 1] === "warning"),
    warnings,
  );
});

for (const value of ["a\r\nset-cookie: b", "a\0", "a\u010a"]) {
  test(`a field of the value ${JSON.stringify(value)} is not sent`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, { "x-text": value }, "ok"));
    const client = await bench.connect();
    client.send(getFrame(1));
    const { status, headers } = await client.answer(1);
    assert.deepEqual([status, headers.has("x-text")], [500, false]);
  });
}

test("a second answer is ignored, and logged", async (t) => {
  const logged: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void logged.push(message) };
  const bench = await startHttp2Bench(
    t,
    (exchange) => {
      exchange.respond(200, {}, "first");
      exchange.respond(500, {}, "second");
    },
    { log },
  );
  const client = await bench.connect();
  client.send(getFrame(1));
  const { status, body } = await client.answer(1);
  assert.deepEqual([status, String(body)], [200, "first"]);
  assert.deepEqual(logged, ["a response was already sent"]);
});

/** Last stream id and error code of each GOAWAY. */
function goodbyes(client: RawClient): [last: number, code: number][] {
  return client.of("goAway").map(({ payload }) => [payload.readUInt32BE(0), payload.readUInt32BE(4)]);
}

// Both wait for the grace period of one second.
suite("in a second", { concurrency: true }, () => {
  test("goAway: the client receives it before requests are refused, and running requests are completed", async (t) => {
    const { client, exchange } = await hold(t);
    exchange.goAway();
    exchange.goAway();
    await client.next("goAway");
    assert.deepEqual(goodbyes(client), [[2 ** 31 - 1, errorCodes.none]]);
    client.send(getFrame(3, "/good"));
    assert.equal((await client.answer(3)).status, 204);
    await client.next("goAway");
    assert.deepEqual(goodbyes(client).at(-1), [3, errorCodes.none]);
    client.send(getFrame(5, "/good"));
    await client.ping();
    assert.ok(client.isWhole(5) === false && (client.resetCode(5) ?? errorCodes.refusedStream) === errorCodes.refusedStream);
    assert.equal(client.isClosed, false);
    exchange.respond(200, {}, "done");
    assert.equal(String((await client.answer(1)).body), "done");
    assert.equal(await client.end(), "connection closed");
  });

  test("an early answer arrives completely before the rest of its request is refused", async (t) => {
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, {}, "x".repeat(1000)));
    const client = await bench.connect();
    client.send(postFrame(1), dataFrame(1, "the beginning"));
    assert.equal((await client.answer(1)).body.length, 1000);
    const at = client.frames.findIndex(({ type, flag }) => type === frameTypes.data && (flag & flags.endStream) !== 0);
    await client.until(() => client.resetCode(1) !== undefined, "the rest to be refused");
    assert.equal(client.resetCode(1), 0);
    assert.ok(client.frames.findIndex(({ type }) => type === frameTypes.resetStream) > at);
    client.send(dataFrame(1, "the rest", flags.endStream), getFrame(3));
    assert.equal((await client.answer(3)).status, 200);
  });
});

test("close: running requests finish, though their windows open only then", async (t) => {
  const { server, client, exchange } = await hold(t, { window: 2 });
  const closing = server.close(5000);
  await client.next("goAway");
  exchange.respond(200, {}, "done");
  await client.next("data", 1);
  assert.equal(String(client.body(1)), "do");
  const update = Buffer.alloc(4);
  update.writeUInt32BE(100);
  client.send(Buffer.concat([Buffer.of(0, 0, 4, frameTypes.windowUpdate, 0, 0, 0, 0, 1), update]));
  assert.equal(String((await client.answer(1)).body), "done");
  await closing;
  await client.end();
});

test("close: requests beyond the timeout are reset, and their handlers' signals aborted", async (t) => {
  const { server, client, exchange } = await hold(t);
  exchange.stream(200, {}).write("the beginning");
  await client.next("data", 1);
  const reported = once(exchange.signal, "abort");
  await server.close(50);
  await reported;
  await client.end();
  assert.equal(client.isWhole(1), false);
  assert.equal(server.active, 0);
  await waitFor(() => server.connections === 0, { what: "the end of the connection" });
});

test("close: an idle client learns which request was the last", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(204, {}));
  const clients = await Promise.all([bench.connect(), bench.connect()]);
  clients[1].send(getFrame(1));
  await clients[1].answer(1);
  await bench.server.close(5000);
  for (const [i, last] of [0, 1].entries()) {
    const client = clients[i] as RawClient;
    await client.end();
    assert.deepEqual(goodbyes(client), [[last, errorCodes.none]]);
  }
});

test("close: requests that arrived after the first GOAWAY are not reported as processed", async (t) => {
  const { server, client, exchange } = await hold(t);
  const closing = server.close(5000);
  await client.next("goAway");
  exchange.respond(200, {}, "done");
  await client.answer(1);
  await closing;
  await client.end();
  assert.deepEqual(goodbyes(client), [
    [2 ** 31 - 1, errorCodes.none],
    [1, errorCodes.none],
  ]);
});

test("close: a connection without a preface is closed in time", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(204, {}));
  const mute = connect({ host: "127.0.0.1", port: bench.server.port });
  await waitFor(() => bench.server.connections === 1, { what: "the connection" });
  await Promise.all([once(mute, "close"), bench.server.close(50)]);
});
