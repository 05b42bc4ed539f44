import assert from "node:assert/strict";
import { test } from "node:test";
import type { SubresourceCall } from "../../generic/resource.ts";
import { createPodBinding } from "./binding.ts";
import { createEviction } from "./eviction.ts";

/** Validation that happens before the pod is read. */
const call = (body: object | undefined): SubresourceCall =>
  ({ body, name: "p", namespace: "default", admit: async () => {} }) as unknown as SubresourceCall;

for (const { name, run, want } of [
  { name: "a binding of nothing", run: () => createPodBinding(call(undefined)), want: "not a Binding object" },
  {
    name: "a binding of another pod",
    run: () => createPodBinding(call({ metadata: { name: "q" }, target: { name: "n" } })),
    want: "name in URL does not match name in Binding object",
  },
  {
    name: "a binding to no node",
    run: () => createPodBinding(call({ metadata: { name: "p" }, target: {} })),
    want: "target.name: Required value",
  },
  {
    name: "a binding to what is no node",
    run: () => createPodBinding(call({ metadata: { name: "p" }, target: { kind: "Pod" } })),
    want: '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
  },
  { name: "an eviction of nothing", run: () => createEviction(call(undefined)), want: "not a Eviction object" },
  {
    name: "an eviction of another pod",
    run: () => createEviction(call({ metadata: { name: "q" } })),
    want: "name in URL does not match name in Eviction object",
  },
]) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(run, { message: want });
  });
}
