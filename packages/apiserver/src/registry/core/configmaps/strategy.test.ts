import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
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
