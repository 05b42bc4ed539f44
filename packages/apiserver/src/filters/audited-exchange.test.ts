import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { AuditedExchange } from "./audited-exchange.ts";

/** An exchange whose event takes until `written` is resolved, if it is given. */
function audited(written?: Promise<unknown>) {
  const seen: unknown[] = [];
  const inner = new LoopbackExchange({ method: "GET", path: "/", headers: {} });
  void inner.response.then(
    ({ body }) => body.on("error", () => {}).resume(),
    () => {},
  );
  const exchange = new AuditedExchange(inner, {
    started: (code) => void seen.push(["started", code]),
    body: (_headers, bytes) => void seen.push(["body", String(bytes)]),
    wantsStreams: true,
    reserve: () => true,
    complete(code) {
      seen.push(["complete", code]);
      return written;
    },
  });
  return { exchange, inner, seen };
}

test("an answer is recorded once: a second one is neither recorded nor sent", () => {
  const { exchange, inner, seen } = audited();
  exchange.respond(200, {}, "first");
  exchange.respond(500, {}, "second");
  void exchange.complete();
  assert.deepEqual(seen, [
    ["body", "first"],
    ["started", 200],
    ["complete", 200],
  ]);
  assert.equal(inner.status, 200);
});

for (const { name, body, bytes } of [
  { name: "text", body: "é", bytes: 2 },
  { name: "bytes", body: Buffer.from("abc"), bytes: 3 },
  { name: "nothing", body: undefined, bytes: 0 },
]) {
  test(`an answer of ${name} that waits for its event has its status and length already`, async () => {
    const written = Promise.withResolvers<void>();
    const { exchange, inner } = audited(written.promise);
    assert.deepEqual([exchange.headersSent, exchange.status], [false, 0]);
    exchange.respond(201, {}, body);
    assert.deepEqual([exchange.headersSent, exchange.status, exchange.bytesWritten, inner.status], [true, 201, bytes, 0]);
    written.resolve();
    await exchange.complete();
    assert.deepEqual([inner.status, inner.bytesWritten], [201, bytes]);
  });
}

test("a request that is broken off completes its event, once, with the status of what had begun", () => {
  for (const begins of [false, true]) {
    const { exchange, inner, seen } = audited();
    if (begins) exchange.stream(202, {}).write("half");
    exchange.destroy();
    void exchange.complete();
    assert.deepEqual(seen.at(-1), ["complete", begins ? 202 : 0]);
    assert.equal(seen.filter((one) => (one as string[])[0] === "complete").length, 1);
    assert.equal(inner.isGone, true);
  }
});

test("a streamed answer is recorded as one body, with its last part", () => {
  const { exchange, seen } = audited();
  const stream = exchange.stream(200, {});
  stream.write("a");
  stream.write(Buffer.from("b"));
  stream.end("c");
  assert.deepEqual(seen, [
    ["started", 200],
    ["body", "abc"],
    ["complete", 200],
  ]);
});

test("a stream to a client that has gone is recorded with the status that it was to have", () => {
  const { exchange, inner, seen } = audited();
  const nothing: ResponseStream = { write: () => false, drained: async () => {}, end() {} };
  inner.stream = () => nothing; // as over HTTP/2, where a closed stream has no status
  exchange.stream(202, {}).end();
  assert.deepEqual([seen.at(-1), exchange.status, exchange.headersSent], [["complete", 202], 202, true]);
});

test("what is not recorded is that of the exchange behind, and goes to it", async () => {
  const values = {
    ...{ bodyIsReceived: true, bodyBytes: 7, method: "PUT", url: "/a", headers: { a: "b" }, rawHeaders: ["A", "b"] },
    ...{ httpVersion: "1.1", remoteAddress: "192.0.2.1", tls: {}, isGone: true, signal: new AbortController().signal },
    ...{ upgrade: {}, onUnread: () => {} },
  };
  const calls: unknown[] = [];
  const called =
    (name: string) =>
    (...given: unknown[]) => {
      calls.push([name, ...given]);
      return name;
    };
  const methods = ["body", "bodyStream", "setHeader", "appendHeader", "goAway"] as const;
  const inner = { ...values, ...Object.fromEntries(methods.map((name) => [name, called(name)])) };
  const exchange = new AuditedExchange(inner as never, {} as never);
  for (const [name, value] of Object.entries(values)) assert.equal(exchange[name as keyof typeof values], value, name);
  assert.deepEqual([exchange.body(5), exchange.bodyStream()], ["body", "bodyStream"]);
  exchange.setHeader("a", ["b", "c"]);
  exchange.appendHeader("d", "e");
  exchange.goAway();
  assert.deepEqual(calls, [["body", 5], ["bodyStream"], ["setHeader", "a", ["b", "c"]], ["appendHeader", "d", "e"], ["goAway"]]);
  const onUnread = (): void => {};
  exchange.onUnread = onUnread;
  assert.equal(inner.onUnread, onUnread);
});
