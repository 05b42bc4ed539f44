import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import { ruleCheckOf } from "../structural-schema/rules/evaluation.ts";
import type { Schema } from "../structural-schema/schema.ts";
import { errorsOf, prepareUpdate } from "../testing/run-strategy.ts";
import { customResourceStatusStrategy, customResourceStrategy } from "./strategy.ts";

const ctx = {} as StrategyContext;
const scale = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
  labelSelectorPath: ".status.selector",
};
const schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        names: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
        pod: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
        size: { type: "integer", "x-kubernetes-validations": [{ rule: "self < 5", message: "too large" }] },
      },
    },
    status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  },
} as unknown as Schema;
const given = { namespaced: true, schema, hasStatus: true, scale, checkRules: ruleCheckOf(schema) };
const [whole, status] = [customResourceStrategy(given), customResourceStatusStrategy(given)];
const withoutStatus = customResourceStrategy({ ...given, hasStatus: false });

const anObject = (fields: object, metadata: object = {}): Unstructured => ({
  apiVersion: "example.com/v1",
  kind: "Thing",
  metadata: { name: "a", ...metadata },
  ...fields,
});

test("a new object has generation 1, and a status only where there is no subresource for it", () => {
  for (const [strategy, want] of [
    [whole, undefined],
    [withoutStatus, { ready: true }],
  ] as const) {
    const next = anObject({ spec: {}, status: { ready: true } }, { generation: 7 });
    strategy.prepareForCreate?.(next, ctx);
    assert.deepEqual([next["status"], next.metadata.generation], [want, 1]);
  }
});

for (const { name, strategy = whole, change, want } of [
  { name: "of labels keeps the generation", change: { metadata: { name: "a", labels: { a: "b" } } }, want: [4, { n: 1 }] },
  { name: "of the spec raises the generation", change: { spec: { size: 2 } }, want: [5, { n: 1 }] },
  { name: "of another field raises the generation", change: { other: 1 }, want: [5, { n: 1 }] },
  { name: "of the status changes neither status nor generation", change: { status: { n: 2 } }, want: [4, { n: 1 }] },
  { name: "that lacks the status keeps it", change: { status: undefined }, want: [4, { n: 1 }] },
  {
    name: "of the status, where it has no subresource, is stored and raises the generation",
    strategy: withoutStatus,
    change: { status: { n: 2 } },
    want: [5, { n: 2 }],
  },
]) {
  test(`an update ${name}`, () => {
    const current = anObject({ spec: { size: 1 }, status: { n: 1 } }, { generation: 4 });
    const next = { ...structuredClone(current), ...change } as Unstructured;
    prepareUpdate(strategy, next, current, ctx);
    assert.deepEqual([next.metadata.generation, next["status"]], want);
  });
}

test("an update of an object that was stored without status and generation gives it no status", () => {
  const current = anObject({ spec: { size: 1 } });
  const next = anObject({ spec: { size: 2 }, status: { n: 1 } }, { generation: 9 });
  prepareUpdate(whole, next, current, ctx);
  assert.deepEqual([next.metadata.generation, "status" in next], [2, false]);
});

for (const [name, sent, want] of [
  ["is the only thing that an update of the status changes", { n: 2 }, { n: 2 }],
  ["is removed by an update of the status that has none", undefined, undefined],
] as const) {
  test(`the status ${name}`, () => {
    const current = anObject({ spec: { size: 1 }, status: { n: 1 }, kept: true }, { generation: 4, labels: { a: "b" } });
    const next = anObject({ spec: { size: 2 }, other: 1, ...(sent && { status: sent }) }, { labels: { c: "d" } });
    prepareUpdate(status, next, current, ctx);
    const { status: _status, ...others } = current as Unstructured & { status?: unknown };
    assert.deepEqual(next, { ...others, ...(want && { status: want }) });
    assert.notEqual(next.metadata, current.metadata, "the stored object is not shared");
    assert.deepEqual(current["status"], { n: 1 });
  });
}

const fieldsOf = (errors: readonly FieldError[]): string[] => errors.map(({ field }) => field);

for (const { name, next, current, ofStatus, want } of [
  { name: "is valid with the largest number of replicas and without any", next: { spec: {}, status: { replicas: 2 ** 31 - 1 } } },
  {
    name: "has too many replicas, as spec and as status",
    next: { spec: { replicas: 2 ** 31 }, status: { replicas: 2 ** 31 } },
    want: [".spec.replicas", ".status.replicas"],
    ofStatus: [".status.replicas"],
  },
  {
    name: "has fewer than 0 replicas",
    next: { spec: { replicas: -1 }, status: { replicas: -1 } },
    want: [".spec.replicas", ".status.replicas"],
    ofStatus: [".status.replicas"],
  },
  {
    name: "has texts for numbers and a number for its selector",
    next: { spec: { replicas: "1" }, status: { replicas: "1", selector: 1 } },
    want: [".spec.replicas", ".status.replicas", ".status.selector"],
    ofStatus: [".status.replicas", ".status.selector"],
  },
  { name: "has another type than its schema says", next: { spec: 1 }, want: ["spec", ".spec.replicas"], ofStatus: ["spec"] },
  {
    name: "embeds a resource without a kind",
    next: { spec: { pod: { apiVersion: "v1" } } },
    want: ["spec.pod.kind"],
    ofStatus: [],
  },
  { name: "repeats an item", next: { spec: { names: ["a", "a"] } }, want: ["spec.names[1]"] },
  {
    name: "repeats an item that its stored state does not",
    next: { spec: { names: ["a", "a"] } },
    current: { spec: { names: ["a"] } },
    want: ["spec.names[1]"],
  },
  {
    name: "repeats an item as its stored state does",
    next: { spec: { names: ["b", "b"] } },
    current: { spec: { names: ["a", "a"] } },
  },
  { name: "violates a rule", next: { spec: { size: 5 } }, want: ["spec.size"] },
] as { name: string; next: object; current?: object; want?: string[]; ofStatus?: string[] }[]) {
  test(`an object that ${name} has ${want ? "these errors" : "no errors"}`, () => {
    const stored = current && anObject(current);
    assert.deepEqual(fieldsOf(errorsOf(whole, anObject(next), stored, ctx)), want ?? []);
    assert.deepEqual(fieldsOf(errorsOf(status, anObject(next), stored ?? anObject({}), ctx)), ofStatus ?? want ?? []);
  });
}

test("a version without schema, scale and rules checks nothing", () => {
  const loose = customResourceStrategy({ ...given, schema: undefined, scale: undefined, checkRules: undefined });
  assert.deepEqual(errorsOf(loose, anObject({ spec: { replicas: -1, size: 9 } }), undefined, ctx), []);
});

test("an error about the whole object names no field", () => {
  const least = customResourceStrategy({ ...given, schema: { type: "object", minProperties: 9 } as Schema });
  assert.deepEqual(fieldsOf(errorsOf(least, anObject({}), undefined, ctx)), ["<nil>"]);
});
