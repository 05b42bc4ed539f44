import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Endpoints, Node, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { aDeployment, aNode, aPod, aService } from "@coxswain/apimachinery/testing/builders";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { queueMetrics } from "@coxswain/apimachinery/workqueue/metrics";
import { catalogue } from "./catalogue.ts";
import { ResourceDiscovery } from "./resource-discovery.ts";
import { newControllerHealth, supervise } from "./supervise.ts";
import { hostile, meta, type Objects } from "./testing/hostile-objects.ts";
import { aCronJob, aJob } from "./testing/jobs.ts";
import { defaultConfig, newTestContext } from "./testing/test-context.ts";
import { aClaim, aVolume } from "./testing/volumes.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Serves discovery, for the controllers that watch all resources. */
function serveAll({ rawAnswers }: FakeClient): void {
  const served = resources.builtInResources.filter(
    ({ resource, verbs: own }) => !resource.includes("/") && own.includes("watch"),
  );
  const groups = [...Map.groupBy(served, ({ group }) => group)];
  rawAnswers.set("/api", { versions: ["v1"] });
  rawAnswers.set("/apis", {
    groups: groups
      .filter(([name]) => name !== "")
      .map(([name, of]) => {
        const versions = [...new Set(of.map(({ version }) => version))].map((version) => ({ version }));
        return { name, versions, preferredVersion: versions[0] };
      }),
  });
  for (const [path, of] of Map.groupBy(served, ({ group, version }) =>
    group === "" ? "/api/v1" : `/apis/${group}/${version}`,
  )) {
    const scales = of.filter(({ resource }) => ["deployments", "replicasets", "statefulsets"].includes(resource));
    rawAnswers.set(path, {
      resources: [
        ...of.map(({ resource: name, kind, namespaced }) => ({ name, kind, namespaced, verbs })),
        ...scales.map(({ resource, namespaced }) => ({ name: `${resource}/scale`, kind: "Scale", namespaced, verbs })),
      ],
    });
  }
}

/** Runs all controllers of the catalogue as the manager does, over one store, and collects failures. */
async function allControllers(t: { after(fn: () => void): void }, objects: Objects) {
  const world = newTestContext(t, {
    ...defaultConfig,
    nodeIpam: { ranges: [{ cidr: "10.244.0.0/16", maskSize: 24 }], serviceCidrs: ["10.96.0.0/12"] },
    rootCa: "PEM",
  });
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  serveAll(client);
  const registry = newMetricsRegistry();
  const health = newControllerHealth({ clock, metrics: registry });
  const failures: string[] = [];
  const log: Logger = {
    ...discardLogger,
    named: () => log,
    with: () => log,
    error(message, err) {
      // A failed key is retried with backoff and acceptable; these messages indicate failures beyond a single key.
      if (/handler failed|cannot be indexed|will be started again|cannot be looked at/.test(message))
        failures.push(`${message}: ${err}`);
    },
    fatal: (message, err) => assert.fail(`${message}: ${err}`),
  };
  const informers = newInformerFactory(client, { log, clock });
  const discovery = new ResourceDiscovery(client, clock);
  const ctx = { ...world.ctx, client, clock, discovery, informers, registry, log, queueMetrics: queueMetrics(registry, clock) };
  for (const [ref, ...some] of objects) client.put(ref, ...(some as never[]));
  const running = catalogue.map(({ name, make }) => supervise({ name, ctx, make, health, log, clock }));
  informers.start(world.signal);
  for (const controller of running) void controller?.run(world.signal);
  await settle(60);
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) await clock.advance(1_000);
    await settle(40);
  };
  const adds = async (): Promise<number> =>
    [...(await registry.render()).matchAll(/^workqueue_adds_total\{[^}]*\} (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
  return { client, clock, failures, health, pass, adds };
}

for (const [name, objects] of Object.entries(hostile)) {
  test(`${name}: no controller fails or spins, and other objects are served`, async (t) => {
    const { client, failures, health, pass, adds } = await allControllers(t, [
      [resources.namespaces, { metadata: { name: "default", uid: "d" }, status: { phase: "Active" } }],
      ...objects,
    ]);
    await pass(5);
    client.put(resources.nodes, aNode({ name: "good" }));
    client.put(resources.deployments, aDeployment({ name: "witness", replicas: 2 }));
    client.put(resources.services, aService({ name: "witness", spec: { selector: { app: "backend" } } }));
    client.put(resources.pods, aPod({ name: "backend", labels: { app: "backend" }, nodeName: "good", podIP: "10.0.0.9" }));
    client.put(resources.persistentVolumes, aVolume("witness", { storageClassName: "own" }));
    client.put(resources.persistentVolumeClaims, {
      ...aClaim({ storageClassName: "own" }),
      metadata: meta("witness"),
    });
    client.put(resources.cronJobs, {
      ...aCronJob({ spec: { schedule: "* * * * *" } }),
      metadata: meta("witness", { creationTimestamp: "2022-01-01T00:00:00Z" }),
    } as never);
    client.put(resources.jobs, aJob({ name: "witness" }));
    await pass(10);
    assert.equal(client.object<Endpoints>(resources.endpoints, "default/witness")?.subsets?.[0]?.addresses?.[0]?.ip, "10.0.0.9");
    await pass(80);

    assert.deepEqual(failures, []);
    for (const { name: controller } of catalogue) health.check(controller);
    assert.equal(
      client.objects(resources.replicaSets).filter(({ metadata }) => metadata.name?.startsWith("witness-")).length,
      1,
      "deployment",
    );
    assert.ok(client.object<Node>(resources.nodes, "good")?.spec?.podCIDRs?.length, "the node's range");
    assert.equal(
      client.object<PersistentVolumeClaim>(resources.persistentVolumeClaims, "default/witness")?.spec.volumeName,
      "witness",
    );
    const ofWitness = client.objects(resources.jobs).filter(({ metadata }) => metadata.name?.startsWith("witness-"));
    assert.ok(ofWitness.length >= 1, "the cron job's job");
    assert.ok(
      client.objects(resources.pods).some(({ metadata }) => metadata.generateName?.startsWith("witness-")),
      "pods",
    );
    client.clearActions();
    const before = await adds();
    await pass(60);
    const added = (await adds()) - before;
    const count = Object.values(objects).reduce((sum, [, ...some]) => sum + some.length, 20);
    assert.ok(
      client.writes.length <= 6 * count,
      `${client.writes.length} writes in a minute: ${JSON.stringify(client.writes.slice(-3))}`,
    );
    assert.ok(added <= 40 * count, `${added} keys in a minute for ${count} objects`);
    assert.deepEqual(failures, []);
  });
}
