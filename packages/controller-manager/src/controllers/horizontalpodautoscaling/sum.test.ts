import assert from "node:assert/strict";
import { test } from "node:test";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { sumOf } from "./sum.ts";

const spec = {
  maxReplicas: 9,
  metrics: [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } },
    { type: "Pods", pods: { metric: { name: "qps" }, target: { type: "AverageValue", averageValue: "10" } } },
    { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "5" } } },
  ],
};
const condition = (type: string, status: string, reason: string) => ({ type, status, reason, message: `why ${reason}` });

function summary(status: object) {
  const { verdict, reason, description } = sumOf({ spec } as HorizontalPodAutoscaler, { desiredReplicas: 4, ...status } as never);
  return { verdict, reason, text: (description as () => { summary: string })().summary };
}

test("each metric stands beside its own target, also after one that failed", () => {
  const currentMetrics = [
    { type: "" },
    { type: "Pods", pods: { metric: { name: "qps" }, current: { averageValue: "20" } } },
    { type: "External", external: { metric: { name: "queue" }, current: { value: "7" } } },
  ];
  assert.deepEqual(summary({ currentReplicas: 2, currentMetrics }), {
    ...{ verdict: "done", reason: "Computed" },
    text: "has 2 replicas and wants 4, of 1 to 9; qps 20 on average, target 10 on average; queue 7, target 5",
  });
});

test("an autoscaler that is not active waits, with that reason, whatever limits it", () => {
  const conditions = [
    condition("ScalingLimited", "True", "TooManyReplicas"),
    condition("ScalingActive", "False", "FailedGetResourceMetric"),
  ];
  assert.deepEqual(summary({ conditions, currentMetrics: [] }), {
    ...{ verdict: "waiting", reason: "FailedGetResourceMetric" },
    text: "has 0 replicas and wants 4, of 1 to 9; why FailedGetResourceMetric; why TooManyReplicas",
  });
});

test("the stabilization of growth is told, and the least number of replicas that is wanted", () => {
  const { description } = sumOf(
    { spec: { ...spec, minReplicas: 3 } } as HorizontalPodAutoscaler,
    { desiredReplicas: 4, conditions: [condition("AbleToScale", "True", "ScaleUpStabilized")] } as never,
  );
  const { summary: text } = (description as () => { summary: string })();
  assert.equal(text, "has 0 replicas and wants 4, of 3 to 9; why ScaleUpStabilized");
});

test("only a limit that holds, and a stabilization, are told", () => {
  const conditions = [
    condition("AbleToScale", "True", "ScaleDownStabilized"),
    condition("ScalingActive", "True", "ValidMetricFound"),
    condition("ScalingLimited", "False", "DesiredWithinRange"),
  ];
  assert.deepEqual(summary({ conditions, currentMetrics: [] }), {
    ...{ verdict: "done", reason: "Computed" },
    text: "has 0 replicas and wants 4, of 1 to 9; why ScaleDownStabilized",
  });
});

test("a condition without a message adds nothing", () => {
  for (const [type, status, reason] of [
    ["ScalingActive", "False", "FailedGetScale"],
    ["ScalingLimited", "True", "TooManyReplicas"],
    ["AbleToScale", "True", "ScaleDownStabilized"],
    ["AbleToScale", "True", "ScaleUpStabilized"],
  ] as const)
    assert.equal(summary({ conditions: [{ type, status, reason }] }).text, "has 0 replicas and wants 4, of 1 to 9", reason);
});

test("what is not known of a metric is a question mark", () => {
  const currentMetrics = [
    { type: "Resource", resource: { name: "cpu", current: {} } },
    { type: "Pods", pods: { metric: { name: "qps" }, current: {} } },
    { type: "External", external: { current: {} } },
  ];
  assert.equal(
    summary({ currentMetrics }).text,
    "has 0 replicas and wants 4, of 1 to 9; cpu ?% of the requests, target 50% of the requests; qps ? on average, target 10 on average; external ?, target 5",
  );
});
