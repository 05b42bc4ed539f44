import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../testing/cpu-time.ts";
import {
  addResources,
  canonicalResources,
  exceededIn,
  formatResources,
  maskResources,
  maxResources,
  negativeIn,
  sameResources,
  subtractNonNegative,
  withoutZeros,
} from "./resource-list.ts";

test("only the named resources are left, of 60,000 in little time", () => {
  assert.deepEqual(maskResources({ cpu: "1", pods: "2" }, ["pods", "memory"]), { pods: "2" });
  const list = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`count/r${i}.x`, "1"]));
  const tookMs = cpuMsOf(() => assert.equal(Object.keys(maskResources(list, Object.keys(list))).length, 60_000));
  assert.ok(tookMs < 600, `${tookMs} ms`);
});

test("sums, maxima and differences are taken by name, in any notation", () => {
  assert.deepEqual(addResources({ cpu: "500m", pods: "1" }, { cpu: "1", memory: "1Gi" }), {
    cpu: "1500m",
    pods: "1",
    memory: "1Gi",
  });
  assert.deepEqual(maxResources({ cpu: "1500m", pods: "1" }, { cpu: "1", pods: "2" }), { cpu: "1500m", pods: "2" });
  assert.deepEqual(subtractNonNegative({ cpu: "1", pods: "1", memory: "2" }, { cpu: "400m", pods: "3", other: "1" }), {
    cpu: "600m",
    pods: "0",
    memory: "2",
  });
  assert.deepEqual(addResources({ cpu: "1" }, { cpu: "many" }), { cpu: "1" }, "what is no quantity adds nothing");
  assert.deepEqual(addResources({}, { cpu: "many", pods: "1" }), { pods: "1" });
  assert.deepEqual(subtractNonNegative({ cpu: "many", pods: "2" }, { cpu: "1", pods: "many" }), { cpu: "0", pods: "2" });
  assert.deepEqual(exceededIn({ cpu: "many", pods: "1" }, { cpu: "-1", pods: "many" }), ["cpu"]);
  assert.deepEqual(maxResources({}, { pods: "1" }), { pods: "1" });
});

test("a limit is exceeded above it, not at it, and by names without a limit never", () => {
  const hard = { cpu: "1", pods: "2" };
  assert.deepEqual(exceededIn({ cpu: "1000m", pods: "2", memory: "9Gi" }, hard), []);
  assert.deepEqual(exceededIn({ cpu: "1001m", pods: "3" }, hard), ["cpu", "pods"]);
});

for (const [one, other, want] of [
  [{ cpu: "1" }, { cpu: "1000m" }, true],
  [{ cpu: "1" }, { cpu: "2" }, false],
  [{ cpu: "1" }, { cpu: "1", pods: "0" }, false],
  [{ cpu: "1", pods: "0" }, { cpu: "1" }, false],
  [{ cpu: "1" }, { memory: "1" }, false],
] as const)
  test(`${JSON.stringify(one)} and ${JSON.stringify(other)} are ${want ? "the same" : "different"} amounts`, () =>
    assert.equal(sameResources(one, other), want));

test("zeros, negatives and what is no quantity are told apart", () => {
  const list = { a: "0", b: "-1", c: "1", d: "x", e: "1000m" };
  assert.deepEqual(withoutZeros(list), { b: "-1", c: "1", e: "1000m" });
  assert.deepEqual(negativeIn(list), ["b"]);
  assert.deepEqual(canonicalResources(list), { a: "0", b: "-1", c: "1", e: "1" });
  assert.equal(formatResources({ pods: "3", cpu: "1000m", x: "?" }), "cpu=1,pods=3,x=?");
});
