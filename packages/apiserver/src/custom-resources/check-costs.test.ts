/**
 * Cost limits of schema validation. Users control both schema and object, and the cost is the product of their sizes: it is
 * bounded, and validation yields to the event loop.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import { applySchema } from "../structural-schema/apply.ts";
import { fillDefaults } from "../structural-schema/defaults.ts";
import { ruleCheckOf } from "../structural-schema/rules/evaluation.ts";
import type { Schema } from "../structural-schema/schema.ts";
import { customResourceStrategy } from "./strategy.ts";

/** 0.1 s, with slack for slower or busy machines. */
const mostTurnMs = 300;

const list = (items: object): Schema => ({ type: "object", properties: { v: { type: "array", items: items as Schema } } });
const many = (count: number, value: (i: number) => unknown): unknown[] => Array.from({ length: count }, (_, i) => value(i));
const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `name${i}`);

/** Validates a list of the values as a write does. @returns the errors, and the longest event-loop turn in ms */
async function checked(schema: Schema, values: unknown): Promise<{ readonly faults: FieldError[]; readonly turnMs: number }> {
  const strategy = customResourceStrategy({
    namespaced: true,
    schema,
    hasStatus: false,
    scale: undefined,
    checkRules: ruleCheckOf(schema),
  });
  const object = { apiVersion: "example.com/v1", kind: "Big", metadata: { name: "big" }, v: values } as unknown as Unstructured;
  let faults: FieldError[] = [];
  const turnMs = await longestTurnOf(mostTurnMs, async () => {
    const steps = strategy.validateInSteps?.(object, undefined, {} as StrategyContext);
    assert.ok(steps);
    faults = await new Turns().run(steps);
  });
  return { faults, turnMs };
}

const tooMuch = /^takes too long to validate: its size multiplied by the cost of validating each value exceeds the limit/;

for (const { name, schema, values, want } of [
  {
    name: "a pattern for each of many values",
    schema: list({ type: "string", pattern: "^(?:[a-z]{1,60}\\.){1,4}[a-z]{1,60}$" }),
    values: () => many(10_000, (i) => `${"abc.".repeat(3)}abc${"d".repeat(i % 9)}`),
    want: undefined,
  },
  {
    name: "a costly pattern for each of many values",
    schema: list({ type: "string", pattern: "(a|b)*a(a|b){1000}[^ab]" }),
    values: () => many(10_000, () => "ab".repeat(50)),
    want: tooMuch,
  },
  {
    name: "very many alternatives for each of many values",
    schema: list({ type: "integer", anyOf: names(10_000).map((_, i) => ({ maximum: -i })) }),
    values: () => many(100_000, (i) => i),
    want: tooMuch,
  },
  {
    name: "alternatives within alternatives",
    schema: list(nested(12)),
    values: () => many(1000, () => 1),
    want: tooMuch,
  },
  {
    name: "very many values that are allowed, none of which it is",
    schema: list({ type: "object", "x-kubernetes-preserve-unknown-fields": true, enum: many(20_000, (i) => ({ a: { b: i } })) }),
    values: () => many(10_000, () => ({ a: { b: -1 } })),
    want: tooMuch,
  },
  {
    name: "very many fields that must be there",
    schema: list({ type: "object", required: names(50_000), properties: {} }),
    values: () => many(50_000, () => ({})),
    want: /^$/,
  },
  {
    name: "very many properties, and as many objects that have none",
    schema: list({ type: "object", properties: Object.fromEntries(names(50_000).map((field) => [field, { type: "string" }])) }),
    values: () => many(100_000, () => ({})),
    want: undefined,
  },
  {
    name: "very many values of a plain type",
    schema: list({ type: "integer" }),
    values: () => many(700_000, (i) => i),
    want: undefined,
  },
  {
    name: "very many wrong values",
    schema: list({ type: "object", properties: { a: { type: "string", maxLength: 1 } } }),
    values: () => many(200_000, () => ({ a: "xx" })),
    want: /should be at most 1 chars long$/,
  },
  {
    name: "rules that each take as long as they may",
    schema: list({
      type: "object",
      properties: { a: { type: "integer" } },
      "x-kubernetes-validations": many(50, (i) => ({
        rule: `${JSON.stringify(names(100))}.all(x, ${JSON.stringify(names(100))}.exists(y, y > x || true) && self.a >= ${-i})`,
      })),
    }),
    values: () => many(1000, () => ({ a: 1 })),
    want: /validation failed due to running out of cost budget, no further validation rules will be run|cost limit exceeded/,
  },
] as { name: string; schema: Schema; values: () => unknown[]; want: RegExp | undefined }[]) {
  test(`others have their turns, and there is an end: ${name}`, async () => {
    const { faults, turnMs } = await checked(schema, values());
    if (want === undefined) assert.deepEqual(faults, []);
    else assert.match(faults.at(-1)?.detail ?? "", want);
    assert.ok(faults.length <= 10_000);
    assert.ok(turnMs < mostTurnMs, `${turnMs} ms`);
  });
}

/** Schema of an integer that fails in each of 2^levels alternatives. */
function nested(levels: number): object {
  return levels === 0 ? { maximum: 0 } : { anyOf: [nested(levels - 1), nested(levels - 1)] };
}

const withLargeDefault = list({
  type: "object",
  properties: { a: { type: "string", default: "x".repeat(100_000) } },
});

test("an object whose defaults would make it very large is refused", () => {
  const object = (count: number): KubeObject =>
    ({ apiVersion: "example.com/v1", kind: "Big", metadata: {}, v: many(count, () => ({})) }) as unknown as KubeObject;
  assert.throws(
    () => applySchema(object(100_000), { schema: withLargeDefault, prunes: true }),
    (err) =>
      err instanceof StatusError && err.status.code === 413 && /the defaults of the schema would add more than/.test(err.message),
  );
  const small = object(20);
  applySchema(small, { schema: withLargeDefault, prunes: true });
  assert.equal((small as unknown as { v: { a: string }[] }).v.at(-1)?.a.length, 100_000);
});

test("a stored object gets the defaults that fit, and stays readable", () => {
  const object = { v: many(100, () => ({})) as { a?: string }[] };
  fillDefaults(object, withLargeDefault, "stop");
  assert.equal(object.v[0]?.a?.length, 100_000);
  assert.deepEqual(object.v.at(-1), {});
});
