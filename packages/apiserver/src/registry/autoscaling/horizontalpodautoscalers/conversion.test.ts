import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { conversionsOf } from "../../conversion.ts";
import { autoscalingResources } from "../group.ts";
import { defaultAutoscaler, defaultAutoscalerV1, defaultAutoscalerV2beta1 } from "./defaults.ts";

const resources = autoscalingResources();
const [autoscaler] = resources;
const { convert } = conversionsOf(resources);
// biome-ignore lint/suspicious/noExplicitAny: tests look into every shape.
const inVersion = (object: KubeObject, version: string): any =>
  convert(structuredClone(object), { group: "autoscaling", version });
const prefix = "autoscaling.alpha.kubernetes.io/";

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

test("nothing is lost on the way through v1, which is what is stored; its cpu metric comes last", () => {
  const [cpu, ...others] = (hub as unknown as { spec: { metrics: object[] } }).spec.metrics;
  const back = inVersion(inVersion(hub, "v1"), "v2");
  assert.deepEqual(back, { ...hub, spec: { ...back.spec, metrics: [...others, cpu] } });
  assert.deepEqual(inVersion(inVersion(back, "v1"), "v2"), back);
});

test("nothing is lost on the way through v2beta1 and v2beta2", () => {
  assert.deepEqual(inVersion(inVersion(hub, "v2beta1"), "v2"), hub);
  assert.deepEqual(inVersion(inVersion(hub, "v2beta2"), "v2"), hub);
});

const selector = { matchLabels: { a: "b" }, matchExpressions: [{ key: "c", operator: "In", values: ["d"] }] };
const described = { kind: "Ingress", name: "i", apiVersion: "networking.k8s.io/v1" };

test("metrics with selectors, of containers, all kinds of states and several policies go through each version", () => {
  const percent = { type: "Percent", value: 10, periodSeconds: 60 };
  const all = {
    ...hub,
    spec: {
      scaleTargetRef: { kind: "Deployment", name: "d" },
      maxReplicas: 5,
      metrics: [
        {
          type: "ContainerResource",
          containerResource: { name: "cpu", container: "c", target: { type: "Utilization", averageUtilization: 50 } },
        },
        {
          type: "ContainerResource",
          containerResource: { name: "memory", container: "c", target: { type: "AverageValue", averageValue: "1Gi" } },
        },
        { type: "Pods", pods: { metric: { name: "rps", selector }, target: { type: "AverageValue", averageValue: "10" } } },
        {
          type: "Object",
          object: { describedObject: described, metric: { name: "hits", selector }, target: { type: "Value", value: "100" } },
        },
        { type: "External", external: { metric: { name: "queue", selector }, target: { type: "Value", value: "30" } } },
      ],
      behavior: {
        scaleUp: { stabilizationWindowSeconds: 0, selectPolicy: "Min", policies: [{ ...percent, type: "Pods" }, percent] },
        scaleDown: { policies: [percent] },
      },
    },
    status: {
      currentReplicas: 2,
      desiredReplicas: 3,
      currentMetrics: [
        {
          type: "ContainerResource",
          containerResource: { name: "cpu", container: "c", current: { averageUtilization: 4, averageValue: "5" } },
        },
        { type: "Pods", pods: { metric: { name: "rps", selector }, current: { averageValue: "6" } } },
        {
          type: "Object",
          object: { describedObject: described, metric: { name: "hits", selector }, current: { value: "7", averageValue: "8" } },
        },
        { type: "External", external: { metric: { name: "queue", selector }, current: { value: "9", averageValue: "10" } } },
      ],
      conditions: [
        { type: "AbleToScale", status: "True" },
        { type: "ScalingActive", status: "False" },
      ],
    },
  } as unknown as KubeObject;
  for (const version of ["v1", "v2beta1", "v2beta2"]) {
    const back = inVersion(inVersion(all, version), "v2");
    // Times that are not set have a form of their own in annotations.
    back.status.conditions = back.status.conditions.map(({ type, status }: { type: string; status: string }) => ({
      type,
      status,
    }));
    assert.deepEqual(back, all, version);
  }
});

test("v1 has no place for a second share of cpu, nor for one after an amount of cpu", () => {
  const cpu = (target: object) => ({ type: "Resource", resource: { name: "cpu", target } });
  const share = (averageUtilization: number) => cpu({ type: "Utilization", averageUtilization });
  const amount = cpu({ type: "AverageValue", averageValue: "2" });
  for (const { metrics, percent, back } of [
    { metrics: [share(50), share(60)], percent: 50, back: [share(50)] },
    { metrics: [amount, share(60)], percent: undefined, back: [amount] },
    { metrics: [share(60), amount], percent: 60, back: [amount, share(60)] },
  ]) {
    const v1 = inVersion({ ...hub, spec: { maxReplicas: 1, metrics } } as unknown as KubeObject, "v1");
    assert.equal(v1.spec.targetCPUUtilizationPercentage, percent);
    assert.deepEqual(inVersion(v1, "v2").spec.metrics, back);
  }
});

test("the annotations of older versions mean nothing in v2 and v2beta2, and are dropped", () => {
  const annotations = {
    [`${prefix}metrics`]: "[]",
    [`${prefix}current-metrics`]: "",
    [`${prefix}conditions`]: "",
    [`${prefix}behavior`]: "",
  };
  for (const version of ["v2", "v2beta2"]) {
    const object = {
      ...hub,
      apiVersion: `autoscaling/${version}`,
      metadata: { name: "h", annotations: { ...annotations, mine: "stays" } },
    };
    const read = autoscaler?.versions.find((one) => one.version === version)?.toHub?.(structuredClone(object) as KubeObject);
    assert.deepEqual(read?.metadata.annotations, { mine: "stays" });
    for (const to of ["v1", "v2beta1"]) {
      const { metadata } = inVersion(inVersion({ ...object, spec: { maxReplicas: 1 } } as unknown as KubeObject, to), "v2");
      assert.deepEqual(metadata.annotations, { mine: "stays" });
    }
  }
});

test("v1 shows the first cpu metric in its fields and all but cpu in annotations, as upstream writes them", () => {
  const { metadata, spec, status } = inVersion(hub, "v1");
  assert.equal(spec.targetCPUUtilizationPercentage, 50);
  assert.equal(status.currentCPUUtilizationPercentage, 40);
  assert.deepEqual(metadata.annotations, {
    mine: "stays",
    [`${prefix}metrics`]:
      '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},' +
      '{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}},' +
      '{"type":"Object","object":{"target":{"kind":"Ingress","name":"i"},"metricName":"hits","targetValue":"100"}},' +
      '{"type":"External","external":{"metricName":"queue","metricSelector":{"matchLabels":{"a":"b"}},"targetAverageValue":"30"}}]',
    [`${prefix}current-metrics`]:
      '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"40m"}}]',
    [`${prefix}conditions`]:
      '[{"type":"AbleToScale","status":"True","lastTransitionTime":"2022-01-01T00:00:00Z","reason":"R","message":"m"}]',
    [`${prefix}behavior`]:
      '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Max",' +
      '"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":15}]}}',
  });
});

for (const { name, flat, want } of [
  {
    name: "an object's average value makes its target one of that type, and keeps the value",
    flat: { type: "Object", object: { target: { kind: "S", name: "s" }, metricName: "m", targetValue: "5", averageValue: "3" } },
    want: { type: "AverageValue", value: "5", averageValue: "3" },
  },
  {
    name: "an external metric with a value has a target of that type",
    flat: { type: "External", external: { metricName: "m", targetValue: "5", targetAverageValue: "3" } },
    want: { type: "Value", value: "5", averageValue: "3" },
  },
  {
    name: "a resource with a percentage has a target of that type",
    flat: { type: "Resource", resource: { name: "memory", targetAverageUtilization: 7, targetAverageValue: "3" } },
    want: { type: "Utilization", averageUtilization: 7, averageValue: "3" },
  },
  {
    name: "a resource of a container with a percentage has a target of that type",
    flat: {
      type: "ContainerResource",
      containerResource: { name: "memory", container: "c", targetAverageUtilization: 7, targetAverageValue: "3" },
    },
    want: { type: "Utilization", averageUtilization: 7, averageValue: "3" },
  },
]) {
  test(name, () => {
    const old = { ...hub, apiVersion: "autoscaling/v2beta1", spec: { scaleTargetRef: {}, maxReplicas: 1, metrics: [flat] } };
    const [metric] = inVersion(old, "v2").spec.metrics;
    assert.deepEqual(metric[flat.type.charAt(0).toLowerCase() + flat.type.slice(1)].target, want);
  });
}

for (const text of ["{", "[1]", '[{"type":3}]', '{"a":1}']) {
  test(`an annotation of metrics that is ${text} is ignored, and dropped`, () => {
    const v1 = {
      apiVersion: "autoscaling/v1",
      kind: "HorizontalPodAutoscaler",
      metadata: {
        name: "h",
        annotations: Object.fromEntries([
          ...["metrics", "current-metrics", "behavior"].map((name) => [prefix + name, text]),
          ["mine", "stays"],
        ]),
      },
      spec: { scaleTargetRef: {}, maxReplicas: 1 },
      status: { currentReplicas: 0, desiredReplicas: 0, currentCPUUtilizationPercentage: 7 },
    } as unknown as KubeObject;
    const { metadata, spec, status } = inVersion(v1, "v2");
    assert.deepEqual(status.currentMetrics, [
      { type: "Resource", resource: { name: "cpu", current: { averageUtilization: 7 } } },
    ]);
    assert.deepEqual(spec.metrics, [
      { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
    ]);
    assert.equal(spec.behavior, undefined);
    assert.deepEqual(metadata.annotations, { mine: "stays" });
  });
}

test("v1 shows the last of several present cpu metrics", () => {
  const currentMetrics = [40, 60].map((averageUtilization) => ({
    type: "Resource",
    resource: { name: "cpu", current: { averageUtilization, averageValue: "1" } },
  }));
  const { status } = inVersion(
    { ...hub, status: { currentReplicas: 2, desiredReplicas: 3, currentMetrics } } as KubeObject,
    "v1",
  );
  assert.equal(status.currentCPUUtilizationPercentage, 60);
});

test("a target in v1 alone is a cpu metric, and annotations of others under the same prefix stay", () => {
  const annotations = { [`${prefix}mine`]: "stays", [`${prefix}metrics`]: "[]" };
  const v1 = {
    apiVersion: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "h", annotations },
    spec: { scaleTargetRef: {}, maxReplicas: 1, targetCPUUtilizationPercentage: 30 },
  } as unknown as KubeObject;
  const { metadata, spec } = inVersion(v1, "v2");
  assert.deepEqual(spec.metrics, [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 30 } } },
  ]);
  assert.deepEqual(metadata.annotations, { [`${prefix}mine`]: "stays" });
});

test("what the rules of one direction leave open, and the other direction, get defaults", () => {
  const autoscaler = structuredClone(hub) as unknown as HorizontalPodAutoscaler;
  autoscaler.spec.behavior = { scaleDown: { stabilizationWindowSeconds: 60 } };
  defaultAutoscaler(autoscaler);
  const percent = { type: "Percent", value: 100, periodSeconds: 15 };
  assert.deepEqual(autoscaler.spec.behavior, {
    scaleUp: {
      stabilizationWindowSeconds: 0,
      selectPolicy: "Max",
      policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, percent],
    },
    scaleDown: { stabilizationWindowSeconds: 60, selectPolicy: "Max", policies: [percent] },
  });
});

test("v1 and v2beta1 get a minimum of one; a metric that is missing is cpu in v2beta1, and in v1 only after its conversion", () => {
  const cpu = { type: "Resource", resource: { name: "cpu", targetAverageUtilization: 80 } };
  const pods = { type: "Pods", pods: { metricName: "m", targetAverageValue: "1" } };
  for (const { given, v1, v2beta1 } of [
    { given: {}, v1: { minReplicas: 1 }, v2beta1: { minReplicas: 1, metrics: [cpu] } },
    { given: { minReplicas: 0, metrics: [] }, v1: { minReplicas: 0, metrics: [] }, v2beta1: { minReplicas: 0, metrics: [cpu] } },
    {
      given: { minReplicas: 3, metrics: [pods] },
      v1: { minReplicas: 3, metrics: [pods] },
      v2beta1: { minReplicas: 3, metrics: [pods] },
    },
  ]) {
    const [one, other] = [structuredClone({ spec: given }), structuredClone({ spec: given })];
    defaultAutoscalerV1(one as never);
    defaultAutoscalerV2beta1(other as never);
    assert.deepEqual([one.spec, other.spec], [v1, v2beta1]);
  }
});
