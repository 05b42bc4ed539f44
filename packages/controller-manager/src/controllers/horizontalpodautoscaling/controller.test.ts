import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/errors/status-error";
import type { Deployment } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  MetricSpec,
} from "@coxswain/apimachinery/schema/kinds/autoscaling/v2";
import { deployments, horizontalPodAutoscalers, pods, services } from "@coxswain/apimachinery/schema/kinds/resources";
import { aDeployment, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { serveDiscovery } from "../../testing/discovery.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newHorizontalPodAutoscalerController } from "./controller.ts";
import { selectorText } from "./proposals.ts";

const cpu = (averageUtilization: number): MetricSpec => ({
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization } },
});
const anAutoscaler = (spec: Partial<HorizontalPodAutoscalerSpec> = {}): HorizontalPodAutoscaler => ({
  metadata: { name: "web", namespace: "default" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    minReplicas: 1,
    maxReplicas: 10,
    metrics: [cpu(50)],
    ...spec,
  },
});
const served = [{ ...deployments, scale: true }, services];
const periodMs = 15_000;

interface Measured {
  readonly cpu?: string;
  readonly container?: string;
}

/** What metrics-server says of the Pods of the deployment. */
function measure({ client, clock }: TestContext, ...values: Measured[]): void {
  const timestamp = new Date(clock.now()).toISOString();
  client.rawAnswers.set("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", {
    items: values.map(({ cpu: used = "0", container = "main" }, i) => ({
      metadata: { name: `p${i}` },
      timestamp,
      window: "30s",
      containers: [{ name: container, usage: { cpu: used } }],
    })),
  });
}

async function started(
  t: { after(fn: () => void): void },
  spec: Partial<HorizontalPodAutoscalerSpec>,
  options: { replicas?: number; prepare?: (world: TestContext) => void } = {},
): Promise<TestContext> {
  const { replicas = 3, prepare = () => {} } = options;
  const world = newTestContext(t);
  serveDiscovery(world.client, served);
  const requests = { requests: { cpu: "1" } };
  const pod = (i: number) =>
    aPod({
      name: `p${i}`,
      labels: { app: "web" },
      spec: { containers: [{ name: "main", image: "x", resources: requests }] },
      status: { startTime: "2000-01-01T00:00:00Z" },
    });
  world.client.put(pods, ...Array.from({ length: replicas }, (_, i) => pod(i)));
  world.client.put(deployments, { ...aDeployment({ replicas }), status: { replicas } });
  world.client.put(horizontalPodAutoscalers, anAutoscaler(spec));
  prepare(world);
  await world.run(newHorizontalPodAutoscalerController(world.ctx));
  await oncePeriod(world);
  return world;
}

async function oncePeriod({ clock }: TestContext): Promise<void> {
  await clock.advance(periodMs);
  await settle(60);
}

const replicasOf = ({ client }: TestContext) => client.object<Deployment>(deployments, "default/web")?.spec?.replicas;
const statusOf = ({ client }: TestContext) =>
  client.object<HorizontalPodAutoscaler>(horizontalPodAutoscalers, "default/web")?.status;
const conditions = (world: TestContext) =>
  Object.fromEntries(
    (statusOf(world)?.conditions ?? []).map(({ type, status, reason, message }) => [type, `${status} ${reason}: ${message}`]),
  );
const measured = (...values: string[]) => ({
  prepare: (world: TestContext) => measure(world, ...values.map((text) => ({ cpu: text }))),
});

test("gives the target what its metric asks for, and tells everything of it", async (t) => {
  const world = await started(t, {}, measured("700m", "800m", "900m"));
  assert.equal(replicasOf(world), 5);
  assert.deepEqual(world.events, [
    "Normal SuccessfulRescale New size: 5; reason: cpu resource utilization (percentage of request) above target",
  ]);
  const at = new Date(world.clock.now()).toISOString().replace(".000", "");
  const { conditions: _, ...status } = statusOf(world) ?? {};
  assert.deepEqual(status, {
    lastScaleTime: at,
    currentReplicas: 3,
    desiredReplicas: 5,
    currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 80, averageValue: "800m" } } }],
  });
  assert.deepEqual(conditions(world), {
    AbleToScale: "True SucceededRescale: the HPA controller was able to update the target scale to 5",
    ScalingActive:
      "True ValidMetricFound: the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)",
    ScalingLimited: "False DesiredWithinRange: the desired count is within the acceptable range",
  });
});

test("looks once in a period, and writes nothing when nothing changed", async (t) => {
  const world = await started(t, {}, measured("500m", "500m", "500m"));
  assert.equal(replicasOf(world), 3);
  world.client.clearActions();
  await world.clock.advance(periodMs - 1);
  await settle(30);
  assert.deepEqual(world.client.actions, []);
  await world.clock.advance(1);
  await settle(60);
  assert.deepEqual(
    world.client.actions.map(({ verb, subresource }) => `${verb} ${subresource}`),
    ["get scale"],
  );
});

test("goes down only when all of the last five minutes agree", async (t) => {
  const world = await started(t, {}, { ...measured("100m", "100m", "100m") });
  assert.equal(replicasOf(world), 3);
  assert.match(conditions(world)["AbleToScale"] ?? "", /^True ScaleDownStabilized: recent recommendations were higher/);
  for (let i = 0; i < 19; i++) await oncePeriod(world);
  assert.equal(replicasOf(world), 3);
  await oncePeriod(world);
  await oncePeriod(world);
  assert.equal(replicasOf(world), 1);
  assert.deepEqual(world.events, ["Normal SuccessfulRescale New size: 1; reason: All metrics below target"]);
});

for (const { name, spec, replicas, want, events, active } of [
  {
    name: "brings the target below the most, whatever metrics say",
    spec: { maxReplicas: 2 },
    replicas: 3,
    want: 2,
    events: ["Normal SuccessfulRescale New size: 2; reason: Current number of replicas above Spec.MaxReplicas"],
  },
  {
    name: "brings the target above the least, whatever metrics say",
    spec: { minReplicas: 5 },
    replicas: 3,
    want: 5,
    events: ["Normal SuccessfulRescale New size: 5; reason: Current number of replicas below Spec.MinReplicas"],
  },
  {
    name: "lets a target be that was scaled to zero",
    spec: {},
    replicas: 0,
    want: 0,
    events: [],
    active: "False ScalingDisabled: scaling is disabled since the replica count of the target is zero",
  },
]) {
  test(name, async (t) => {
    const world = await started(t, spec, { replicas });
    assert.equal(replicasOf(world), want);
    assert.deepEqual(world.events, events);
    assert.equal(conditions(world)["ScalingActive"], active);
  });
}

const noMetrics =
  "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
test("says that there are no metrics, and changes nothing", async (t) => {
  const world = await started(t, {});
  assert.equal(replicasOf(world), 3);
  assert.deepEqual(world.events, [
    `Warning FailedGetResourceMetric ${noMetrics}`,
    `Warning FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${noMetrics}`,
  ]);
  assert.deepEqual(conditions(world), {
    AbleToScale: "True SucceededGetScale: the HPA controller was able to get the target's current scale",
    ScalingActive: `False FailedGetResourceMetric: the HPA was unable to compute the replica count: ${noMetrics}`,
  });
  assert.equal(statusOf(world)?.currentReplicas, 3);
});

test("one metric that fails keeps the target from going down, but not from going up", async (t) => {
  const missing: MetricSpec = {
    type: "External",
    external: { metric: { name: "queue", selector: { matchLabels: { q: "a" } } }, target: { type: "Value", value: "5" } },
  };
  const shown =
    "unable to get external metric default/queue/&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from external metrics API: the server could not find the requested resource (get queue.external.metrics.k8s.io)";
  const below = await started(t, { metrics: [missing, cpu(50)] }, measured("100m", "100m", "100m"));
  assert.equal(replicasOf(below), 3);
  assert.deepEqual(below.events, [
    `Warning FailedGetExternalMetric ${shown}`,
    `Warning FailedComputeMetricsReplicas invalid metrics (1 invalid out of 2), first error is: failed to get queue external metric value: failed to get queue external metric: ${shown}`,
  ]);
  const above = await started(t, { metrics: [missing, cpu(50)] }, measured("900m", "900m", "900m"));
  assert.equal(replicasOf(above), 6);
  assert.deepEqual(
    statusOf(above)?.currentMetrics.map(({ type }) => type),
    ["", "Resource"],
  );
});

test("of several metrics the one that asks for most decides", async (t) => {
  const world = await started(t, { metrics: [cpu(90), cpu(20), cpu(60)] }, measured("300m", "300m", "300m"));
  assert.equal(replicasOf(world), 5);
});

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
]) {
  test(`scales by ${name}`, async (t) => {
    const world = await started(t, { metrics: [metric as MetricSpec] }, { prepare: serve });
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
    const world = await started(t, { metrics: [metric as MetricSpec] }, { prepare: prepare ?? (() => {}) });
    assert.equal(world.events[0], `Warning ${reason} ${message}`);
    assert.equal(replicasOf(world), 3);
  });
}

for (const { name, target, message } of [
  {
    name: "of a kind that is not served",
    target: { apiVersion: "x.io/v1", kind: "Thing", name: "web" },
    message: 'no matches for kind "Thing" in group "x.io"',
  },
  {
    name: "that is not there",
    target: { apiVersion: "apps/v1", kind: "Deployment", name: "other" },
    message: 'deployments.apps "other" not found',
  },
  {
    name: "of a version that is none",
    target: { apiVersion: "a/b/c", kind: "Thing", name: "web" },
    message: "unexpected GroupVersion string: a/b/c",
  },
]) {
  test(`says that it cannot scale a target ${name}`, async (t) => {
    const world = await started(t, { scaleTargetRef: target });
    assert.deepEqual(world.events, [`Warning FailedGetScale ${message}`]);
    assert.deepEqual(conditions(world), {
      AbleToScale: `False FailedGetScale: the HPA controller was unable to get the target's current scale: ${message}`,
    });
  });
}

test("a scale that cannot be written is tried again in the next period", async (t) => {
  let refusals = 0;
  const world = await started(
    t,
    {},
    {
      prepare(made) {
        measure(made, { cpu: "900m" }, { cpu: "900m" }, { cpu: "900m" });
        made.client.react("update", "deployments", () => {
          if (refusals++ > 0) return undefined;
          throw conflict(deployments, "web", "it changed");
        });
      },
    },
  );
  const message = 'Operation cannot be fulfilled on deployments.apps "web": it changed';
  assert.deepEqual(world.events, [
    `Warning FailedRescale New size: 6; reason: cpu resource utilization (percentage of request) above target; error: ${message}`,
  ]);
  assert.equal(
    conditions(world)["AbleToScale"],
    `False FailedUpdateScale: the HPA controller was unable to update the target scale: ${message}`,
  );
  assert.equal(statusOf(world)?.lastScaleTime, undefined);
  await oncePeriod(world);
  assert.equal(replicasOf(world), 6);
});

test("a deleted autoscaler scales nothing any more", async (t) => {
  const world = await started(t, {}, measured("500m", "500m", "500m"));
  world.client.remove(horizontalPodAutoscalers, "default/web");
  measure(world, { cpu: "900m" }, { cpu: "900m" }, { cpu: "900m" });
  await oncePeriod(world);
  await oncePeriod(world);
  assert.equal(replicasOf(world), 3);
});

test("selectors are shown as Go prints them", () => {
  assert.equal(
    selectorText({ matchLabels: { b: "2", a: "1" }, matchExpressions: [{ key: "k", operator: "In", values: ["x", "y"] }] }),
    "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
  );
});
