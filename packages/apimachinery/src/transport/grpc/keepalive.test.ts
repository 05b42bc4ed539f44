import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { Keepalive } from "./channel.ts";

function aKeepalive() {
  const clock = newFakeClock();
  const pings: (() => void)[] = [];
  const seen = { pings, silent: 0 };
  const options = { clock, checkMs: 500, silenceMs: 1_000, streamSilenceMs: 30_000, pingTimeoutMs: 2_000, leastPingMs: 6_000 };
  const keepalive = new Keepalive(
    options,
    (answered) => void pings.push(answered),
    () => void seen.silent++,
  );
  keepalive.start();
  return { clock, keepalive, seen };
}

test("no ping is sent without a call", async () => {
  const { clock, seen } = aKeepalive();
  await clock.advance(600_000);
  assert.deepEqual([seen.pings.length, seen.silent], [0, 0]);
});

test("a silent server is pinged during a call, and the connection closed without an answer", async () => {
  const { clock, keepalive, seen } = aKeepalive();
  await clock.advance(60_000);
  keepalive.callBegan();
  await clock.advance(400);
  assert.equal(seen.pings.length, 0);
  await clock.advance(600);
  assert.equal(seen.pings.length, 1);
  keepalive.callBegan();
  await clock.advance(1_400);
  assert.equal(seen.silent, 0);
  await clock.advance(100);
  assert.equal(seen.silent, 1);
  await clock.advance(60_000);
  assert.deepEqual([seen.pings.length, seen.silent], [1, 1], "once");
});

test("a server that answers pings gets the next one after the minimum interval", async () => {
  const { clock, keepalive, seen } = aKeepalive();
  keepalive.callBegan();
  await clock.advance(1_500);
  seen.pings[0]?.();
  await clock.advance(4_000);
  assert.equal(seen.pings.length, 1);
  await clock.advance(2_500);
  assert.equal(seen.pings.length, 2);
  seen.pings[1]?.();
  keepalive.callEnded();
  await clock.advance(60_000);
  assert.deepEqual([seen.pings.length, seen.silent], [2, 0]);
});

test("a server that sends data is not pinged", async () => {
  const { clock, keepalive, seen } = aKeepalive();
  keepalive.callBegan();
  for (let i = 0; i < 100; i++) {
    keepalive.heard();
    await clock.advance(500);
  }
  assert.equal(seen.pings.length, 0);
});

test("a server with open streams only is pinged after their time", async () => {
  const { clock, keepalive, seen } = aKeepalive();
  keepalive.streamBegan();
  keepalive.heard();
  await clock.advance(29_500);
  assert.equal(seen.pings.length, 0);
  await clock.advance(500);
  assert.equal(seen.pings.length, 1);
  keepalive.stop();
  await clock.advance(60_000);
  assert.deepEqual([seen.pings.length, seen.silent], [1, 0]);
});

test("a silent server is pinged while any of several calls waits, and for the next one", async () => {
  const { clock, keepalive, seen } = aKeepalive();
  keepalive.callBegan();
  keepalive.callBegan();
  keepalive.callEnded();
  await clock.advance(1_500);
  assert.equal(seen.pings.length, 1);
  seen.pings[0]?.();
  keepalive.callEnded();
  await clock.advance(60_000);
  assert.equal(seen.pings.length, 1);
  keepalive.callBegan();
  await clock.advance(1_500);
  assert.equal(seen.pings.length, 2);
});
