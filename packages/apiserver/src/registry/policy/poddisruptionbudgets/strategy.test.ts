import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { podDisruptionBudgetStatusStrategy } from "./strategy.ts";

const counts = { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 };
for (const { requestVersion, want } of [
  { requestVersion: "v1", want: Object.keys(counts).map((field) => `status.${field}`) },
  { requestVersion: "v1beta1", want: [] },
]) {
  test(`counts below zero in a status by ${requestVersion} are ${want.length > 0 ? "refused" : "taken"}`, () => {
    const budget: PodDisruptionBudget = { metadata: { name: "b" }, spec: {}, status: counts };
    const errors = podDisruptionBudgetStatusStrategy.validateUpdate?.(budget, budget, { requestVersion } as StrategyContext);
    assert.deepEqual(
      errors?.map(({ field }) => field),
      want,
    );
  });
}
