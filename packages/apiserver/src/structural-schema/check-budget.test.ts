import assert from "node:assert/strict";
import { test } from "node:test";
import { CheckBudget, ChecksExceeded } from "./check-budget.ts";

test("a budget may be spent to its last unit", () => {
  const budget = new CheckBudget(10);
  budget.spend(9);
  budget.spend(1);
  assert.throws(() => budget.spend(1), ChecksExceeded);
});

test("a budget is one of two million units, and yields after five hundred each time", () => {
  const budget = new CheckBudget();
  const yields: number[] = [];
  for (let i = 1; i <= 1_100; i++) if (budget.endsStep()) yields.push(i);
  assert.deepEqual(yields, [500, 1_000]);
  budget.spend(2_000_000 - 1_100);
  assert.throws(() => budget.endsStep(), ChecksExceeded);
});

test("what is spent at once counts for the next yield", () => {
  const budget = new CheckBudget();
  budget.spend(499);
  assert.deepEqual([budget.endsStep(), budget.endsStep()], [true, false]);
});
