import assert from "node:assert/strict";
import { test } from "node:test";
import { watchTimeoutMs } from "./watch.ts";

test("a watch takes the time the client asks for", () => {
  assert.equal(watchTimeoutMs(7, 1_800_000), 7_000);
});

for (const { random, want } of [
  { random: 0, want: 1_800_000 },
  { random: 0.5, want: 2_700_000 },
]) {
  test(`a watch that asks for none gets between the least time and its double (${random})`, () => {
    assert.equal(
      watchTimeoutMs(undefined, 1_800_000, () => random),
      want,
    );
    assert.equal(
      watchTimeoutMs(0, 1_800_000, () => random),
      want,
    );
  });
}
