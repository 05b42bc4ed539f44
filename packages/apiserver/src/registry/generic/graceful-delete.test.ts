import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { deletesByUpdate, finalizersForDeletion } from "./graceful-delete.ts";
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

for (const { name, left = [], current, want } of [
  { name: "the last finalizer of an object without grace", current: { deletionGracePeriodSeconds: 0 }, want: true },
  { name: "the last finalizer of an object marked by an older server", current: {}, want: true },
  { name: "the last finalizer within the grace period", current: { deletionGracePeriodSeconds: 30 }, want: false },
  { name: "all finalizers but one", left: ["example.com/x"], current: { deletionGracePeriodSeconds: 0 }, want: false },
  { name: "the last finalizer of an object that stays", current: { deletionTimestamp: undefined }, want: false },
]) {
  test(`an update that removes ${name} ${want ? "completes" : "does not complete"} its deletion`, () => {
    const deletion = { deletionTimestamp: "2022-01-01T00:00:00Z", ...current };
    assert.equal(deletesByUpdate({ metadata: { name: "a", finalizers: left } }, { metadata: { name: "a", ...deletion } }), want);
  });
}
