import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../testing/cpu-time.ts";
import { maskResources } from "./resource-list.ts";

test("only the named resources are left, of 60,000 in little time", () => {
  assert.deepEqual(maskResources({ cpu: "1", pods: "2" }, ["pods", "memory"]), { pods: "2" });
  const list = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`count/r${i}.x`, "1"]));
  const tookMs = cpuMsOf(() => assert.equal(Object.keys(maskResources(list, Object.keys(list))).length, 60_000));
  assert.ok(tookMs < 600, `${tookMs} ms`);
});
