import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newSerial } from "./csi/serial.ts";
import { newReleaseUnused } from "./release-unused.ts";

function bench(release: (name: string) => Promise<void> = async () => {}) {
  const clock = newFakeClock();
  const serial = newSerial();
  const tried: string[] = [];
  const look = newReleaseUnused({
    serial,
    release(name) {
      tried.push(name);
      return release(name);
    },
    clock,
    log: discardLogger,
  });
  return { clock, serial, tried, look };
}

test("a release that hangs does not delay other volumes or later checks", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { tried, look } = bench((name) => (name === "hangs" ? promise : Promise.resolve()));
  const first = look(["hangs", "a"]);
  await look(["a", "b"]);
  assert.deepEqual(tried, ["hangs", "a", "b"]);
  const behind = look(["hangs", "b"]);
  let ended = 0;
  for (let i = 0; i < 3; i++) void look(["hangs"]).then(() => ended++);
  await new Promise((next) => setImmediate(next));
  assert.equal(ended, 3);
  assert.equal(tried.filter((name) => name === "hangs").length, 1);
  resolve();
  await Promise.all([first, behind]);
  assert.equal(tried.filter((name) => name === "hangs").length, 2, "what was requested meanwhile is looked at once more");
});

test("concurrent checks wait for a running operation on a volume and then release it once", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { serial, tried, look } = bench();
  const work = serial("a", () => promise);
  const looks = [look(["a"]), look(["a"]), look(["a"])];
  await look(["b"]);
  assert.deepEqual(tried, ["b"]);
  resolve();
  await Promise.all([work, ...looks]);
  assert.deepEqual(tried, ["b", "a"]);
});

test("a failed release is retried with increasing delays, and without delay after a success", async () => {
  let fails = true;
  const { clock, tried, look } = bench(async () => {
    if (fails) throw new Error("not yet");
  });
  for (const [advanceMs, count] of [
    [0, 1],
    [499, 1],
    [1, 2],
    [999, 2],
    [1, 3],
  ] as const) {
    await clock.advance(advanceMs);
    await look(["a"]);
    assert.equal(tried.length, count, `after ${advanceMs} ms more`);
  }
  fails = false;
  await clock.advance(2000);
  await look(["a"]);
  fails = true;
  await look(["a"]);
  assert.equal(tried.length, 5);
  await clock.advance(500);
  await look(["a"]);
  assert.equal(tried.length, 6, "waits are short again");
});

test("checks requested after an attempt has ended wait for the next attempt", async () => {
  for (const fails of [false, true]) {
    const { clock, serial, look } = bench(async () => {
      if (fails) throw new Error("not yet");
    });
    await look(["a"]);
    await clock.advance(500);
    const { promise, resolve } = Promise.withResolvers<void>();
    const work = serial("a", () => promise);
    let over = 0;
    const looks = [1, 2].map(() =>
      look(["a"]).then(() => {
        over++;
      }),
    );
    await new Promise((next) => setImmediate(next));
    assert.equal(over, 0);
    resolve();
    await Promise.all([work, ...looks]);
  }
});

test("a release that fails all the time is retried every 122 s at last", async () => {
  const { clock, tried, look } = bench(() => Promise.reject(new Error("not yet")));
  for (let ms = 500; ms < 200_000; ms *= 2) {
    await look(["a"]);
    await clock.advance(ms);
  }
  const before = tried.length;
  await look(["a"]);
  await clock.advance(121_999);
  await look(["a"]);
  assert.equal(tried.length, before + 1);
  await clock.advance(1);
  await look(["a"]);
  assert.equal(tried.length, before + 2);
});
