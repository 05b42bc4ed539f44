import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { ArrivingBodies } from "./arriving-bodies.ts";

function setUp(mostBytes?: number) {
  const clock = newFakeClock();
  const bodies = new ArrivingBodies(clock, mostBytes);
  return {
    clock,
    /** A request of which `bytes` have arrived. */
    arrive(bytes = 0, acquire: () => Promise<void> = async () => {}) {
      const acts: string[] = [];
      const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
      const exchange = new LoopbackExchange({ method: "POST", path: "/", headers: {}, body: Buffer.alloc(bytes) });
      const result = bodies.receive(promise, exchange, {
        release: () => void acts.push("release"),
        async acquire() {
          acts.push("acquire");
          await acquire();
        },
      });
      result.catch(() => {});
      return { acts, result, resolve, reject };
    },
  };
}

test("a request whose body arrives at once keeps its seat", async () => {
  const { clock, arrive } = setUp();
  const { acts, result, resolve } = arrive();
  await clock.advance(49);
  resolve(Buffer.from("x"));
  assert.equal(String(await result), "x");
  await clock.advance(1000);
  assert.deepEqual(acts, []);
  assert.equal(clock.waiting, 0);
});

test("a request whose body arrives late gives its seat back, and has one again before its body is handled", async () => {
  const { clock, arrive } = setUp();
  const seat = Promise.withResolvers<void>();
  const { acts, result, resolve } = arrive(0, () => seat.promise);
  await clock.advance(50);
  assert.deepEqual(acts, ["release"]);
  resolve(Buffer.from("x"));
  let handled = false;
  void result.then(() => {
    handled = true;
  });
  await settle();
  assert.deepEqual([acts, handled], [["release", "acquire"], false]);
  seat.resolve();
  assert.equal(String(await result), "x");
  assert.equal(clock.waiting, 0, "no timer is left");
});

test("a client that disconnects while it sends takes no second seat; nor does a request that gets none", async () => {
  const { clock, arrive } = setUp();
  const gone = arrive();
  await clock.advance(50);
  gone.reject(new Error("gone"));
  await assert.rejects(gone.result, /gone/);
  assert.deepEqual(gone.acts, ["release"]);
  const refused = arrive(0, () => Promise.reject(new Error("no seat")));
  await clock.advance(50);
  refused.resolve(Buffer.alloc(0));
  await assert.rejects(refused.result, /no seat/);
});

test("a body that fails at once ends its request at once, which keeps its seat", async () => {
  const { clock, arrive } = setUp();
  const { acts, result, reject } = arrive();
  reject(new Error("too large"));
  await settle();
  assert.equal(clock.waiting, 0);
  await assert.rejects(result, /too large/);
  assert.deepEqual(acts, []);
});

test("as many slow bodies are refused as it takes until the others have room", async () => {
  const { clock, arrive } = setUp(1000);
  const [first, second, third] = [arrive(400), arrive(400), arrive(900)];
  await clock.advance(150);
  for (const { result } of [first, second]) await assert.rejects(result, { code: 429 });
  third.resolve(Buffer.alloc(900));
  assert.equal((await third.result).length, 900);
});

test("the oldest of slow bodies are refused when all together are too large, and the others go on", async () => {
  const { clock, arrive } = setUp(1000);
  const [first, second, third] = [arrive(500), arrive(400), arrive(400)];
  await clock.advance(150);
  await assert.rejects(first.result, { code: 429, reason: "TooManyRequests" });
  for (const { resolve } of [second, third]) resolve(Buffer.alloc(400));
  assert.deepEqual([(await second.result).length, (await third.result).length], [400, 400]);
  const fourth = arrive(900);
  await clock.advance(200);
  fourth.resolve(Buffer.alloc(900));
  assert.equal((await fourth.result).length, 900, "what has ended counts no longer");
});

test("bodies that take the whole of the memory are received; more than it is refused, also after a time without any", async () => {
  const { clock, arrive } = setUp(1000);
  for (let round = 0; round < 2; round++) {
    const [first, second] = [arrive(500), arrive(500)];
    await clock.advance(200);
    const third = arrive(1);
    await clock.advance(200);
    await assert.rejects(first.result, { code: 429 });
    for (const { resolve } of [second, third]) resolve(Buffer.from("x"));
    assert.deepEqual([String(await second.result), String(await third.result)], ["x", "x"]);
    assert.equal(clock.waiting, 0);
  }
});
