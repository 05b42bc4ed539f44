import assert from "node:assert/strict";
import { test } from "node:test";
import { metThresholds, parseThresholds } from "./eviction-thresholds.ts";

const mi = 1024 ** 2;
const none = { hard: {}, soft: {}, softGraceMs: {}, minReclaim: {} };

for (const { name, settings, want } of [
  {
    name: "an unknown signal",
    settings: { ...none, hard: { "cpu.available": "1" } },
    want: /eviction signal cpu.available is not supported/,
  },
  {
    name: "a share above the whole",
    settings: { ...none, hard: { "memory.available": "101%" } },
    want: /must be >= 0% and <= 100%/,
  },
  { name: "no quantity", settings: { ...none, hard: { "memory.available": "lots" } }, want: /is not a quantity/ },
  {
    name: "a soft one without its time",
    settings: { ...none, soft: { "memory.available": "1Gi" } },
    want: /grace period must be specified/,
  },
]) {
  test(`refuses thresholds with ${name}`, () => assert.throws(() => parseThresholds(settings), want));
}

test("a threshold is an amount or a percentage, and is met below it", () => {
  const thresholds = parseThresholds({
    ...none,
    hard: { "memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "0%" },
  });
  assert.equal(thresholds.length, 2, "0% turns a threshold off");
  const met = (memory: number, disk: number): string[] =>
    metThresholds(
      thresholds,
      { "memory.available": { available: memory, capacity: 1024 * mi }, "nodefs.available": { available: disk, capacity: 1000 } },
      new Set(),
    ).map(({ signal }) => signal);
  assert.deepEqual(met(100 * mi, 100), []);
  assert.deepEqual(met(100 * mi - 1, 99), ["memory.available", "nodefs.available"]);
});

test("a met threshold stays met until its minimum reclaim is free as well", () => {
  const thresholds = parseThresholds({
    ...none,
    hard: { "memory.available": "100Mi" },
    minReclaim: { "memory.available": "50Mi" },
  });
  const at = (available: number, before: boolean): number =>
    metThresholds(
      thresholds,
      { "memory.available": { available: available * mi, capacity: 1024 * mi } },
      new Set(before ? thresholds : []),
    ).length;
  assert.deepEqual([at(120, false), at(120, true), at(150, true)], [0, 1, 0]);
});
