import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricSpec } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { cpu, measure, replicasOf, started, statusOf } from "../../testing/autoscaling.ts";
import type { TestContext } from "../../testing/test-context.ts";
import { selectorText } from "./proposals.ts";

const value = (text: string, name = "x") => ({ describedObject: { name }, timestamp: "2024-01-01T00:00:00Z", value: text });
const custom = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default";
function serveCustom({ client }: TestContext, path: string, answer: object): void {
  const { rawAnswers } = client;
  const apis = rawAnswers.get("/apis") as { groups: object[] };
  rawAnswers.set("/apis", {
    groups: [
      ...apis.groups,
      {
        name: "custom.metrics.k8s.io",
        versions: [{ version: "v1beta1" }, { version: "v1beta2" }],
        preferredVersion: { version: "v1beta2" },
      },
    ],
  });
  rawAnswers.set("/apis/custom.metrics.k8s.io/v1beta1", { resources: [] });
  rawAnswers.set("/apis/custom.metrics.k8s.io/v1beta2", { resources: [] });
  rawAnswers.set(path, answer);
}
const described = { apiVersion: "v1", kind: "Service", name: "front" };
for (const { name, metric, serve, want, reason, current } of [
  {
    name: "an average of a resource",
    metric: { type: "Resource", resource: { name: "cpu", target: { type: "AverageValue", averageValue: "200m" } } },
    serve: (world: TestContext) => measure(world, { cpu: "400m" }, { cpu: "400m" }, { cpu: "400m" }),
    want: 6,
    reason: "cpu resource",
    current: { resource: { name: "cpu", current: { averageValue: "400m" } } },
  },
  {
    name: "an average of a resource, whatever utilization stands beside it",
    metric: {
      type: "Resource",
      resource: { name: "cpu", target: { type: "AverageValue", averageValue: "200m", averageUtilization: 90 } },
    },
    serve: (world: TestContext) => measure(world, { cpu: "400m" }, { cpu: "400m" }, { cpu: "400m" }),
    want: 6,
    reason: "cpu resource",
    current: { resource: { name: "cpu", current: { averageValue: "400m" } } },
  },
  {
    name: "a container's share",
    metric: {
      type: "ContainerResource",
      containerResource: { name: "cpu", container: "main", target: { type: "Utilization", averageUtilization: 20 } },
    },
    serve: (world: TestContext) => measure(world, { cpu: "400m" }, { cpu: "400m" }, { cpu: "400m" }),
    want: 6,
    reason: "cpu resource utilization (percentage of request)",
    current: { containerResource: { name: "cpu", container: "main", current: { averageUtilization: 40, averageValue: "400m" } } },
  },
  {
    name: "a metric of the pods",
    metric: { type: "Pods", pods: { metric: { name: "qps" }, target: { type: "AverageValue", averageValue: "10" } } },
    serve: (world: TestContext) =>
      serveCustom(world, `${custom}/pods/*/qps`, { items: [value("20", "p0"), value("20", "p1"), value("20500m", "p2")] }),
    want: 6,
    reason: "pods metric qps",
    current: { pods: { metric: { name: "qps" }, current: { averageValue: "20166m" } } },
  },
  {
    name: "another object's value",
    metric: {
      type: "Object",
      object: { metric: { name: "hits" }, describedObject: described, target: { type: "Value", value: "10" } },
    },
    serve: (world: TestContext) => serveCustom(world, `${custom}/services/front/hits`, { items: [value("20")] }),
    want: 6,
    reason: "Service metric hits",
    current: { object: { metric: { name: "hits" }, describedObject: described, current: { value: "20" } } },
  },
  {
    name: "another object's value, shared",
    metric: {
      type: "Object",
      object: { metric: { name: "hits" }, describedObject: described, target: { type: "AverageValue", averageValue: "4" } },
    },
    serve: (world: TestContext) => serveCustom(world, `${custom}/services/front/hits`, { items: [value("20")] }),
    want: 5,
    reason: "external metric hits(nil)",
    current: {
      object: { metric: { name: "hits" }, describedObject: { kind: "", name: "" }, current: { averageValue: "6667m" } },
    },
  },
  {
    name: "another object's value, beside an average that its type does not mean",
    metric: {
      type: "Object",
      object: {
        metric: { name: "hits" },
        describedObject: described,
        target: { type: "Value", value: "10", averageValue: "4" },
      },
    },
    serve: (world: TestContext) => serveCustom(world, `${custom}/services/front/hits`, { items: [value("20")] }),
    want: 6,
    reason: "Service metric hits",
    current: { object: { metric: { name: "hits" }, describedObject: described, current: { value: "20" } } },
  },
  {
    name: "a value from outside",
    metric: { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } } },
    serve: ({ client }: TestContext) =>
      client.rawAnswers.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", {
        items: [value("12"), value("8")],
      }),
    want: 6,
    reason: "external metric queue(nil)",
    current: { external: { metric: { name: "queue" }, current: { value: "20" } } },
  },
  {
    name: "a value from outside, shared",
    metric: { type: "External", external: { metric: { name: "queue" }, target: { type: "AverageValue", averageValue: "4" } } },
    serve: ({ client }: TestContext) =>
      client.rawAnswers.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", {
        items: [value("12"), value("8")],
      }),
    want: 5,
    reason: "external metric queue(nil)",
    current: { external: { metric: { name: "queue" }, current: { averageValue: "6667m" } } },
  },
  {
    name: "a value from outside, shared whatever its type",
    metric: { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", averageValue: "4" } } },
    serve: ({ client }: TestContext) =>
      client.rawAnswers.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", {
        items: [value("12"), value("8")],
      }),
    want: 5,
    reason: "external metric queue(nil)",
    current: { external: { metric: { name: "queue" }, current: { averageValue: "6667m" } } },
  },
]) {
  test(`scales by ${name}`, async (t) => {
    const world = await started(t, { metrics: [metric] }, { prepare: serve });
    assert.deepEqual(world.events, [`Normal SuccessfulRescale New size: ${want}; reason: ${reason} above target`]);
    assert.equal(replicasOf(world), want);
    assert.deepEqual(statusOf(world)?.currentMetrics, [{ type: metric.type, ...current }]);
  });
}

for (const { name, metric, reason, message, prepare } of [
  {
    name: "there is no API of custom metrics",
    metric: { type: "Pods", pods: { metric: { name: "qps" }, target: { type: "AverageValue", averageValue: "10" } } },
    reason: "FailedGetPodsMetric",
    message:
      "unable to get metric qps: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
  },
  {
    name: "the described object's kind is unknown",
    metric: {
      type: "Object",
      object: {
        metric: { name: "hits" },
        describedObject: { apiVersion: "x.io/v1", kind: "Thing", name: "a" },
        target: { type: "Value", value: "1" },
      },
    },
    reason: "FailedGetObjectMetric",
    message:
      'unable to get metric hits: Thing on default a/unable to fetch metrics from custom metrics API: unable to map kind Thing.x.io to resource: no matches for kind "Thing" in group "x.io"',
    prepare: (world: TestContext) => serveCustom(world, "/unused", {}),
  },
  ...[
    { type: "Utilization", averageValue: "4", value: "4" },
    { type: "Value", averageValue: "4" },
    { type: "AverageValue", value: "4" },
  ].map((target) => ({
    name: `an object's target is ${JSON.stringify(target)}`,
    metric: { type: "Object", object: { metric: { name: "hits" }, describedObject: described, target } },
    reason: "FailedGetObjectMetric",
    message: "invalid object metric source: neither a value target nor an average value target was set",
    prepare: (world: TestContext) => serveCustom(world, `${custom}/services/front/hits`, { items: [value("20")] }),
  })),
  {
    name: "a resource has no target",
    metric: { type: "Resource", resource: { name: "cpu", target: { type: "Utilization" } } },
    reason: "FailedGetResourceMetric",
    message: "invalid resource metric source: neither a utilization target nor a value target was set",
  },
  {
    name: "a container has no target",
    metric: {
      type: "ContainerResource",
      containerResource: { name: "cpu", container: "main", target: { type: "AverageValue" } },
    },
    reason: "FailedGetContainerResourceMetric",
    message: "invalid resource metric source: neither a utilization target nor a value target was set",
  },
  {
    name: "a container is not measured",
    metric: {
      type: "ContainerResource",
      containerResource: { name: "cpu", container: "main", target: { type: "Utilization", averageUtilization: 20 } },
    },
    reason: "FailedGetContainerResourceMetric",
    message:
      "failed to get cpu utilization: unable to get metrics for resource cpu: failed to get container metrics: container main not present in metrics for pod default/p0",
    prepare: (world: TestContext) => measure(world, { cpu: "1", container: "side" }),
  },
  {
    name: "nothing is measured",
    metric: cpu(50),
    reason: "FailedGetResourceMetric",
    message:
      "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API",
    prepare: (world: TestContext) => measure(world),
  },
]) {
  test(`says so when ${name}`, async (t) => {
    const world = await started(t, { metrics: [metric] }, { prepare: prepare ?? (() => {}) });
    assert.equal(world.events[0], `Warning ${reason} ${message}`);
    assert.equal(replicasOf(world), 3);
  });
}

test("selectors are shown as Go prints them", () => {
  assert.equal(
    selectorText({ matchLabels: { b: "2", a: "1" }, matchExpressions: [{ key: "k", operator: "In", values: ["x", "y"] }] }),
    "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
  );
});

for (const { what, metric, message } of [
  {
    what: "an object's value",
    metric: {
      type: "Object",
      object: { metric: { name: "hits" }, describedObject: described, target: { type: "Value", value: "1" } },
    },
    message: "failed to get object metric value: ",
  },
  {
    what: "an object's value, shared,",
    metric: {
      type: "Object",
      object: { metric: { name: "hits" }, describedObject: described, target: { type: "AverageValue", averageValue: "1" } },
    },
    message: "failed to get object metric value: failed to get hits object metric: ",
  },
  {
    what: "a value from outside",
    metric: { type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } } },
    message: "failed to get queue external metric value: failed to get queue external metric: ",
  },
  {
    what: "a metric of the pods",
    metric: { type: "Pods", pods: { metric: { name: "qps" }, target: { type: "AverageValue", averageValue: "10" } } },
    message: "failed to get pods metric value: ",
  },
  { what: "a resource", metric: cpu(50), message: "failed to get cpu resource metric value: " },
  {
    what: "a container's share",
    metric: {
      type: "ContainerResource",
      containerResource: { name: "cpu", container: "main", target: { type: "Utilization", averageUtilization: 20 } },
    },
    message: "failed to get main container metric value: ",
  },
] satisfies { what: string; metric: MetricSpec; message: string }[]) {
  test(`the event of a failure to get ${what} says what failed`, async (t) => {
    const { events } = await started(t, { metrics: [metric] });
    const start = `Warning FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: ${message}unable to `;
    const [, event = ""] = events;
    assert.ok(event.replace("failed to get cpu utilization: ", "").startsWith(start), event);
  });
}
