import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffOfRequests } from "./requests.ts";

test("a request waits from 200 ms on twice as long each time, 1,000 s at most, by name", () => {
  const backoff = backoffOfRequests();
  const waits = Array.from({ length: 15 }, () => backoff.when("a"));
  assert.deepEqual(waits.slice(0, 3), [200, 400, 800]);
  assert.deepEqual(waits.slice(-3), [819_200, 1_000_000, 1_000_000]);
  assert.equal(backoff.when("b"), 200);
});
