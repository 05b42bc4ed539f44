import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { MetricSpec } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { deployments, horizontalPodAutoscalers, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import {
  conditions,
  cpu,
  measure,
  measured,
  oncePeriod,
  periodMs,
  replicasOf,
  started,
  statusOf,
} from "../../testing/autoscaling.ts";
import type { TestContext } from "../../testing/test-context.ts";

test("scales the target to what its metric requires, and reports it in events and status", async (t) => {
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

test("scales down only when all recommendations of the last five minutes agree", async (t) => {
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

test("a target that someone scaled down returns to the recommendation of before, for which no metric is the reason", async (t) => {
  const world = await started(t, {}, measured("800m", "800m", "800m"));
  assert.equal(replicasOf(world), 5);
  world.client.put(deployments, { ...aDeployment({ replicas: 3 }), status: { replicas: 3 } });
  measure(world, { cpu: "500m" }, { cpu: "500m" }, { cpu: "500m" });
  await oncePeriod(world);
  assert.equal(replicasOf(world), 5);
  assert.equal(world.events.at(-1), "Normal SuccessfulRescale New size: 5; reason: ");
});

test("a total is shared by the replicas that there are, which need not be those that are wanted", async (t) => {
  const external = { metric: { name: "queue" }, target: { type: "AverageValue", averageValue: "4" } };
  const prepare = ({ client }: TestContext) => {
    client.put(deployments, { ...aDeployment({ replicas: 3 }), status: { replicas: 5 } });
    client.rawAnswers.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", { items: [{ value: "21" }] });
  };
  const world = await started(t, { metrics: [{ type: "External", external }] }, { prepare });
  assert.equal(replicasOf(world), 5, "21 of 5 replicas are within the tolerance");
  assert.equal(statusOf(world)?.currentMetrics?.[0]?.external?.current.averageValue, "4200m");
});

test("of metrics that ask for the same the first is named", async (t) => {
  const average = { type: "Resource", resource: { name: "cpu", target: { type: "AverageValue", averageValue: "200m" } } };
  const used = () => measured("300m", "300m", "300m");
  const byShare = await started(t, { metrics: [cpu(20), average] }, used());
  const byValue = await started(t, { metrics: [average, cpu(20)] }, used());
  assert.deepEqual(
    [...byShare.events, ...byValue.events],
    ["cpu resource utilization (percentage of request)", "cpu resource"].map(
      (reason) => `Normal SuccessfulRescale New size: 5; reason: ${reason} above target`,
    ),
  );
});

test("of several metrics the one that asks for most decides", async (t) => {
  const world = await started(t, { metrics: [cpu(90), cpu(20), cpu(60)] }, measured("300m", "300m", "300m"));
  assert.equal(replicasOf(world), 5);
});

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

for (const { selector, want } of [
  { selector: "", want: /^Warning SelectorRequired selector is required$/ },
  {
    selector: "app in (",
    want: /^Warning InvalidSelector couldn't convert selector into a corresponding internal selector object: /,
  },
]) {
  test(`says that a target whose scale has the selector ${JSON.stringify(selector)} cannot be measured`, async (t) => {
    const scale = { metadata: { name: "web", namespace: "default" }, spec: { replicas: 3 }, status: { replicas: 3, selector } };
    const prepare = ({ client }: TestContext): void =>
      client.react("get", "deployments", ({ subresource }) => (subresource === "scale" ? scale : undefined));
    const world = await started(t, {}, { prepare });
    assert.match(world.events[0] ?? "", want);
    assert.match(conditions(world)["ScalingActive"] ?? "", /^False InvalidSelector: /);
  });
}

test("says that its status cannot be written", async (t) => {
  const prepare = ({ client }: TestContext): void =>
    client.react("update", "horizontalpodautoscalers", () => {
      throw conflict(horizontalPodAutoscalers, "web", "it changed");
    });
  const { events } = await started(t, { minReplicas: 3 }, { prepare });
  assert.match(events.at(-1) ?? "", /^Warning FailedUpdateStatus Operation cannot be fulfilled on .* "web": it changed$/);
});

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

test("an autoscaler of the name of a deleted one does not inherit its recommendations", async (t) => {
  const world = await started(t, {}, measured("100m", "100m", "100m"));
  assert.equal(replicasOf(world), 3, "held by the first recommendation");
  const autoscaler = world.client.object(horizontalPodAutoscalers, "default/web");
  world.client.remove(horizontalPodAutoscalers, "default/web");
  await oncePeriod(world);
  world.client.put(deployments, { ...aDeployment({ replicas: 1 }), status: { replicas: 1 } });
  world.client.remove(pods, "default/p1");
  world.client.remove(pods, "default/p2");
  measure(world, { cpu: "100m" });
  world.client.put(horizontalPodAutoscalers, autoscaler as never);
  await oncePeriod(world);
  await oncePeriod(world);
  assert.equal(replicasOf(world), 1);
});

const pods1 = (periodSeconds: number) => ({ policies: [{ type: "Pods", value: 1, periodSeconds }], selectPolicy: "Max" });

test("what was added counts against the policies of the next periods", async (t) => {
  const world = await started(t, { behavior: { scaleUp: pods1(60) } }, measured("900m", "900m", "900m"));
  const sizes = [replicasOf(world)];
  for (let i = 0; i < 4; i++) {
    await oncePeriod(world);
    sizes.push(replicasOf(world));
  }
  assert.deepEqual(sizes, [4, 4, 4, 4, 5]);
});

const queue = (value: string): MetricSpec => ({
  type: "External",
  external: { metric: { name: "queue" }, target: { type: "Value", value } },
});
const serveQueue = ({ client }: TestContext): void =>
  void client.rawAnswers.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", { items: [{ value: "20" }] });

test("a target at zero replicas is scaled up where the autoscaler may scale to zero", async (t) => {
  const world = await started(t, { minReplicas: 0, metrics: [queue("10")] }, { replicas: 0, prepare: serveQueue });
  assert.equal(replicasOf(world), 2);
});

test("of metrics that all want none the last is named", async (t) => {
  const stacked: MetricSpec = {
    type: "External",
    external: { metric: { name: "stack" }, target: { type: "Value", value: "5" } },
  };
  const prepare = ({ client }: TestContext): void => {
    for (const name of ["queue", "stack"])
      client.rawAnswers.set(`/apis/external.metrics.k8s.io/v1beta1/namespaces/default/${name}`, { items: [{ value: "0" }] });
  };
  const world = await started(t, { minReplicas: 0, metrics: [queue("10"), stacked] }, { replicas: 2, prepare });
  assert.match(conditions(world)["ScalingActive"] ?? "", /^True ValidMetricFound: .* from external metric stack/);
});

test("one metric that fails is reported, and does not disturb when the others want the present size", async (t) => {
  const world = await started(t, { metrics: [queue("10"), cpu(50)] }, measured("500m", "500m", "500m"));
  assert.deepEqual(
    world.events.map((event) => event.split(" ")[1]),
    ["FailedGetExternalMetric"],
  );
  assert.match(conditions(world)["ScalingActive"] ?? "", /^True ValidMetricFound: .* from cpu resource utilization/);
});

test("of several metrics that fail the first gives the reason", async (t) => {
  const world = await started(t, { metrics: [queue("10"), cpu(50)] });
  assert.match(conditions(world)["ScalingActive"] ?? "", /^False FailedGetExternalMetric: /);
  assert.match(world.events.at(-1) ?? "", /invalid metrics \(2 invalid out of 2\), first error is: failed to get queue external/);
});

test("pods of another namespace with the same labels do not count", async (t) => {
  const world = await started(
    t,
    {},
    {
      prepare(made) {
        made.client.put(pods, aPod({ name: "theirs", namespace: "other", labels: { app: "web" } }));
        measure(made, { cpu: "800m" }, { cpu: "800m" }, { cpu: "800m" });
      },
    },
  );
  assert.equal(replicasOf(world), 5);
});
