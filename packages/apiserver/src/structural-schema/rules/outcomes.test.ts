/** Rules are evaluated independently of schema validation, so values need not match their schema. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Schema } from "../schema.ts";
import { ruleCheckOf } from "./evaluation.ts";

const values = [
  1,
  1.5,
  1e300,
  "a",
  "5s",
  "2020-01-01",
  true,
  null,
  [],
  [1],
  ["a", null],
  [null],
  [[1]],
  {},
  { a: 1 },
  [{ key: "a" }],
];

const list = (type: string, items: Schema): Schema => ({ type: "array", "x-kubernetes-list-type": type, items });
const item: Schema = { type: "object", properties: { key: { type: "string" } } };
const schemas: readonly Schema[] = [
  { type: "string" },
  { type: "integer" },
  { type: "number" },
  { type: "boolean" },
  ...["duration", "date", "date-time", "byte"].map((format) => ({ type: "string", format })),
  { "x-kubernetes-int-or-string": true },
  list("atomic", { type: "string" }),
  list("set", { type: "integer" }),
  list("set", { type: "integer", nullable: true }),
  list("set", { type: "string", format: "byte" }),
  { ...list("map", item), "x-kubernetes-list-map-keys": ["key"] },
  { type: "object", additionalProperties: { type: "integer" } },
  { type: "object", properties: { a: { type: "string" } } },
  { type: "object", "x-kubernetes-embedded-resource": true, properties: {} },
];

for (const rule of [
  "self == self",
  "[self] == [self]",
  "{'a': self} != {'a': self}",
  "self in [self]",
  "self + self == self",
  "size(self) > 0",
  "self.all(x, x == x)",
  "self.exists(x, x in self)",
  "self.map(x, x).size() > 1",
  "has(self.a)",
  "self['a'] == 1",
  "self[0] == self[0]",
  "type(self) == int",
  "string(self) == ''",
  "self.metadata.name == ''",
  "dyn(self).a.b",
  "dyn(self) > 1 || dyn(self).getHours() > 1 || dyn(self).matches('a')",
]) {
  test(`of every value it is said whether ${rule}`, () => {
    for (const schema of schemas) {
      const v = { ...schema, "x-kubernetes-validations": [{ rule }] };
      const check = ruleCheckOf({ type: "object", properties: { v } });
      for (const value of values) {
        const faults = check ? atOnce(check({ v: value } as unknown as KubeObject)) : [];
        assert.ok(faults.length <= 1, JSON.stringify({ schema, value, faults }));
      }
    }
  });
}
