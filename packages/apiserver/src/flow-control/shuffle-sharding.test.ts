import assert from "node:assert/strict";
import { test } from "node:test";
import { dealHand, hashFlow } from "./shuffle-sharding.ts";

test("a hand holds different cards of the deck, whatever the hash", () => {
  for (let i = 0; i < 500; i++) {
    const hand = dealHand(hashFlow("global-default", `user-${i}`), 16, 6);
    assert.equal(new Set(hand).size, 6);
    assert.ok(hand.every((card) => card >= 0 && card < 16));
  }
});

test("all cards are dealt about as often", () => {
  const dealt = new Array<number>(16).fill(0);
  for (let i = 0; i < 4000; i++) for (const card of dealHand(hashFlow("s", String(i)), 16, 4)) (dealt[card] as number)++;
  for (const times of dealt) assert.ok(Math.abs(times - 1000) < 200, `${dealt}`);
});

test("cards that are numbered after a card that is gone move up", () => {
  // Index 0 of three, index 0 of the remaining two, then the last one.
  assert.deepEqual(dealHand(0n, 3, 3), [0, 1, 2]);
  assert.deepEqual(dealHand(2n, 3, 2), [2, 0]);
  assert.deepEqual(dealHand(5n, 3, 2), [2, 1]);
});

test("schema and distinguisher do not run into each other", () => {
  assert.notEqual(hashFlow("a", "bc"), hashFlow("ab", "c"));
});
