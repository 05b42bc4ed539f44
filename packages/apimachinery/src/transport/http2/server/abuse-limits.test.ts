import assert from "node:assert/strict";
import { test } from "node:test";
import { AbuseLimits } from "./abuse-limits.ts";

const tooManyIdle = { message: /too many frames without effect/ };
const times = (count: number, act: () => void): void => {
  for (let i = 0; i < count; i++) act();
};

test("WINDOW_UPDATE frames of a client that was sent nothing are limited, as other frames without effect", () => {
  const limits = new AbuseLimits();
  assert.throws(() => times(2_000, () => limits.countUpdate()), tooManyIdle);
});

test("a client may send two of them for a stream that begins, and for each small event that it has read", () => {
  const limits = new AbuseLimits();
  times(2_000, () => {
    limits.began();
    times(2, () => limits.countUpdate());
  });
  times(2_000, () => {
    limits.sent(100);
    times(2, () => limits.countUpdate());
  });
});

test("a client that reads a long answer in parts of a kilobyte may send two for each", () => {
  const limits = new AbuseLimits();
  limits.sent(4 * 2 ** 20);
  times(4 * 2 ** 10, () => times(2, () => limits.countUpdate()));
  assert.throws(() => times(20_000, () => limits.countUpdate()), tooManyIdle, "what was sent counts once");
});
