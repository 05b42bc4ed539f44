import assert from "node:assert/strict";
import { test } from "node:test";
import type { CustomResourceDefinitionCondition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { type ConditionState, withCondition } from "./conditions.ts";

const now = Date.parse("2022-01-01T00:01:00Z");
const [since, later] = ["2022-01-01T00:00:00Z", "2022-01-01T00:01:00Z"];
interface Row {
  readonly name: string;
  readonly conditions: CustomResourceDefinitionCondition[];
  readonly state: ConditionState;
  readonly want: CustomResourceDefinitionCondition[];
}
const other: CustomResourceDefinitionCondition = { type: "Other", status: "True", lastTransitionTime: since };
const old: CustomResourceDefinitionCondition = {
  type: "Established",
  status: "False",
  reason: "R",
  message: "m",
  lastTransitionTime: since,
};

for (const { name, conditions, state, want } of [
  {
    name: "a new condition comes last, with the present time",
    conditions: [other],
    state: { type: "Established", status: "True" },
    want: [other, { type: "Established", status: "True", lastTransitionTime: later }],
  },
  {
    name: "a condition that turns has the present time, and keeps what is not said",
    conditions: [old, other],
    state: { type: "Established", status: "True", reason: "S" },
    want: [{ ...old, status: "True", reason: "S", lastTransitionTime: later }, other],
  },
  {
    name: "a condition that only says something else keeps its time",
    conditions: [other, old],
    state: { type: "Established", status: "False", message: "n" },
    want: [other, { ...old, message: "n" }],
  },
  {
    name: "a condition without a time gets the present one",
    conditions: [{ type: "Established", status: "False" }],
    state: { type: "Established", status: "False" },
    want: [{ type: "Established", status: "False", lastTransitionTime: later }],
  },
] satisfies Row[] as Row[]) {
  test(name, () => {
    const given = structuredClone(conditions);
    assert.deepEqual(withCondition(given, state, now), want);
    assert.deepEqual(given, conditions, "the given list stays");
  });
}
