import assert from "node:assert/strict";
import { test } from "node:test";
import { requestTimeoutMs } from "./deadline.ts";

for (const [timeout, want] of [
  [null, 60_000],
  ["", 60_000],
  ["10s", 10_000],
  ["1500ms", 1500],
  ["2m", 60_000],
  ["60s", 60_000],
  ["0s", 60_000],
  ["-1s", 60_000],
] as const) {
  test(`a request with timeout ${timeout} has ${want} ms where the server gives a minute`, () => {
    assert.equal(requestTimeoutMs(timeout, 60_000), want);
  });
}

test("a timeout that is no duration is 400 and named", () => {
  const message = 'invalid timeout specified in the request URL - time: invalid duration "5"';
  assert.throws(() => requestTimeoutMs("5", 60_000), { code: 400, message });
});
