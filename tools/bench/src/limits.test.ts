import assert from "node:assert/strict";
import { test } from "node:test";
import { type Limit, quantities, verdict } from "./limits.ts";

const { cpu, perSecond, firstByte } = quantities;

for (const { name, limit, ours, theirs, want } of [
  {
    name: "a share below its limit is ok",
    limit: { quantity: cpu, atMost: 0.3 },
    ours: 0.05,
    theirs: 0.2,
    want: "CPU s/1000: ours 0.0500, theirs 0.2000, ratio 0.25, limit at most 0.3: ok",
  },
  {
    name: "a share above it is not",
    limit: { quantity: cpu, atMost: 0.2 },
    ours: 0.05,
    theirs: 0.2,
    want: "CPU s/1000: ours 0.0500, theirs 0.2000, ratio 0.25, limit at most 0.2: NOT OK",
  },
  {
    name: "too few in a second are not ok",
    limit: { quantity: perSecond, atLeast: 3 },
    ours: 250,
    theirs: 100,
    want: "per s: ours 250, theirs 100, ratio 2.50, limit at least 3: NOT OK",
  },
  {
    name: "a share at its limit is ok",
    limit: { quantity: cpu, atMost: 0.25 },
    ours: 0.05,
    theirs: 0.2,
    want: "CPU s/1000: ours 0.0500, theirs 0.2000, ratio 0.25, limit at most 0.25: ok",
  },
  {
    name: "as many in a second as the limit are ok",
    limit: { quantity: perSecond, atLeast: 2.5 },
    ours: 250,
    theirs: 100,
    want: "per s: ours 250, theirs 100, ratio 2.50, limit at least 2.5: ok",
  },
  {
    name: "a bound on our own number does not look at theirs",
    limit: { quantity: firstByte, atMost: 20, absolute: true },
    ours: 21,
    theirs: 400,
    want: "1st byte ms: ours 21.00, theirs 400.00, ratio 0.05, limit for ours at most 20: NOT OK",
  },
  {
    name: "a figure that could not be measured is not ok",
    limit: { quantity: cpu, atMost: 1 },
    ours: Number.NaN,
    theirs: 1,
    want: "CPU s/1000: ours NaN, theirs 1.0000, ratio NaN, limit at most 1: NOT OK",
  },
] satisfies { name: string; limit: Limit; ours: number; theirs: number; want: string }[]) {
  test(name, () => {
    assert.deepEqual(verdict(limit, ours, theirs), { text: want, ok: want.endsWith(": ok") });
  });
}
