/** A controller that acts before it has seen everything it reads would delete, create or report on the basis of a part. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { type TestContext as Testing, test } from "node:test";
import { formatGroupResource, type ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import {
  aDaemonSet,
  aDeployment,
  aNamespace,
  aNode,
  aPod,
  aReplicaSet,
  aService,
  aServiceAccount,
  aStatefulSet,
} from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { catalogue } from "./catalogue.ts";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { aBootstrapToken } from "./testing/bootstrap-tokens.ts";
import { meta } from "./testing/hostile-objects.ts";
import { aCronJob, aJob, aJobPod } from "./testing/jobs.ts";
import { newTestContext } from "./testing/test-context.ts";
import { aClaim, aStorageClass, aVolume } from "./testing/volumes.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const config = {
  nodeIpam: { ranges: [{ cidr: "10.244.0.0/16", maskSize: 24 }], serviceCidrs: [] },
  rootCa: "PEM",
  serviceAccountKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
};
const allOn = { TopologyAwareHints: true, APIServerIdentity: true, StorageVersionAPI: true };
const long = "2000-01-01T00:00:00Z";

/** Objects of each kind on which the controllers have to act. */
const objects = [
  [resources.namespaces, aNamespace({ name: "default" })],
  [resources.nodes, aNode({ name: "n" })],
  [resources.pods, aPod({ name: "going", deletedAt: long, finalizers: ["x"] })],
  [resources.pods, aJobPod(aJob({ name: "gone" }), "tracked")],
  [resources.pods, aPod({ name: "placed", nodeName: "n" })],
  [resources.services, aService({ name: "web" })],
  [resources.endpoints, { metadata: meta("left") }],
  [resources.deployments, aDeployment({ name: "web" })],
  [resources.replicaSets, aReplicaSet({ name: "web" })],
  [resources.statefulSets, aStatefulSet({ name: "web" })],
  [resources.daemonSets, aDaemonSet({ name: "web" })],
  [resources.jobs, aJob({ name: "web", spec: { ttlSecondsAfterFinished: 0 } })],
  [resources.cronJobs, aCronJob()],
  [
    resources.horizontalPodAutoscalers,
    {
      metadata: meta("web"),
      spec: { maxReplicas: 2, scaleTargetRef: { kind: "Deployment", name: "web", apiVersion: "apps/v1" } },
    },
  ],
  [resources.podDisruptionBudgets, { metadata: meta("web"), spec: { minAvailable: 1, selector: {} } }],
  [resources.serviceAccounts, aServiceAccount({ namespace: "default" })],
  [resources.secrets, aBootstrapToken("aaaaaa", { expiration: long })],
  [resources.configMaps, { metadata: { namespace: "kube-public", name: "cluster-info" }, data: { kubeconfig: "x" } }],
  [resources.persistentVolumes, aVolume("a", { claimRef: { namespace: "default", name: "gone", uid: "gone" } })],
  [resources.persistentVolumeClaims, aClaim()],
  [resources.storageClasses, aStorageClass("fast")],
  [resources.certificateSigningRequests, { metadata: { name: "old", creationTimestamp: long }, spec: { request: "" } }],
  [resources.storageVersions, { metadata: { name: "a" }, status: { storageVersions: [{ apiServerID: "gone" }] } }],
] as unknown as readonly (readonly [ResourceRef, KubeObject])[];

/** Runs a controller while the list of one resource has not come. */
async function started(
  t: Testing,
  make: (ctx: ControllerContext) => Runnable | undefined,
  gates: Readonly<Record<string, boolean>>,
  held?: ResourceRef,
) {
  const context = newTestContext(t, config, gates);
  const { client, ctx, events, run } = context;
  const read = new Map<string, ResourceRef>();
  const informers: ControllerContext["informers"] = {
    ...ctx.informers,
    for(ref, selectors) {
      read.set(formatGroupResource(ref), ref);
      return ctx.informers.for(ref, selectors);
    },
  };
  const taken: string[] = [];
  const none = (): void => {};
  const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = (name) => ({
    ...{ added: none, done: none, retried: none },
    got: () => void taken.push(name),
  });
  for (const [ref, object] of objects) client.put(ref, object);
  if (held !== undefined) client.react("list", held.resource, () => new Promise(() => {}));
  await run(make({ ...ctx, informers, queueMetrics }));
  await context.clock.advance(16_000); // the period of autoscalers is 15 s
  await settle(30);
  const requests = client.actions.filter(({ verb }) => verb !== "list" && verb !== "watch");
  return { read, taken: [...new Set(taken)], requests: requests.map(({ verb, resource }) => `${verb} ${resource}`), events };
}

/** Queues that do not read the resource: of a controller whose parts read different ones. */
const independent: Readonly<Record<string, readonly string[]>> = {
  "nodelifecycle pods": ["node_lifecycle_controller"],
  "nodelifecycle leases.coordination.k8s.io": ["node_lifecycle_controller", "node_lifecycle_controller_pods", "noexec_taint_pod"],
};

for (const { name, make, gates } of [
  ...catalogue.map((controller) => ({ ...controller, gates: allOn })),
  ...catalogue.filter(({ name }) => name === "endpointslice").map((controller) => ({ ...controller, gates: {} })),
]) {
  test(`${name} does nothing before each of its informers has synced, ${gates === allOn ? "all" : "no"} gates on`, async (t) => {
    const all = await started(t, make, gates);
    for (const [resource, ref] of all.read) {
      const { taken, requests, events } = await started(t, make, gates, ref);
      const others = independent[`${name} ${resource}`] ?? [];
      assert.deepEqual(
        taken.filter((queue) => !others.includes(queue)),
        [],
        `without ${resource}`,
      );
      assert.deepEqual(events, [], `without ${resource}`);
      if (others.length === 0) assert.deepEqual(requests, [], `without ${resource}`);
    }
  });
}
