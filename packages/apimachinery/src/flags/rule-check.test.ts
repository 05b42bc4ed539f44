import assert from "node:assert/strict";
import { test } from "node:test";
import { newRuleCheck } from "./rule-check.ts";
import { oneOf, rule } from "./rules.ts";
import { int32, string } from "./types.ts";

const positive = rule<number>(
  "more than 0",
  (value) => value > 0,
  (value, name) => `${name} ${value} is not positive`,
);
const table = {
  first: int32({ must: positive, help: "" }),
  second: int32({ must: positive, help: "" }),
  free: int32({ help: "" }),
  third: string({ must: oneOf(["a", "b"], (value, name) => `${name} ${value} is neither`), help: "" }),
};

test("rules of flags are checked in the order requested, the others after them, and none twice", () => {
  const check = newRuleCheck(table, { first: 0, second: -1, free: -1, third: "c" });
  assert.deepEqual(check.of("third", "first"), ['--third "c" is neither', "--first 0 is not positive"]);
  assert.deepEqual(check.of("third"), []);
  assert.deepEqual(check.others(), ["--second -1 is not positive"]);
  assert.deepEqual(check.others(), []);
});

test("valid values have no problems", () => {
  const check = newRuleCheck(table, { first: 1, second: 1, free: 0, third: "b" });
  assert.deepEqual([...check.of("first"), ...check.others()], []);
});
