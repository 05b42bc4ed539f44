import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "../../meta/types.ts";
import { newScaleEntries } from "./scale-entries.ts";

const scale = newScaleEntries("apps/v1", "autoscaling/v1", ".spec.replicas");
const entry = (
  manager: string,
  fieldsV1: Record<string, unknown>,
  more: Partial<ManagedFieldsEntry> = {},
): ManagedFieldsEntry => ({
  manager,
  operation: "Update",
  apiVersion: "apps/v1",
  time: "2022-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1,
  ...more,
});
const replicas = { "f:spec": { "f:replicas": {} } };
const parent = [
  entry("a", { "f:spec": { "f:paused": {}, "f:replicas": {} } }, { operation: "Apply" }),
  entry("b", { "f:spec": { "f:paused": {} } }),
  entry("c", replicas),
];

test("owners of the replicas are the owners of the scale", () => {
  assert.deepEqual(scale.toScale(parent), [
    entry("a", replicas, { operation: "Apply", apiVersion: "autoscaling/v1" }),
    entry("c", replicas, { apiVersion: "autoscaling/v1" }),
  ]);
  assert.equal(scale.toScale([parent[1] as ManagedFieldsEntry]), undefined);
});

test("a write of the scale takes the ownership of replicas, and only that, from the other managers", () => {
  const written = [entry("kubectl", replicas, { apiVersion: "autoscaling/v1", subresource: "scale" })];
  const { time: _, ...taken } = entry("kubectl", replicas, { subresource: "scale" });
  assert.deepEqual(scale.toParent(parent, written), [
    entry("a", { "f:spec": { "f:paused": {} } }, { operation: "Apply" }),
    taken,
    entry("b", { "f:spec": { "f:paused": {} } }),
  ]);
});

test("a scale that was not changed leaves the entries as they were", () => {
  assert.deepEqual(scale.toParent(parent, scale.toScale(parent)), parent);
});
