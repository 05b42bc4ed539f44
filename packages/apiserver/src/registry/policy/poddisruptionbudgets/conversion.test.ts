import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { budgetFromV1beta1, budgetOfV1, budgetToV1beta1 } from "./conversion.ts";

const budget = (selector: LabelSelector | undefined): PodDisruptionBudget => ({
  metadata: {},
  spec: { selector: selector! },
});
const key = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
const marked = (operator: string) => ({ matchExpressions: [{ key, operator }] });
const labels = { matchLabels: { a: "b" } };

for (const { name, v1beta1, v1 } of [
  { name: "no selector is none in both", v1beta1: undefined, v1: undefined },
  { name: "an empty selector of v1beta1 matches nothing in v1", v1beta1: {}, v1: marked("Exists") },
  { name: "an empty selector of v1 matches everything in v1beta1", v1beta1: marked("DoesNotExist"), v1: {} },
  { name: "labels are the same in both", v1beta1: labels, v1: labels },
]) {
  test(name, () => {
    assert.deepEqual(budgetFromV1beta1(budget(v1beta1)), budget(v1));
    assert.deepEqual(budgetToV1beta1(budget(v1)), budget(v1beta1));
  });
}

test("the label of empty selectors is dropped when there are others", () => {
  const mixed = budget({ ...labels, ...marked("Exists") });
  for (const convert of [budgetFromV1beta1, budgetOfV1])
    assert.deepEqual(convert(mixed), budget({ ...labels, matchExpressions: [] }));
  assert.deepEqual(budgetOfV1(budget(marked("Exists"))), budget(marked("Exists")));
  assert.deepEqual(budgetOfV1(budget(marked("DoesNotExist"))), budget({ matchExpressions: [] }));
});

test("the label of empty selectors has a meaning of its own only without values, and with the operator for its version", () => {
  const valued = { matchExpressions: [{ key, operator: "DoesNotExist", values: ["x"] }] };
  assert.deepEqual(budgetFromV1beta1(budget(valued)), budget({ matchExpressions: [] }));
  const existing = { matchExpressions: [{ key, operator: "Exists", values: ["x"] }] };
  for (const selector of [marked("DoesNotExist"), existing])
    assert.deepEqual(budgetToV1beta1(budget(selector)), budget(selector));
});
