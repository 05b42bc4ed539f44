/** Work of rules on large objects and schemas is charged to the budget or cached. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Schema } from "../schema.ts";
import { parseWordyDuration } from "./durations.ts";
import { ruleCheckOf } from "./evaluation.ts";
import { withResourceFields } from "./types.ts";

function faults(schema: Schema, value: unknown, rule: string): string[] {
  const v = { ...schema, "x-kubernetes-validations": [{ rule }] };
  const check = ruleCheckOf({ type: "object", properties: { v } });
  return (check ? atOnce(check({ v: value } as unknown as KubeObject)) : []).map(formatFieldError);
}

const times = (count: number, body: string): string => `[${Array(count).fill(1)}].all(each, ${body})`;

for (const rule of ["self.size() > 1", "self.exists(name, true)", "dyn(self).size() > 1"])
  test(`the names of a map are listed once, however often a rule asks: ${rule}`, () => {
    let listings = 0;
    const map = new Proxy(
      { a: 1, b: 2 },
      {
        ownKeys(target) {
          listings++;
          return Reflect.ownKeys(target);
        },
      },
    );
    assert.deepEqual(faults({ type: "object", additionalProperties: { type: "integer" } }, map, times(50, rule)), []);
    // The search for rules of nested fields lists the keys too.
    assert.ok(listings <= 3, String(listings));
  });

const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: {} };
const byteSet = { type: "array", "x-kubernetes-list-type": "set", items: { type: "string", format: "byte" } };

for (const { name, schema, values } of [
  {
    name: "fields that no schema knows",
    schema: open,
    values: () => ({ x: Array.from({ length: 20_000 }, () => ({ y: "z" })) }),
  },
  { name: "bytes in sets", schema: byteSet, values: () => ["AAAA".repeat(100_000)] },
  { name: "faulty bytes in sets", schema: byteSet, values: () => ["?".repeat(100_000)] },
]) {
  test(`a comparison costs as much as there is to compare: ${name}`, () => {
    const both: Schema = { type: "object", properties: { a: schema, b: schema } };
    const reported = (count: number): string =>
      faults(both, { a: values(), b: values() }, times(count, "dyn(self.a) == dyn(self.b) || true")).join();
    assert.equal(reported(1), "");
    assert.match(reported(100), /actual cost limit exceeded/);
  });
}

test("a schema gets the fields of resources once, not for each of its values", () => {
  const schema: Schema = { type: "object", properties: { a: { type: "string" } } };
  assert.equal(withResourceFields(schema), withResourceFields(schema));
  assert.deepEqual(Object.keys(withResourceFields(schema).properties ?? {}), ["a", "apiVersion", "kind", "metadata"]);
});

test("durations in words are added up as 64 bits, and none is found in what has no unit", () => {
  assert.equal(parseWordyDuration("2 hours 3 min"), 7_380_000_000_000n);
  assert.equal(
    parseWordyDuration("999999999999999999 weeks 1 ns"),
    BigInt.asIntN(64, 999999999999999999n * 604_800_000_000_000n + 1n),
  );
  assert.equal(parseWordyDuration("5 apples"), undefined);
});
