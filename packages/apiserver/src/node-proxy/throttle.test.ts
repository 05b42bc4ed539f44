import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newThrottle } from "./throttle.ts";

test("--max-connection-bytes-per-sec: bytes come at the limit, all of them and in order", async () => {
  const clock = newFakeClock();
  const throttle = newThrottle(1_000, clock);
  let seen = "";
  throttle.setEncoding("latin1").on("data", (text: string) => {
    seen += text;
  });
  const sent = Array.from({ length: 2_500 }, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
  throttle.write(sent.slice(0, 1_200));
  throttle.end(sent.slice(1_200));
  await clock.advance(0);
  assert.equal(seen.length, 100);
  await clock.advance(1_000);
  assert.equal(seen.length, 1_100);
  await clock.advance(1_400);
  assert.equal(seen, sent);
});

test("an unused allowance does not accumulate", async () => {
  const clock = newFakeClock();
  const throttle = newThrottle(10, clock);
  let seen = 0;
  throttle.on("data", (bytes: Buffer) => {
    seen += bytes.length;
  });
  await clock.advance(60_000);
  throttle.write(Buffer.alloc(100));
  await clock.advance(1_000);
  assert.equal(seen, 11);
  throttle.destroy();
  assert.equal(clock.waiting, 0);
});

test("a limit below one byte for each portion passes single bytes", async () => {
  const clock = newFakeClock();
  const throttle = newThrottle(5, clock);
  let seen = "";
  throttle.on("data", (bytes: Buffer) => {
    seen += bytes.toString();
  });
  throttle.end("slow");
  await clock.advance(200);
  assert.equal(seen, "sl");
  await clock.advance(600);
  assert.equal(seen, "slow");
});
