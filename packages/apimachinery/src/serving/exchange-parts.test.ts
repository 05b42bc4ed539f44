import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import {
  bodyMayFollow,
  canonicalHeader,
  ExchangeBase,
  httpDate,
  newRequestFields,
  plainAddress,
  whenDrained,
} from "./exchange-parts.ts";

class AnExchange extends ExchangeBase {
  merged = (own: Record<string, string | number | string[] | undefined> = {}) => [...this.answerHeaders.merged(own)];
  leave = (reason?: string) => this.setGone(reason);
  wait = (drained: Promise<void>) => this.whenRead(drained);
}

test("names of headers are written as Go writes them", () => {
  assert.deepEqual(["content-type", "x-a-1b", "etag", "www-authenticate"].map(canonicalHeader), [
    ...["Content-Type", "X-A-1b", "Etag", "Www-Authenticate"],
  ]);
  assert.throws(() => canonicalHeader("a b"), TypeError);
});

test("informational answers, 204 and 304 have no body", () => {
  assert.deepEqual([100, 101, 199, 200, 201, 204, 205, 301, 304, 404, 500].map(bodyMayFollow), [
    ...[false, false, false, true, true, false, true, true, false, true, true],
  ]);
});

test("an IPv4 client of a dual-stack socket has its IPv4 address", () => {
  assert.deepEqual(
    [plainAddress("::ffff:10.0.0.1"), plainAddress("fd00::ffff:1"), plainAddress(undefined)],
    ["10.0.0.1", "fd00::ffff:1", ""],
  );
});

test("a response's own headers win over those set before, in any spelling; appended ones are a list", () => {
  const exchange = new AnExchange();
  exchange.setHeader("Audit-Id", "1");
  exchange.setHeader("Cache-Control", "no-store");
  exchange.setHeader("cache-control", "private");
  exchange.appendHeader("Warning", "a");
  exchange.appendHeader("warning", "b");
  exchange.appendHeader("WARNING", "c");
  assert.deepEqual(exchange.merged({ "Audit-ID": "2", ETag: 3, absent: undefined }), [
    ["audit-id", "2"],
    ["cache-control", "private"],
    ["warning", ["a", "b", "c"]],
    ["etag", 3],
  ]);
  assert.deepEqual(exchange.merged().at(0), ["audit-id", "1"], "those set before stay");
});

test("the signal of an exchange is aborted when its client is gone, also when it is asked for later", () => {
  const exchange = new AnExchange();
  const { signal } = exchange;
  assert.deepEqual([exchange.isGone, signal.aborted], [false, false]);
  exchange.leave("because");
  assert.deepEqual([exchange.isGone, (signal.reason as Error).message], [true, "because"]);
  const late = new AnExchange();
  late.leave();
  assert.equal((late.signal.reason as Error).message, "the client disconnected");
  assert.equal(late.signal, late.signal);
});

test("an exchange is known to wait for its client, for as long as it does", async () => {
  const exchange = new AnExchange();
  let told = 0;
  exchange.onUnread = () => told++;
  const drained = Promise.withResolvers<void>();
  const waiting = exchange.wait(drained.promise);
  assert.ok(exchange.unreadMs !== undefined && told === 1);
  drained.resolve();
  await waiting;
  assert.equal(exchange.unreadMs, undefined);
});

test("a wait for a client ends when it reads or is gone, and leaves no listeners", async () => {
  const waits: (() => void)[] = [];
  const writable = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => void waits.push(done) });
  const before = { drain: writable.listenerCount("drain"), close: writable.listenerCount("close") };
  const listeners = () => ({ drain: writable.listenerCount("drain"), close: writable.listenerCount("close") });
  await whenDrained(writable);
  writable.write("ab");
  const drained = whenDrained(writable);
  assert.deepEqual(listeners(), { drain: before.drain + 1, close: before.close + 1 });
  waits.shift()?.();
  await drained;
  assert.deepEqual(listeners(), before);
  writable.write("cd");
  const gone = assert.rejects(whenDrained(writable), /^Error: the client disconnected$/);
  writable.destroy();
  await gone;
  assert.deepEqual(listeners(), before);
  await assert.rejects(whenDrained(writable), /^Error: the client disconnected$/);
});

test("the fields of a request have no prototype, and its date is that of now", () => {
  assert.equal("constructor" in newRequestFields(), false);
  assert.match(httpDate(), /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
  assert.ok(Math.abs(Date.parse(httpDate()) - Date.now()) < 5_000);
});
