/** Objects as large as the API server stores: no step of a controller's work on them exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import {
  aDaemonSet,
  aDeployment,
  aNode,
  aPod,
  aService,
  aStatefulSet,
  someEndpoints,
} from "@coxswain/apimachinery/testing/builders";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { mismatchOf } from "@coxswain/apimachinery/volumes/matching";
import { newCronJobController } from "./controllers/cronjob/controller.ts";
import { eligibilityFor } from "./controllers/daemonset/eligibility.ts";
import { pinnedTo } from "./controllers/daemonset/pod-template.ts";
import { buildNewSet } from "./controllers/deployment/new-replica-set.ts";
import { endpointsOfPodsInSteps } from "./controllers/endpoint/endpoints-of-pods.ts";
import { canonicalSubsetsInSteps } from "./controllers/endpoint/subsets.ts";
import { endpointsOfPodsInSteps as sliceEndpointsInSteps } from "./controllers/endpointslice/endpoints-of-pods.ts";
import { planSlicesInSteps } from "./controllers/endpointslice/plan.ts";
import { planningMirror } from "./controllers/endpointslicemirroring/mirror.ts";
import { OwnerGraph } from "./controllers/garbagecollector/graph.ts";
import { newHorizontalPodAutoscalerController } from "./controllers/horizontalpodautoscaling/controller.ts";
import { withDeletionFinalizers } from "./controllers/persistentvolume-binder/finalizers.ts";
import { usageOf } from "./controllers/resourcequota/usage.ts";
import { planSteps } from "./controllers/statefulset/plan.ts";
import { makingRevisionData, withData } from "./history/revision-data.ts";
import { endpointChange, podsOf } from "./services/service-pods.ts";
import { serveDiscovery } from "./testing/discovery.ts";
import { meta } from "./testing/hostile-objects.ts";
import { aCronJob } from "./testing/jobs.ts";
import { newTestContext, type TestContext as World } from "./testing/test-context.ts";

const mostMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const labels = (count: number): Record<string, string> => Object.fromEntries(many(count, (at) => [`l${at}`, "v"]));
const env = (count: number) => many(count, (at) => ({ name: `E${at}`, value: "v" }));
const container = { name: "c", image: "i" };

async function takesLittle(t: TestContext, measure: () => number | Promise<number>): Promise<void> {
  const least = await leastOf(mostMs, async () => measure());
  t.diagnostic(`${least} ms`);
  assert.ok(least < mostMs, `${least} ms`);
}

/** CPU time of the longest step in ms, and the result. */
function longestStep<T>(steps: Steps<T>): [ms: number, result: T] {
  for (let longest = 0; ; ) {
    const before = process.threadCpuUsage();
    const step = steps.next();
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    if (step.done) return [longest, step.value];
  }
}

const templates = {
  "40,000 variables": { metadata: { labels: { a: "b" } }, spec: { containers: [{ ...container, env: env(40_000) }] } },
  "60,000 labels": { metadata: { labels: labels(60_000) }, spec: { containers: [container] } },
};

for (const [name, template] of Object.entries(templates)) {
  test(`a ReplicaSet is made of a template of ${name} in a short step`, (t) =>
    takesLittle(t, () => {
      const deployment = aDeployment({ name: "d" });
      deployment.spec.template = structuredClone(template);
      return cpuMsOf(() => void buildNewSet(deployment, [], 1n));
    }));

  test(`the data of a revision of ${name} is made and found again in short steps`, (t) =>
    takesLittle(t, () => {
      const [making, data] = longestStep(makingRevisionData(structuredClone(template)));
      const stored = { metadata: {}, data: structuredClone(data), revision: 1 };
      const [finding, found] = longestStep(withData([stored], data));
      assert.deepEqual(found, [stored]);
      return Math.max(making, finding);
    }));
}

test("100 nodes are compared with 10,000 terms of node affinity, and pods pinned to them, in a short step", (t) => {
  const nodes = many(100, (at) => aNode({ name: `n${at}`, labels: { x: "m1" } }));
  return takesLittle(t, () => {
    const terms = many(10_000, (at) => ({ matchExpressions: [{ key: "x", operator: "In" as const, values: [`m${at}`] }] }));
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    const template = { metadata: {}, spec: { containers: [container], affinity: { nodeAffinity } } };
    const daemonSet = { spec: { ...aDaemonSet({}).spec, template } };
    return cpuMsOf(() => {
      for (const node of nodes) {
        assert.ok(eligibilityFor(daemonSet)(node).shouldRun);
        pinnedTo(template, node.metadata.name ?? "");
      }
    });
  });
});

test("each pod of a StatefulSet of 3,000 claim templates is planned in a short step", (t) => {
  const claim = (at: number) => ({ metadata: { name: `c${at}` }, spec: { accessModes: ["ReadWriteOnce"] } });
  const set = aStatefulSet({
    replicas: 50,
    spec: { podManagementPolicy: "Parallel", volumeClaimTemplates: many(3_000, claim) },
  });
  const revision = { metadata: { name: "db-1" }, revision: 1 };
  const view = { set, pods: [], revisions: { current: revision, update: revision }, minReadySeconds: 0, now: 0 };
  return takesLittle(t, () => {
    const steps = planSteps(view);
    return Math.max(...many(50, () => cpuMsOf(() => assert.equal(steps.next().done, false))));
  });
});

for (const [name, object] of Object.entries({
  "10,000 subsets": someEndpoints({
    subsets: many(10_000, (at) => ({ addresses: [{ ip: `10.0.${at >> 8}.${at & 255}` }], ports: [{ port: 1 + at }] })),
  }),
  "20 subsets of 1,000 addresses": someEndpoints({
    subsets: many(20, (subset) => ({
      addresses: many(1_000, (at) => ({ ip: `10.${subset}.${at >> 8}.${at & 255}` })),
      ports: [{ port: 80 + subset }],
    })),
  }),
  "60,000 labels": someEndpoints({
    labels: labels(60_000),
    subsets: many(20, (at) => ({ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 80 + at }] })),
  }),
})) {
  test(`the slices of Endpoints of ${name} are planned, and found unchanged, in short steps`, (t) =>
    takesLittle(t, () => {
      const [making, plan] = longestStep(planningMirror(object, [], 1_000));
      const existing = plan.create.map((slice, at) => ({ ...slice, metadata: { ...slice.metadata, name: `s${at}` } }));
      const [comparing, again] = longestStep(planningMirror(object, existing, 1_000));
      assert.deepEqual([again.create, again.update, again.delete], [[], [], []]);
      return Math.max(making, comparing);
    }));
}

test("the endpoints of a Service of 100,000 pods are made, and merged, in short steps", (t) => {
  const all = many(100_000, (at) =>
    aPod({ name: `p${at}`, uid: `p${at}`, nodeName: "n", podIP: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}` }),
  );
  const service = aService({ name: "s", spec: { selector: { app: "x" }, ports: [{ port: 80 }], ipFamilies: ["IPv4"] } });
  return takesLittle(t, () => {
    const [making, subsets] = longestStep(endpointsOfPodsInSteps(service, all));
    const [merging, merged] = longestStep(canonicalSubsetsInSteps(subsets));
    const [slicing, groups] = longestStep(sliceEndpointsInSteps(service, all, () => undefined));
    assert.equal(merged[0]?.addresses?.length, 100_000);
    assert.equal(groups[0]?.endpoints.length, 100_000);
    return Math.max(making, merging, slicing);
  });
});

for (const { name, labels: own, count } of [
  { name: "4,000 groups of endpoints, one for each number of a port", labels: 0, count: 4_000 },
  { name: "6 groups of endpoints and 60,000 labels", labels: 60_000, count: 6 },
]) {
  test(`the slices of a Service of ${name} are planned, and planned again, in short steps`, (t) => {
    const service = aService({ name: "s", labels: labels(own), spec: { ports: [{ port: 80 }], ipFamilies: ["IPv4"] } });
    const desired = many(count, (at) => ({
      addressType: "IPv4" as const,
      ports: [{ name: "", port: at + 1, protocol: "TCP" }],
      endpoints: [{ addresses: ["10.0.0.1"], targetRef: { uid: `p${at}` } }],
    }));
    const plan = (existing: readonly EndpointSlice[], from: number) =>
      longestStep(planSlicesInSteps({ service, existing, desired: desired.slice(from), maxPerSlice: 100 }));
    return takesLittle(t, () => {
      const [making, { create }] = plan([], 0);
      assert.equal(create.length, count);
      const stored = create.map((slice) => ({ ...slice, metadata: { ...slice.metadata, labels: { ...slice.metadata.labels } } }));
      const [changing, changed] = plan(stored.slice(0, count / 2), count / 2);
      assert.deepEqual([changed.create.length, changed.delete.length], [count / 2, count / 2]);
      const [comparing, { update }] = plan(stored, 0);
      assert.deepEqual(update, []);
      return Math.max(making, changing, comparing);
    });
  });
}

test("the next of 300,000 names by which an owner is referenced is found in a short step", (t) => {
  const reference = (at: number) => ({ apiVersion: "v1", kind: "ConfigMap", name: `n${at}`, uid: "absent" });
  const dependents = many(30, (object) => many(10_000, (at) => reference(object * 10_000 + at)));
  return takesLittle(t, () => {
    const graph = new OwnerGraph();
    for (const [at, ownerReferences] of dependents.entries()) {
      const identity = { apiVersion: "v1", kind: "ConfigMap", namespace: "default", name: `c${at}`, uid: `c${at}` };
      graph.observe(identity, { ownerReferences });
    }
    return cpuMsOf(() => assert.equal(graph.absent({ ...reference(0), namespace: "default" }).lookupAgain, true));
  });
});

test("500 pods are compared with 100,000 scopes, and with 10,000 scope expressions, in a short step", (t) => {
  const objects = many(500, (at) => aPod({ name: `p${at}` }));
  const evaluator = quotaEvaluator({ group: "", resource: "pods" }, { now: () => 0 } as never, () => false);
  const expression = (at: number) => ({ scopeName: "PriorityClass", operator: "NotIn", values: [`x${at}`] });
  return takesLittle(t, () => {
    const hard = { pods: "5" };
    const specs = [
      { hard, scopes: many(100_000, () => "NotTerminating") },
      { hard, scopeSelector: { matchExpressions: many(10_000, expression) } },
    ];
    return cpuMsOf(() => {
      for (const spec of specs) assert.deepEqual(usageOf(spec, [{ evaluator, objects }]), { pods: "500" });
    });
  });
});

test("a volume of 50,000 finalizers is found unchanged, and one of as many access modes matched, each in a short step", async (t) => {
  const provisioned = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/host-path" };
  const finalizers = ["kubernetes.io/pv-controller", ...many(50_000, (at) => `example.com/f${at}`)];
  const modes = [...many(50_000, () => "ReadWriteOnce"), "ReadWriteMany"];
  const volume = {
    metadata: { name: "v", annotations: provisioned, finalizers },
    spec: { capacity: { storage: "1Gi" }, accessModes: modes, persistentVolumeReclaimPolicy: "Delete" },
  };
  const claim = {
    metadata: { name: "c", namespace: "default" },
    spec: { accessModes: modes.toReversed(), resources: { requests: { storage: "1Gi" } } },
  };
  const gates = { enabled: (name: string) => name === "HonorPVReclaimPolicy" };
  await takesLittle(t, () => cpuMsOf(() => assert.equal(withDeletionFinalizers(volume, gates), undefined)));
  await takesLittle(t, () => cpuMsOf(() => assert.equal(mismatchOf(volume, claim), undefined)));
});

test("the pods of a Service that selects 60,000 labels are looked up in a short step", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(resources.pods, ...many(500, (at) => aPod({ name: `p${at}`, labels: { l0: "v" } })));
  ctx.informers.for<Pod>(resources.pods);
  await run();
  const service = { ...aService({ name: "s" }), spec: { selector: labels(60_000) } };
  await takesLittle(t, () => cpuMsOf(() => assert.deepEqual(podsOf(ctx.informers, service), [])));
});

test("the labels of a Pod of 100,000 are not compared: its Services are looked at again", (t) => {
  const pod = (podIP: string): Pod => aPod({ name: "p", labels: labels(100_000), podIP });
  return takesLittle(t, () => {
    const [old, now] = [pod("10.0.0.1"), pod("10.0.0.1")];
    return cpuMsOf(() => {
      for (let controller = 0; controller < 2; controller++) assert.equal(endpointChange(old, now), "labels");
    });
  });
});

for (const { name, make, prepare, isDone } of [
  {
    name: "a CronJob of 8,000 active Jobs that do not exist",
    make: newCronJobController,
    prepare({ client }: World) {
      const active = many(8_000, (at) => ({ kind: "Job", namespace: "default", name: `j${at}`, uid: `u${at}` }));
      client.put(resources.cronJobs, { ...aCronJob({ spec: { suspend: true } }), status: { active } });
    },
    isDone: ({ client }: World) => client.object<CronJob>(resources.cronJobs, "default/tick")?.status?.active === undefined,
  },
  {
    name: "an autoscaler of 5,000 metrics",
    make: newHorizontalPodAutoscalerController,
    prepare({ client }: World) {
      serveDiscovery(client, [{ ...resources.deployments, scale: true }]);
      const target = { type: "AverageValue", averageValue: "1" };
      const metrics = many(5_000, (at) => ({ type: "Pods", pods: { metric: { name: `m${at}` }, target } }));
      const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "d" };
      client.put(resources.horizontalPodAutoscalers, {
        metadata: meta("h"),
        spec: { scaleTargetRef, maxReplicas: 5, metrics },
      } as never);
      client.put(resources.deployments, aDeployment({ name: "d", replicas: 1 }));
    },
    isDone: ({ client }: World) =>
      client
        .object<HorizontalPodAutoscaler>(resources.horizontalPodAutoscalers, "default/h")
        ?.status?.conditions?.some(({ type }) => type === "ScalingActive") === true,
  },
]) {
  test(`${name} is reconciled without a long turn`, (t) =>
    takesLittle(t, () =>
      longestTurnOf(mostMs, async () => {
        const world = newTestContext(t);
        prepare(world);
        await world.run(make({ ...world.ctx, turns: new Turns() }));
        await waitFor(async () => {
          await world.clock.advance(1_000);
          return isDone(world);
        });
      }),
    ));
}
