import assert from "node:assert/strict";
import { test } from "node:test";
import { estimateOf, sampledShare, verdictOf } from "./share.ts";

const unknown = "not shown, take more rounds on an idle machine";

for (const { name, shares, want } of [
  { name: "is ok when the limit is above the error too", shares: [0.01, 0.012, 0.008, 0.01], want: "ok" },
  { name: "is not ok when all rounds are above the limit", shares: [0.05, 0.052, 0.048, 0.05], want: "NOT OK" },
  { name: "shows nothing when rounds differ by more than the limit", shares: [-0.2, 0.2, -0.1, 0.1], want: unknown },
  { name: "shows nothing by one round", shares: [0], want: unknown },
])
  test(name, () => assert.equal(verdictOf(estimateOf(shares)), want));

for (const { name, sampled, want } of [
  { name: "a profile is ok with many samples and few of them inside", sampled: { busy: 4000, within: 20 }, want: "ok" },
  { name: "a profile is not ok with many of them inside", sampled: { busy: 4000, within: 200 }, want: "NOT OK" },
  { name: "a profile of few samples shows nothing, though none is inside", sampled: { busy: 50, within: 0 }, want: unknown },
  { name: "a profile without samples shows nothing", sampled: { busy: 0, within: 0 }, want: unknown },
])
  test(name, () => assert.equal(verdictOf(sampledShare(sampled)), want));

test("a share has its error; without samples it is unknown", () => {
  assert.deepEqual(sampledShare({ busy: 0, within: 0 }), { share: 0, error: Number.POSITIVE_INFINITY });
  assert.deepEqual(sampledShare({ busy: 100, within: 3 }), { share: 0.03, error: 0.04 });
  assert.deepEqual(estimateOf([1, 3]), { share: 2, error: 2 });
  assert.deepEqual(estimateOf([1]), { share: 1, error: Number.POSITIVE_INFINITY });
  assert.deepEqual([verdictOf({ share: 0.01, error: 0.01 }), verdictOf({ share: 0.03, error: 0.01 })], ["ok", unknown]);
});
