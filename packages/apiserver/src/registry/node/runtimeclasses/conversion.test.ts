import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimeClassFromV1, runtimeClassToV1 } from "./conversion.ts";

const metadata = { name: "r", labels: { a: "b" } };
const overhead = { podFixed: { cpu: "1" } };
const scheduling = { nodeSelector: { a: "b" } };

for (const { name, v1, v1alpha1 } of [
  { name: "a handler alone", v1: { handler: "h" }, v1alpha1: { runtimeHandler: "h" } },
  {
    name: "overhead and places",
    v1: { handler: "h", overhead, scheduling },
    v1alpha1: { runtimeHandler: "h", overhead, scheduling },
  },
]) {
  test(`${name} of a runtime class are in the spec in v1alpha1`, () => {
    const now = { kind: "RuntimeClass", apiVersion: "node.k8s.io/v1", metadata, ...v1 };
    const old = { kind: "RuntimeClass", apiVersion: "node.k8s.io/v1alpha1", metadata, spec: v1alpha1 };
    assert.deepEqual(runtimeClassFromV1(now), old);
    assert.deepEqual(runtimeClassToV1(old), now);
  });
}

test("a class of v1alpha1 without a spec has no handler", () => {
  assert.deepEqual(runtimeClassToV1({ metadata }), { apiVersion: "node.k8s.io/v1", metadata, handler: "" });
});
