import assert from "node:assert/strict";
import { test } from "node:test";
import type { CustomResourceDefinitionSpec } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { leniencyOf, optionsFor, strict } from "./options.ts";

const version = (name: string, openAPIV3Schema: object | undefined) => ({
  ...{ name, served: true, storage: name === "v1" },
  ...(openAPIV3Schema && { schema: { openAPIV3Schema } }),
});
/** A definition of two versions, of which the second one has the schema. */
const specOf = (schema: object | undefined, more: object = {}): CustomResourceDefinitionSpec =>
  ({ preserveUnknownFields: true, versions: [version("v1", { type: "object" }), version("v2", schema)], ...more }) as never;
const field = (part: object) => ({ type: "object", properties: { a: { type: "array", items: { type: "object", ...part } } } });

for (const { part, wanted } of [
  { part: {}, wanted: false },
  { part: { "x-kubernetes-map-type": "atomic" }, wanted: false },
  { part: { "x-kubernetes-embedded-resource": true }, wanted: true },
  { part: { "x-kubernetes-embedded-resource": false }, wanted: false },
  { part: { "x-kubernetes-int-or-string": true }, wanted: true },
  { part: { "x-kubernetes-list-type": "set" }, wanted: true },
  { part: { "x-kubernetes-list-map-keys": ["k"] }, wanted: true },
  { part: { "x-kubernetes-list-map-keys": [] }, wanted: false },
  { part: { "x-kubernetes-validations": [{ rule: "true" }] }, wanted: true },
  { part: { "x-kubernetes-validations": [] }, wanted: false },
  { part: { "x-kubernetes-preserve-unknown-fields": true }, wanted: true },
  { part: { "x-kubernetes-preserve-unknown-fields": false }, wanted: true },
  { part: { default: {} }, wanted: true },
]) {
  test(`a schema with ${JSON.stringify(part)} ${wanted ? "has" : "need not have"} to be structural where unknown fields are kept`, () => {
    const lenient = { ...strict, structural: false };
    assert.equal(optionsFor(specOf(field(part)), lenient).structural, wanted);
    assert.equal(optionsFor(specOf(field(part), { preserveUnknownFields: false }), lenient).structural, true);
    assert.equal(optionsFor(specOf(field(part)), strict).structural, true);
  });
}

const conversion = (...conversionReviewVersions: string[]) => ({
  conversion: { strategy: "Webhook", webhook: { conversionReviewVersions } },
});
const set = { type: "array", "x-kubernetes-list-type": "set", items: { type: "object" } };
const mapOf = (item: object) => ({
  ...{ type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
  items: { type: "object", properties: { k: { type: "string" } }, ...item },
});
for (const { name, spec, tolerated } of [
  { name: "nothing", spec: specOf(field({})), tolerated: [] },
  { name: "a version without a schema", spec: specOf(undefined), tolerated: ["everySchema"] },
  { name: "a field without a type", spec: specOf({ type: "object", properties: { a: {} } }), tolerated: ["structural"] },
  { name: "an unknown type", spec: specOf(field({ properties: { b: { type: "tape" } } })), tolerated: ["validTypes"] },
  {
    name: "a default that would be pruned",
    spec: specOf(field({ default: { unknown: 1 } })),
    tolerated: ["prunedDefaults"],
  },
  { name: "a default without unknown fields", spec: specOf(field({ default: {} })), tolerated: [] },
  { name: "unknown versions of reviews", spec: specOf(field({}), conversion("v9")), tolerated: ["knownReviewVersion"] },
  { name: "a known version of reviews beside another", spec: specOf(field({}), conversion("v9", "v1")), tolerated: [] },
  { name: "no versions of reviews", spec: specOf(field({}), conversion()), tolerated: [] },
  {
    name: "a set of objects",
    spec: specOf({ type: "object", properties: { a: set } }),
    tolerated: ["atomicSets"],
  },
  {
    name: "a map whose keys are neither required nor have a default",
    spec: specOf({ type: "object", properties: { a: mapOf({}) } }),
    tolerated: ["safeMapKeys"],
  },
  {
    name: "a map whose keys are required",
    spec: specOf({ type: "object", properties: { a: mapOf({ required: ["k"] }) } }),
    tolerated: [],
  },
]) {
  test(`an update of a definition with ${name} tolerates ${tolerated.join(" and ") || "nothing"}`, () => {
    const found = Object.entries(atOnce(leniencyOf(spec))).flatMap(([option, enforced]) => (enforced ? [] : [option]));
    assert.deepEqual(found, tolerated);
  });
}
