/** Objects as large as the API server stores: no event-loop turn of their controllers exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { aDeployment, aNode, aPod, aReplicaSet, aService } from "@coxswain/apimachinery/testing/builders";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { FakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { newCronJobController } from "./controllers/cronjob/controller.ts";
import { newDaemonSetController } from "./controllers/daemonset/controller.ts";
import { newDeploymentController } from "./controllers/deployment/controller.ts";
import { newEndpointController } from "./controllers/endpoint/controller.ts";
import { newEndpointSliceMirroringController } from "./controllers/endpointslicemirroring/controller.ts";
import { newHorizontalPodAutoscalerController } from "./controllers/horizontalpodautoscaling/controller.ts";
import { newReplicaSetController } from "./controllers/replicaset/controller.ts";
import { newResourceQuotaController } from "./controllers/resourcequota/controller.ts";
import { newStatefulSetController } from "./controllers/statefulset/controller.ts";
import { serveDiscovery } from "./testing/discovery.ts";
import { meta, type Objects } from "./testing/hostile-objects.ts";
import { aCronJob } from "./testing/jobs.ts";
import { newTestContext, type TestContext } from "./testing/test-context.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const labels = (count: number): Record<string, string> => Object.fromEntries(many(count, (at) => [`l${at}`, "v"]));
const env = (count: number) => many(count, (at) => ({ name: `E${at}`, value: "v" }));
const template = (own: object, container: object = {}, spec: object = {}): object => ({
  metadata: { labels: { a: "b", ...own } },
  spec: { containers: [{ name: "c", image: "i", ...container }], ...spec },
});
const selected = (own: object): object => ({ selector: { matchLabels: { a: "b" } }, template: own });
const bareService = { ...aService({ name: "s" }), spec: { ports: [{ port: 80 }] } };

interface Case {
  readonly make: (ctx: ControllerContext) => Runnable | undefined;
  readonly objects: () => Objects;
  /** True when the controller has done its work. */
  readonly isDone: (client: FakeClient) => boolean;
}

const has = (ref: ResourceRef, count: number) => (client: FakeClient) => client.objects(ref).length >= count;

const cases: Readonly<Record<string, Case>> = {
  "a Deployment of 40,000 variables": {
    make: newDeploymentController,
    objects: () => [
      [resources.deployments, { ...aDeployment({ name: "d" }), spec: selected(template({}, { env: env(40_000) })) }],
    ],
    isDone: has(resources.replicaSets, 1),
  },
  "a Deployment of 60,000 labels in its template": {
    make: newDeploymentController,
    objects: () => [[resources.deployments, { ...aDeployment({ name: "d" }), spec: selected(template(labels(60_000))) }]],
    isDone: has(resources.replicaSets, 1),
  },
  "a ReplicaSet of 100 pods of 10,000 variables": {
    make: newReplicaSetController,
    objects: () => [
      [
        resources.replicaSets,
        { ...aReplicaSet({ name: "r" }), spec: { replicas: 100, ...selected(template({}, { env: env(10_000) })) } },
      ],
    ],
    isDone: has(resources.pods, 100),
  },
  "a DaemonSet of 60,000 labels in its template": {
    make: newDaemonSetController,
    objects: () => [
      [resources.nodes, aNode({ name: "n" })],
      [resources.daemonSets, { metadata: meta("ds"), spec: selected(template(labels(60_000))) }],
    ],
    isDone: has(resources.pods, 1),
  },
  "a DaemonSet of 10,000 terms of node affinity on 100 nodes": {
    make: newDaemonSetController,
    objects: () => [
      [resources.nodes, ...many(100, (at) => aNode({ name: `n${at}`, labels: { x: "m1" } }))],
      [
        resources.daemonSets,
        {
          metadata: meta("ds"),
          spec: selected(
            template(
              {},
              {},
              {
                affinity: {
                  nodeAffinity: {
                    requiredDuringSchedulingIgnoredDuringExecution: {
                      nodeSelectorTerms: many(10_000, (at) => ({
                        matchExpressions: [{ key: "x", operator: "In", values: [`m${at}`] }],
                      })),
                    },
                  },
                },
              },
            ),
          ),
        },
      ],
    ],
    isDone: has(resources.pods, 100),
  },
  "a StatefulSet of 3,000 claim templates and 20,000 variables": {
    make: newStatefulSetController,
    objects: () => [
      [
        resources.statefulSets,
        {
          metadata: meta("ss"),
          spec: {
            ...{
              serviceName: "s",
              replicas: 20,
              podManagementPolicy: "Parallel",
              ...selected(template({}, { env: env(20_000) })),
            },
            volumeClaimTemplates: many(3_000, (at) => ({
              metadata: { name: `c${at}` },
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            })),
          },
        },
      ],
    ],
    isDone: has(resources.pods, 1),
  },
  "a CronJob of 15,000 active Jobs that do not exist": {
    make: newCronJobController,
    objects: () => [
      [
        resources.cronJobs,
        {
          ...aCronJob({ spec: { suspend: true } }),
          status: { active: many(15_000, (at) => ({ kind: "Job", namespace: "default", name: `j${at}`, uid: `u${at}` })) },
        },
      ],
    ],
    isDone: (client) => client.object<CronJob>(resources.cronJobs, "default/tick")?.status?.active === undefined,
  },
  "an autoscaler of 10,000 metrics": {
    make: newHorizontalPodAutoscalerController,
    objects: () => [
      [
        resources.horizontalPodAutoscalers,
        {
          metadata: meta("h"),
          spec: {
            ...{ scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, maxReplicas: 5 },
            metrics: many(10_000, (at) => ({
              type: "Pods",
              pods: { metric: { name: `m${at}` }, target: { type: "AverageValue", averageValue: "1" } },
            })),
          },
        },
      ],
      [resources.deployments, aDeployment({ name: "d", replicas: 1 })],
    ],
    isDone: (client) =>
      client
        .object<HorizontalPodAutoscaler>(resources.horizontalPodAutoscalers, "default/h")
        ?.status?.conditions?.some(({ type }) => type === "ScalingActive") === true,
  },
  "Endpoints of 5,000 subsets, mirrored": {
    make: newEndpointSliceMirroringController,
    objects: () => [
      [resources.services, bareService],
      [
        resources.endpoints,
        {
          metadata: meta("s", { labels: labels(100) }),
          subsets: many(5_000, (at) => ({
            addresses: [{ ip: `10.0.${at >> 8}.${at & 255}` }],
            ports: [{ port: 1 + at, protocol: "TCP" }],
          })),
        },
      ],
    ],
    isDone: has(resources.endpointSlices, 5_000),
  },
  "Endpoints of 60,000 labels, mirrored": {
    make: newEndpointSliceMirroringController,
    objects: () => [
      [resources.services, bareService],
      [
        resources.endpoints,
        {
          metadata: meta("s", { labels: labels(60_000) }),
          subsets: many(3, (at) => ({ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 80 + at }] })),
        },
      ],
    ],
    isDone: has(resources.endpointSlices, 3),
  },
  "a quota of 100,000 scopes, and one of 10,000 scope expressions": {
    make: newResourceQuotaController,
    objects: () => [
      [
        resources.resourceQuotas,
        { metadata: meta("q"), spec: { hard: { pods: "5" }, scopes: many(100_000, () => "NotTerminating") } },
        {
          metadata: meta("r"),
          spec: {
            hard: { pods: "5" },
            scopeSelector: {
              matchExpressions: many(10_000, (at) => ({ scopeName: "PriorityClass", operator: "NotIn", values: [`x${at}`] })),
            },
          },
        },
      ],
      [resources.pods, ...many(500, (at) => aPod({ name: `p${at}` }))],
    ],
    isDone: (client) =>
      ["q", "r"].every(
        (name) => client.object<ResourceQuota>(resources.resourceQuotas, `default/${name}`)?.status?.used !== undefined,
      ),
  },
  "a Service that selects 60,000 labels": {
    make: newEndpointController,
    objects: () => [
      [resources.services, { ...aService({ name: "s" }), spec: { selector: labels(60_000), ports: [{ port: 80 }] } }],
      [resources.pods, ...many(500, (at) => aPod({ name: `p${at}`, labels: { l0: "v" }, nodeName: "n", podIP: "10.0.0.1" }))],
    ],
    isDone: has(resources.endpoints, 1),
  },
};

/** Each request in turns of its own, as those of a real server are, apart from the work of the fake one. */
function apart(client: FakeClient): Client {
  return new Proxy(client, {
    get(target, name: keyof FakeClient) {
      const member: unknown = target[name];
      if (typeof member !== "function") return member;
      if (name === "watch") return member.bind(target);
      return async (...args: unknown[]) => {
        await settle(1);
        const answer: unknown = await Reflect.apply(member, target, args);
        await settle(1);
        return answer;
      };
    },
  });
}

for (const [name, { make, objects, isDone }] of Object.entries(cases)) {
  test(`${name}: its controller takes no long turn`, async (t) => {
    const prepare = (): TestContext => {
      const world = newTestContext(t);
      serveDiscovery(world.client, [{ ...resources.deployments, scale: true }, resources.pods]);
      for (const [ref, ...some] of objects()) world.client.put(ref, ...(some as never[]));
      return world;
    };
    const longest = await longestTurnOf(
      longestTurnMs,
      async (_, { client, clock, ctx }) => {
        const stop = new AbortController();
        t.after(() => stop.abort());
        const own = apart(client);
        const informers = newInformerFactory(own, { log: ctx.log, clock });
        const controller = make({ ...ctx, client: own, informers, turns: new Turns() });
        informers.start(stop.signal);
        void controller?.run(stop.signal);
        await waitFor(async () => {
          await clock.advance(1_000);
          return isDone(client);
        });
        stop.abort();
      },
      prepare,
    );
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}
