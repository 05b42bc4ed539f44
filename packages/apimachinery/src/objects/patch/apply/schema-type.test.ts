import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import { compare } from "./compare.ts";
import { paths } from "./field-set.ts";
import { displayPath } from "./path-element.ts";
import { applyTypeOfSchema } from "./schema-type.ts";
import { fieldSetOf, mergeInSteps } from "./typed-value.ts";
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
