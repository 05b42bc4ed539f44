import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { autoscalerFromV2beta1, autoscalerToV1, autoscalerToV2beta1, autoscalerV1ToV2 } from "./conversion.ts";

const hub = {
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: "h", annotations: { mine: "stays" } },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" },
    minReplicas: 2,
    maxReplicas: 5,
    metrics: [
      { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } },
      { type: "Resource", resource: { name: "memory", target: { type: "AverageValue", averageValue: "1Gi" } } },
      { type: "Pods", pods: { metric: { name: "rps" }, target: { type: "AverageValue", averageValue: "10" } } },
      {
        type: "Object",
        object: {
          describedObject: { kind: "Ingress", name: "i" },
          metric: { name: "hits" },
          target: { type: "Value", value: "100" },
        },
      },
      {
        type: "External",
        external: {
          metric: { name: "queue", selector: { matchLabels: { a: "b" } } },
          target: { type: "AverageValue", averageValue: "30" },
        },
      },
    ],
    behavior: {
      scaleDown: {
        stabilizationWindowSeconds: 60,
        selectPolicy: "Max",
        policies: [{ type: "Pods", value: 1, periodSeconds: 15 }],
      },
    },
  },
  status: {
    currentReplicas: 2,
    desiredReplicas: 3,
    currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 40, averageValue: "40m" } } }],
    conditions: [{ type: "AbleToScale", status: "True", reason: "R", message: "m", lastTransitionTime: "2022-01-01T00:00:00Z" }],
  },
} as unknown as KubeObject;

test("nothing is lost on the way through v1, which is what is stored", () => {
  assert.deepEqual(autoscalerV1ToV2(autoscalerToV1(hub)), hub);
});

test("nothing is lost on the way through v2beta1", () => {
  assert.deepEqual(autoscalerFromV2beta1(autoscalerToV2beta1(hub)), hub);
});

test("v1 shows cpu in its fields and the rest in annotations", () => {
  const v1 = autoscalerToV1(hub) as KubeObject & { spec: Record<string, unknown>; status: Record<string, unknown> };
  assert.equal(v1.spec["targetCPUUtilizationPercentage"], 50);
  assert.equal(v1.status["currentCPUUtilizationPercentage"], 40);
  assert.deepEqual(Object.keys(v1.metadata.annotations ?? {}).sort(), [
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/metrics",
    "mine",
  ]);
});

test("an annotation that is no JSON is ignored", () => {
  const v1 = {
    metadata: { name: "h", annotations: { "autoscaling.alpha.kubernetes.io/metrics": "{" } },
    spec: { scaleTargetRef: {}, maxReplicas: 1 },
  } as unknown as KubeObject;
  const { spec } = autoscalerV1ToV2(v1) as unknown as { spec: { metrics: unknown[] } };
  assert.deepEqual(spec.metrics, [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
  ]);
});
