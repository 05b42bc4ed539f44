import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { backoffOfRequests, limiterOfRequests } from "./requests.ts";

test("a request waits from 200 ms on twice as long each time, 1,000 s at most, by name", () => {
  const backoff = backoffOfRequests();
  const waits = Array.from({ length: 15 }, () => backoff.when("a"));
  assert.deepEqual(waits.slice(0, 3), [200, 400, 800]);
  assert.deepEqual(waits.slice(-3), [819_200, 1_000_000, 1_000_000]);
  assert.equal(backoff.when("b"), 200);
});

test("beyond a hundred, requests are tried again at ten a second", () => {
  const limiter = limiterOfRequests(newFakeClock());
  const waits = Array.from({ length: 110 }, (_, i) => limiter.when(`csr-${i}`));
  assert.deepEqual(new Set(waits.slice(0, 102)), new Set([200]));
  assert.deepEqual(waits.slice(102), [300, 400, 500, 600, 700, 800, 900, 1000]);
});
