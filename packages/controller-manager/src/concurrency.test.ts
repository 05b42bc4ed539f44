/** The flags for the number of objects that a controller works on at once, with a server that does not answer. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import {
  aDaemonSet,
  aDeployment,
  aNamespace,
  aPod,
  aReplicaSet,
  aService,
  aServiceAccount,
  aStatefulSet,
} from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { catalogue } from "./catalogue.ts";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import type { ControllerContext } from "./controller-context.ts";
import { meta } from "./testing/hostile-objects.ts";
import { aJob, finishedAt } from "./testing/jobs.ts";
import { defaultConfig, newTestContext } from "./testing/test-context.ts";

const long = "2000-01-01T00:00:00Z";
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const scratch = { volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: { metadata: {}, spec: {} } } }] };

interface Case {
  readonly controller: string;
  readonly queue: string;
  /** undefined: fixed at two. */
  readonly setting?: keyof ControllerManagerConfig["concurrency"];
  /** The i-th object on which the controller has to act, with those that it needs for that. */
  readonly objects: (name: string) => readonly (readonly [ResourceRef, object])[];
}

const cases: readonly Case[] = [
  ...(
    [
      ["deployment", "deployment", "deployment", resources.deployments, aDeployment],
      ["replicaset", "replicaset", "replicaSet", resources.replicaSets, aReplicaSet],
      ["statefulset", "statefulset", "statefulSet", resources.statefulSets, aStatefulSet],
      ["daemonset", "daemonset", undefined, resources.daemonSets, aDaemonSet],
      ["endpoint", "endpoint", "endpoint", resources.services, aService],
      ["endpointslice", "endpoint_slice", "endpointSlice", resources.services, aService],
    ] as const
  ).map(
    ([controller, queue, setting, ref, make]): Case => ({
      ...{ controller, queue, ...(setting !== undefined && { setting }) },
      objects: (name) => [[ref, make({ name })]],
    }),
  ),
  {
    ...{ controller: "replicationcontroller", queue: "replicationmanager", setting: "replicationController" },
    objects: (name) => [
      [
        resources.replicationControllers,
        {
          metadata: meta(name),
          spec: { replicas: 1, selector: { app: name }, template: { metadata: { labels: { app: name } } } },
        },
      ],
    ],
  },
  {
    ...{ controller: "endpointslicemirroring", queue: "endpoint_slice_mirroring", setting: "endpointSliceMirroring" },
    objects: (name) => [
      [resources.services, { metadata: meta(name), spec: {} }],
      [resources.endpoints, { metadata: meta(name), subsets: [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 1 }] }] }],
    ],
  },
  {
    ...{ controller: "namespace", queue: "namespace", setting: "namespace" },
    objects: (name) => [[resources.namespaces, aNamespace({ name, deletedAt: long })]],
  },
  {
    ...{ controller: "serviceaccount-token", queue: "serviceaccount_tokens_service", setting: "serviceAccountToken" },
    objects: (name) => [[resources.serviceAccounts, aServiceAccount({ name })]],
  },
  {
    ...{ controller: "ttl-after-finished", queue: "ttl_jobs_to_delete", setting: "ttlAfterFinished" },
    objects: (name) => [
      [resources.jobs, aJob({ name, spec: { ttlSecondsAfterFinished: 0 }, status: { conditions: [finishedAt(long)] } })],
    ],
  },
  {
    ...{ controller: "ephemeral-volume", queue: "ephemeral_volume", setting: "ephemeralVolume" },
    objects: (name) => [[resources.pods, aPod({ name, spec: scratch })]],
  },
  {
    ...{ controller: "garbagecollector", queue: "garbage_collector_attempt_to_delete", setting: "garbageCollector" },
    objects: (name) => [
      [resources.pods, aPod({ name, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "gone", uid: `${name}-owner` }] })],
    ],
  },
  {
    ...{ controller: "resourcequota", queue: "resourcequota_priority", setting: "resourceQuota" },
    objects: (name) => [[resources.resourceQuotas, { metadata: meta(name), spec: { hard: { pods: "1" } } }]],
  },
];

for (const { controller, queue, setting, objects } of cases) {
  test(`${controller} works on as many objects at once as it may`, async (t) => {
    const concurrency = Object.fromEntries(Object.keys(defaultConfig.concurrency).map((name) => [name, 1]));
    const context = newTestContext(t, {
      concurrency: { ...(concurrency as ControllerManagerConfig["concurrency"]), ...(setting !== undefined && { [setting]: 2 }) },
      serviceAccountKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    });
    const { client, clock, ctx, run } = context;
    const taken = new Set<string>();
    const none = (): void => {};
    const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = (name) => ({
      ...{ added: none, done: none, retried: none },
      got: (key) => name === queue && void taken.add(key),
    });
    client.rawAnswers.set("/api", { versions: ["v1"] });
    client.rawAnswers.set("/apis", { groups: [] });
    const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
    client.rawAnswers.set("/api/v1", { resources: [{ name: "pods", kind: "Pod", namespaced: true, verbs }] });
    for (const name of ["a", "b", "c"]) for (const [ref, object] of objects(name)) client.put(ref, object as KubeObject);
    client.react("*", "*", ({ verb }) => (verb === "list" || verb === "watch" ? undefined : new Promise(() => {})));
    await run(catalogue.find(({ name }) => name === controller)?.make({ ...ctx, queueMetrics }));
    await clock.advance(5_000);
    await settle(30);
    assert.equal(taken.size, 2);
  });
}
