import assert from "node:assert/strict";
import { test } from "node:test";
import { type Duration, durationMs } from "./duration.ts";

for (const [given, want] of [
  [0, 0],
  [1.5, 1.5],
  ["250ms", 250],
  ["90s", 90_000],
  ["1.5m", 90_000],
  ["1h30m", 5_400_000],
  ["2d", 172_800_000],
  ["1d2h3m4s5ms", 93_784_005],
] as const) {
  test(`${given} is ${want} ms`, () => assert.equal(durationMs(given), want));
}

for (const given of [
  -1,
  Number.POSITIVE_INFINITY,
  Number.NaN,
  "",
  "5",
  "-1s",
  "1w",
  "1S",
  "1h 30m",
  "s",
  "1.s",
  "1sx",
] as Duration[]) {
  test(`${JSON.stringify(given)} is no duration`, () => assert.throws(() => durationMs(given), /is not a duration: /));
}
