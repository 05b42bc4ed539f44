import assert from "node:assert/strict";
import { test } from "node:test";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { newStatus } from "./status.ts";

const now = Date.parse("2022-01-01T00:01:00Z");
const before = "2022-01-01T00:00:00Z";
const known = (type: string, status: string) => ({ type, status, reason: "Old", message: "old", lastTransitionTime: before });
const draftOf = (status: object | undefined) =>
  newStatus({ metadata: {}, ...(status && { status }) } as HorizontalPodAutoscaler, now);

test("a condition keeps its place, and its time while its status stays; a new one is the last", () => {
  const draft = draftOf({ conditions: [known("AbleToScale", "True"), known("ScalingActive", "True")] });
  draft.condition("ScalingLimited", "False", "DesiredWithinRange", "within");
  draft.condition("AbleToScale", "True", "ReadyForNewScale", "ready");
  draft.condition("ScalingActive", "False", "Old", "failed");
  const at = "2022-01-01T00:01:00Z";
  assert.deepEqual(draft.status().conditions, [
    { type: "AbleToScale", status: "True", reason: "ReadyForNewScale", message: "ready", lastTransitionTime: before },
    { type: "ScalingActive", status: "False", reason: "Old", message: "failed", lastTransitionTime: at },
    { type: "ScalingLimited", status: "False", reason: "DesiredWithinRange", message: "within", lastTransitionTime: at },
  ]);
});

test("what is not found anew stays as it was stored; nothing stored is no replicas and no metrics", () => {
  const metrics = [{ type: "" }];
  const stored = { currentReplicas: 2, desiredReplicas: 4, currentMetrics: metrics, lastScaleTime: before };
  const draft = draftOf(stored);
  draft.currentReplicas(3);
  assert.deepEqual(draft.status(), { ...stored, currentReplicas: 3 });
  draft.replicas(3, 5, []);
  draft.rescaled("2022-01-01T00:01:00Z");
  assert.deepEqual(draft.status(), {
    ...{ currentReplicas: 3, desiredReplicas: 5, currentMetrics: [] },
    lastScaleTime: "2022-01-01T00:01:00Z",
  });
  assert.deepEqual(draftOf(undefined).status(), { desiredReplicas: 0, currentMetrics: [] });
});
