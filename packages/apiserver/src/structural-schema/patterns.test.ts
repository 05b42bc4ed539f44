/** Patterns and values come from different users: no combination of them blocks the event loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { Pattern } from "@coxswain/apimachinery/objects/validation/pattern";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { CheckBudget } from "./check-budget.ts";
import { patternMemory, patternOf } from "./patterns.ts";
import type { Schema } from "./schema.ts";
import { validatingStructural } from "./structural.ts";
import { schemaFaults } from "./values.ts";

const mostMs = 300;
const withPattern = (pattern: string): Schema => ({ type: "object", properties: { s: { type: "string", pattern } } });
const tooLarge = "the expression is too large: at most 10000 instructions are allowed, repetitions written out";

for (const [name, pattern] of [
  ["repeated repetitions", `${"(a?){1000}".repeat(10)}a{1000}`],
  ["a long one", "a?".repeat(50_000)],
] as const) {
  test(`a definition with too large a pattern is refused, and its values are: ${name}`, () => {
    const schema = withPattern(pattern);
    const tookMs = cpuMsOf(() => {
      const [refusal, ...others] = atOnce(validatingStructural(schema, "schema"));
      assert.deepEqual(others, []);
      assert.equal(refusal?.field, "schema.properties[s].pattern");
      assert.equal(refusal?.detail, `must be a valid regular expression, but isn't: ${tooLarge}`);
      const [fault] = schemaFaults({ s: "a".repeat(2000) }, schema, "");
      assert.equal(fault?.field, "s");
      assert.equal(fault?.detail, `s in body cannot be matched against its pattern: ${tooLarge}`);
    });
    assert.ok(tookMs < mostMs, `${tookMs} ms`);
  });
}

test("a value that is too long for its pattern is refused, one that is not is matched", () => {
  const schema = withPattern("(a?){1000}a{1000}");
  const tookMs = cpuMsOf(() => {
    assert.match(
      schemaFaults({ s: "a".repeat(2000) }, schema, "")
        .map(formatFieldError)
        .join(),
      /: s in body is too long for its pattern: it has 2000 characters, of which a pattern of 5\d\d\d instructions may match at most 5\d\d$/,
    );
    assert.match(
      schemaFaults({ s: "a".repeat(500) }, schema, "")
        .map(formatFieldError)
        .join(),
      /should match '\(a\?\)\{1000\}/,
    );
  });
  assert.ok(tookMs < mostMs, `${tookMs} ms`);
  assert.deepEqual(schemaFaults({ s: "a".repeat(300_000) }, withPattern("^[a-z]+$"), ""), []);
});

test("an object whose validation exceeds its budget is refused with one error", () => {
  const schema: Schema = { type: "object", properties: { list: { type: "array", items: { type: "integer" } } } };
  const value = { list: Array.from({ length: 50 }, (_, i) => i) };
  assert.deepEqual(schemaFaults(value, schema, "", new CheckBudget(1_000)), []);
  const [fault, ...others] = schemaFaults(value, schema, "", new CheckBudget(20));
  assert.deepEqual(others, []);
  assert.match(fault?.detail ?? "", /^takes too long to validate: /);
});

test("the compiled patterns of all schemas stay within a limit; what was dropped is compiled again", () => {
  const schemas = Array.from({ length: 40 }, (_, at): Schema => ({ type: "string", pattern: `${"(a|b)*".repeat(1500)}${at}` }));
  const first = patternOf(schemas[0]!);
  assert.ok(first instanceof Pattern);
  assert.equal(patternOf(schemas[0]!), first);
  for (const schema of schemas) patternOf(schema);
  assert.ok(patternMemory.bytes <= patternMemory.limitBytes);
  assert.ok(patternMemory.bytes > patternMemory.limitBytes / 2, String(patternMemory.bytes));
  for (const schema of schemas.slice(1)) patternOf(schema);
  const again = patternOf(schemas[0]!);
  assert.ok(again instanceof Pattern && again !== first && again.source === first.source);
});

test("a pattern that has to be compiled is charged to the budget of the value; one that is still compiled is not", () => {
  const schema = withPattern("(abc?){1000}");
  const faults = () => schemaFaults({ s: "a" }, schema, "", new CheckBudget(1_000)).map(formatFieldError).join();
  assert.match(faults(), /takes too long to validate/);
  assert.match(faults(), /should match/);
});

test("a pattern that is used again and again outlives those that are not", () => {
  const aSchema = (name: string): Schema => ({ type: "string", pattern: `${"(c|d)*".repeat(1500)}${name}` });
  const popular = aSchema("popular");
  const compiled = patternOf(popular);
  for (let at = 0; at < 30; at++) {
    patternOf(aSchema(`${at}`));
    assert.equal(patternOf(popular), compiled, `after ${at} others`);
  }
});
