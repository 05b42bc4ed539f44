import assert from "node:assert/strict";
import { test } from "node:test";
import { newFailureBackoff } from "./failure-backoff.ts";
import { newFinalizerExpectations } from "./finalizer-expectations.ts";

test("a removed finalizer is expected until it is observed once, and later removals are added", () => {
  const expectations = newFinalizerExpectations();
  expectations.expect("a", ["1", "2"]);
  expectations.expect("a", ["2", "3"]);
  expectations.expect("b", ["1"]);
  assert.deepEqual([...expectations.of("a")], ["1", "2", "3"]);
  assert.deepEqual(
    ["2", "2", "4"].map((uid) => expectations.observed("a", uid)),
    [true, false, false],
  );
  assert.deepEqual([...expectations.of("a")], ["1", "3"]);
  for (const uid of ["1", "3"]) expectations.observed("a", uid);
  assert.equal(expectations.of("a").size, 0);
  assert.deepEqual([...expectations.of("b")], ["1"], "another job's are its own");
  expectations.forget("b");
  assert.equal(expectations.observed("b", "1"), false);
});

test("a set that was returned does not change with later observations", () => {
  const expectations = newFinalizerExpectations();
  expectations.expect("a", ["1"]);
  const requested = expectations.of("a");
  expectations.observed("a", "1");
  assert.deepEqual([...requested], ["1"]);
});

test("failures wait longer and longer, each job for itself, and from the start after a success", () => {
  const backoff = newFailureBackoff();
  assert.equal(backoff.delayMs("a"), 0);
  const waits = Array.from({ length: 8 }, () => backoff.failed("a"));
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 360_000, 360_000]);
  assert.deepEqual([backoff.delayMs("a"), backoff.delayMs("b")], [360_000, 0]);
  assert.equal(backoff.failed("b"), 10_000);
  backoff.forget("a");
  assert.deepEqual([backoff.delayMs("a"), backoff.delayMs("b")], [0, 10_000]);
  assert.equal(backoff.failed("a"), 10_000);
});
