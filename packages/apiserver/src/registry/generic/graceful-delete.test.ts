import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { finalizersForDeletion } from "./graceful-delete.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

test("the finalizers of an object that has tens of thousands of them are the same ones, at once", () => {
  const finalizers = Array.from({ length: 40_000 }, (_, i) => `example.com/${i}`);
  const object = { metadata: { name: "a", finalizers } };
  const wanted = (options: object) => finalizersForDeletion({} as Strategy, {} as StrategyContext, object, options);
  const tookMs = cpuMsOf(() => {
    assert.equal(wanted({}), finalizers);
    assert.equal(wanted({ propagationPolicy: "Orphan" }).length, finalizers.length + 1);
  });
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});
