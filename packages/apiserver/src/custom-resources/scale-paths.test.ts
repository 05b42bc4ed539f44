import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import { numberAt, scalePathsOf, textAt } from "./scale-paths.ts";
import { customResourceStrategy } from "./strategy.ts";

const object = {
  metadata: {},
  spec: {
    replicas: 3,
    large: 9007199254740993n,
    half: 0.5,
    text: "a=b",
    list: [1, "x"],
    nothing: null,
    flag: true,
    map: { b: [null], a: { c: "d" } },
    inner: { deep: { replicas: 4 } },
  },
} as unknown as KubeObject;

for (const { path, want } of [
  { path: ".spec.replicas", want: { value: 3 } },
  { path: ".spec.inner.deep.replicas", want: { value: 4 } },
  { path: ".spec.large", want: { value: 9007199254740993n } },
  { path: ".spec.absent", want: {} },
  { path: ".absent.replicas", want: {} },
  { path: ".spec.nothing.replicas", want: {} },
  { path: ".spec.half", want: { fault: ".spec.half accessor error: 0.5 is of the type float64, expected int64" } },
  { path: ".spec.text", want: { fault: ".spec.text accessor error: a=b is of the type string, expected int64" } },
  { path: ".spec.flag", want: { fault: ".spec.flag accessor error: true is of the type bool, expected int64" } },
  { path: ".spec.nothing", want: { fault: ".spec.nothing accessor error: <nil> is of the type <nil>, expected int64" } },
  {
    path: ".spec.map",
    want: {
      fault: ".spec.map accessor error: map[a:map[c:d] b:[<nil>]] is of the type map[string]interface {}, expected int64",
    },
  },
  {
    path: ".spec.list.replicas",
    want: { fault: ".spec.list.replicas accessor error: [1 x] is of the type []interface {}, expected map[string]interface{}" },
  },
  { path: ".spec.list", want: { fault: ".spec.list accessor error: [1 x] is of the type []interface {}, expected int64" } },
  {
    path: ".spec.inner",
    want: {
      fault: ".spec.inner accessor error: map[deep:map[replicas:4]] is of the type map[string]interface {}, expected int64",
    },
  },
  {
    path: ".spec.text.inner.replicas",
    want: { fault: ".spec.text.inner accessor error: a=b is of the type string, expected map[string]interface{}" },
  },
])
  test(`the number at ${path} of an object`, () => assert.deepEqual(numberAt(object, path), want));

test("a selector is a text", () => {
  assert.deepEqual(textAt(object, ".spec.text"), { value: "a=b" });
  assert.deepEqual(textAt(object, ".spec.replicas"), {
    fault: ".spec.replicas accessor error: 3 is of the type int64, expected string",
  });
});

test("a scale is read when both counts are numbers and the desired one is present", () => {
  const check = (specReplicasPath: string, statusReplicasPath: string) => () =>
    scalePathsOf({ specReplicasPath, statusReplicasPath }).checkRead?.(object);
  assert.doesNotThrow(check(".spec.replicas", ".status.replicas"));
  assert.throws(check(".spec.absent", ".status.replicas"), /the spec replicas field "spec.absent" does not exist/);
  assert.throws(check(".spec.text", ".status.replicas"), /\.spec\.text accessor error/);
  assert.throws(check(".spec.replicas", ".spec.text"), /\.spec\.text accessor error/);
});

test("a selector that is not requested, or not there, is empty", () => {
  const paths = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  assert.equal(scalePathsOf(paths).selector?.(object), "");
  assert.equal(scalePathsOf({ ...paths, labelSelectorPath: ".spec.absent" }).selector?.(object), "");
  assert.equal(scalePathsOf({ ...paths, labelSelectorPath: ".spec.text" }).selector?.(object), "a=b");
});

test("a number beyond 2^53 is an integer, and more than a scale takes", () => {
  const scale = { specReplicasPath: ".spec.large", statusReplicasPath: ".status.replicas" };
  const input = { namespaced: true, schema: undefined, hasStatus: true, scale, checkRules: undefined };
  const steps = customResourceStrategy(input).validateInSteps?.(object as Unstructured, undefined, {} as StrategyContext);
  assert.ok(steps);
  assert.equal(
    formatFieldErrors(atOnce(steps)),
    ".spec.large: Invalid value: 9007199254740993: should be less than or equal to 2147483647",
  );
});
