import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import { compare } from "./compare.ts";
import { paths, setOf } from "./field-set.ts";
import { displayPath } from "./path-element.ts";
import { applyTypeOfSchema } from "./schema-type.ts";
import { fieldSetOf, mergeInSteps, removeFieldsInSteps } from "./typed-value.ts";
import { validateTyped } from "./validate.ts";

const type = applyTypeOfSchema({
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        size: { type: "integer" },
        port: { "x-kubernetes-int-or-string": true },
        settings: { type: "object", additionalProperties: { type: "string" } },
        whole: { type: "object", properties: { a: { type: "string" } }, "x-kubernetes-map-type": "atomic" },
        open: { type: "object", properties: { known: { type: "string" } }, "x-kubernetes-preserve-unknown-fields": true },
        anything: { "x-kubernetes-preserve-unknown-fields": true },
        bytes: { type: "string", format: "byte" },
        text: { type: "string", format: "" },
        when: { type: "string", format: "date-time" },
        sealed: { type: "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic" },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        bag: { type: "object" },
        things: { type: "array" },
        plain: { type: "array", items: { type: "string" } },
        names: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
        rules: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name", "mode"],
          items: {
            type: "object",
            properties: { name: { type: "string" }, mode: { type: "string", default: "rw" }, value: { type: "number" } },
          },
        },
        template: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  },
});

test("the schema determines which fields are granular and which atomic", () => {
  const value = {
    apiVersion: "example.com/v1",
    metadata: { labels: { a: "b" }, ownerReferences: [{ uid: "u" }] },
    spec: {
      size: 0,
      port: "http",
      settings: { x: "y" },
      whole: { a: "b" },
      open: { known: "k", other: { deep: [1] } },
      anything: { b: { c: 1 } },
      plain: ["a"],
      names: ["n"],
      rules: [{ name: "r", value: 1 }],
      template: { kind: "Pod", metadata: { labels: { t: "" } }, spec: { x: 1 } },
    },
  };
  validateTyped(type, value);
  assert.deepEqual(paths(fieldSetOf(type, value)).map(displayPath), [
    ".apiVersion",
    ".metadata.labels.a",
    '.metadata.ownerReferences[uid="u"]',
    ".spec.plain",
    ".spec.port",
    ".spec.size",
    ".spec.whole",
    ".spec.anything.b",
    ".spec.anything.b.c",
    '.spec.names[="n"]',
    ".spec.open.known",
    ".spec.open.other",
    ".spec.open.other.deep",
    '.spec.rules[mode="rw",name="r"]',
    '.spec.rules[mode="rw",name="r"].name',
    '.spec.rules[mode="rw",name="r"].value',
    ".spec.settings.x",
    ".spec.template.kind",
    ".spec.template.spec",
    ".spec.template.metadata.labels.t",
    ".spec.template.spec.x",
  ]);
  assert.deepEqual(atOnce(mergeInSteps(type, value, { spec: { rules: [{ name: "r", mode: "rw", value: 2 }] } })), {
    ...value,
    spec: { ...value.spec, rules: [{ name: "r", value: 2, mode: "rw" }] },
  });
});

test("zero values are values, and unknown fields are reported", () => {
  const { added } = compare(type, { spec: {} }, { spec: { size: 0, settings: {} } });
  assert.deepEqual(paths(added).map(displayPath), [".spec.settings", ".spec.size"]);
  assert.throws(() => validateTyped(type, { spec: { unknown: 1 } }), { message: ".spec.unknown: field not declared in schema" });
});

test("a text has to be one unless its format is another one's", () => {
  const refused = (spec: object, message: string): void => assert.throws(() => validateTyped(type, { spec }), { message });
  validateTyped(type, {
    spec: { bytes: "eA==", text: "x", when: 1, bag: { a: [{}] }, things: [1, {}], sealed: { a: 1 }, free: { a: {} } },
  });
  refused({ bytes: true }, ".spec.bytes: expected string, got &value.valueUnstructured{Value:true}");
  refused({ text: true }, ".spec.text: expected string, got &value.valueUnstructured{Value:true}");
  refused({ when: {} }, ".spec.when: expected any scalar, got &{map[]}");
  refused({ bag: "x" }, ".spec.bag: expected map, got &{x}");
  refused({ things: "x" }, ".spec.things: expected list, got &{x}");
});

test("values without a schema are merged and removed field by field when they are maps, as a whole otherwise", () => {
  const merged = (live: object, config: object): unknown =>
    (atOnce(mergeInSteps(type, { spec: live }, { spec: config })) as { spec: unknown }).spec;
  const held = { free: { a: { x: 1 }, l: [1] }, bag: { a: { x: 1 } }, sealed: { a: 1 }, things: [1], whole: { a: "1" } };
  const next = { free: { a: { y: 2 }, l: [2] }, bag: { a: { y: 2 } }, sealed: { b: 1 }, things: [2], whole: {} };
  assert.deepEqual(merged(held, next), {
    free: { a: { x: 1, y: 2 }, l: [2] },
    bag: { a: { x: 1, y: 2 } },
    sealed: { b: 1 },
    things: [2],
    whole: {},
  });
  assert.deepEqual(merged({ free: { a: { x: 1 } } }, { free: { a: "x" } }), { free: { a: "x" } });
  assert.deepEqual(merged({ free: { a: "x" } }, { free: { a: { x: 1 } } }), { free: { a: { x: 1 } } });
  assert.deepEqual(atOnce(mergeInSteps(type, { spec: held }, undefined)), { spec: held });
  assert.deepEqual(atOnce(mergeInSteps(type, undefined, { spec: held })), { spec: held });
  const without = (value: object, ...paths: string[][]): unknown =>
    (
      atOnce(
        removeFieldsInSteps(type, { spec: value }, setOf(...paths.map((path) => ["spec", ...path].map((name) => `f:${name}`)))),
      ) as { spec: unknown }
    ).spec;
  assert.deepEqual(without(held, ["free", "a", "x"], ["bag", "a"], ["sealed", "a"], ["things", "0"], ["whole", "a"]), {
    free: { a: null, l: [1] },
    bag: null,
    sealed: null,
    things: null,
    whole: null,
  });
  assert.deepEqual(without({ free: { a: "x", l: [1] }, size: 1 }, ["free", "a", "x"], ["free", "l", "0"], ["size", "x"]), {
    free: { a: "x", l: null },
    size: 1,
  });
});

for (const [from, to, want] of [
  [null, { b: 1 }, { added: [".b"] }],
  [{ b: 1 }, null, { removed: [".b"] }],
  [{ b: 1, c: [1] }, { b: 1, c: [2] }, { modified: [".c"] }],
  [1, { b: 1 }, { added: [".b"], modified: [""] }],
  [{ b: 1 }, [1], { removed: [".b"], modified: [""] }],
  [[1], [1], {}],
  [[1], [2], { modified: [""] }],
  [null, 1, { modified: [""] }],
] as const)
  test(`values without a schema are compared: ${JSON.stringify(from)} with ${JSON.stringify(to)}`, () => {
    const all = compare(type, { spec: { anything: { k: from } } }, { spec: { anything: { k: to } } });
    const shown = (["added", "modified", "removed"] as const).flatMap((kind) => {
      const found = paths(all[kind]).map(displayPath);
      return found.length === 0 ? [] : [[kind, found.map((path) => path.replace(".spec.anything.k", ""))]];
    });
    assert.deepEqual(Object.fromEntries(shown), want);
  });
