import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { StrategyContext } from "../../generic/strategy.ts";
import { configMapStrategy } from "./strategy.ts";

test("many keys, all of them wrong, are checked in steps", () => {
  const data = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`!${i}`, ""]));
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data } as ConfigMap;
  for (const current of [undefined, { ...object, data: {} }]) {
    const steps = configMapStrategy.validateInSteps?.(object, current, {} as StrategyContext);
    assert.ok(steps);
    let count = 0;
    let step = steps.next();
    for (; !step.done; step = steps.next()) count++;
    assert.ok(count >= 10, `${count} steps`);
    assert.equal(step.value.length, 50_000);
  }
});

for (const { what, change, want } of [
  { what: "an annotation", change: { metadata: { name: "a", annotations: { b: "c" } } }, want: [] },
  { what: "a value", change: { data: { k: "w" } }, want: ["data"] },
  { what: "a key", change: { data: { k: "v", l: "" } }, want: ["data"] },
  { what: "a binary value", change: { binaryData: { b: "AAA=" } }, want: ["binaryData"] },
  { what: "a binary key", change: { binaryData: {} }, want: ["binaryData"] },
  { what: "all values to none", change: { data: undefined }, want: ["data"] },
  { what: "all binary values to none", change: { binaryData: undefined }, want: ["binaryData"] },
  { what: "immutable", change: { immutable: false }, want: ["immutable"] },
  { what: "immutable to nothing", change: { immutable: undefined }, want: ["immutable"] },
]) {
  test(`an immutable map whose update changes ${what} is ${want.length > 0 ? "refused" : "taken"}`, () => {
    const content = { data: { k: "v" }, binaryData: { b: "AQI=" }, immutable: true };
    const current = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, ...content } as ConfigMap;
    const next = { ...current, ...change } as ConfigMap;
    const errors = atOnce(configMapStrategy.validateInSteps!(next, current, {} as StrategyContext)!);
    assert.deepEqual(
      errors.map(({ field }) => field),
      want,
    );
  });
}
