import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, replicaSets, replicationControllers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newReplicationControllerController } from "../replicationcontroller/controller.ts";
import { newReplicaSetController } from "./controller.ts";

test("creates what is missing, once, and counts it in the status", async (t) => {
  const { client, ctx, run, events } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 3, generation: 2 }));
  await run(newReplicaSetController(ctx));
  assert.equal(client.objects(pods).length, 3);
  assert.equal(events.filter((event) => event.startsWith("Normal SuccessfulCreate Created pod: web-")).length, 3);
  assert.partialDeepStrictEqual(client.object<ReplicaSet>(replicaSets, "default/web")?.status, {
    replicas: 3,
    fullyLabeledReplicas: 3,
    observedGeneration: 2,
  });
});

test("does not create twice what its cache does not show yet, and creates it again when it does not show it for five minutes", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  let created = 0;
  client.react("create", "pods", () => {
    created++;
    return aPod({ name: `unseen-${created}` }); // not stored, so no watch event follows
  });
  await run(newReplicaSetController(ctx));
  client.put(replicaSets, aReplicaSet({ replicas: 2, labels: { touched: "yes" } }));
  await settle(30);
  assert.equal(created, 2);
  await clock.advance(299_000);
  await settle(30);
  assert.equal(created, 2);
  await clock.advance(2_000);
  await settle(30);
  assert.equal(created, 4);
});

test("one that is made again under its name at once does not wait for what the former one created", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  let created = 0;
  client.react("create", "pods", () => aPod({ name: `unseen-${++created}` })); // not stored, so no watch event follows
  await run(newReplicaSetController(ctx));
  assert.equal(created, 2);
  // One list shows both: nothing is reconciled in between.
  client.endWatches();
  client.remove(replicaSets, "default/web");
  const again = aReplicaSet({ replicas: 2 });
  client.put(replicaSets, { ...again, metadata: { ...again.metadata, uid: "another" } });
  client.compact();
  await settle(30);
  await clock.advance(5_000);
  await settle(30);
  assert.equal(created, 4);
});

test("replaces a pod that went, and one that failed", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  await run(newReplicaSetController(ctx));
  const [first, second] = client.objects<Pod>(pods);
  client.remove(pods, `default/${first?.metadata.name}`);
  client.put(pods, { ...(second as Pod), status: { phase: "Failed" } });
  await settle(30);
  const active = client.objects<Pod>(pods).filter(({ status }) => status?.phase !== "Failed");
  assert.equal(active.length, 2);
});

test("deletes the surplus", async (t) => {
  const { client, ctx, run, events } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 3 }));
  await run(newReplicaSetController(ctx));
  client.put(replicaSets, {
    ...(client.object<ReplicaSet>(replicaSets, "default/web") as ReplicaSet),
    spec: aReplicaSet({ replicas: 1 }).spec,
  });
  await settle(30);
  assert.equal(client.objects(pods).length, 1);
  assert.equal(events.filter((event) => event.startsWith("Normal SuccessfulDelete Deleted pod: ")).length, 2);
});

test("without an owner it does not consider where related pods run", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const owner = aReplicaSet({ replicas: 1 });
  // Two Pods share a node; among Pods of the same age the one with the lowest uid is deleted.
  const common = { owner, labels: { app: "web" }, createdAt: "2021-01-01T00:00:00Z", readySince: "2021-01-01T00:00:00Z" };
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  client.put(
    pods,
    aPod({ ...common, name: "alone", uid: "a", nodeName: "n1" }),
    aPod({ ...common, name: "together", uid: "b", nodeName: "n2" }),
    aPod({ ...common, name: "too", uid: "c", nodeName: "n2" }),
  );
  await run(newReplicaSetController(ctx));
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["together", "too"],
  );
});

test("continues when a surplus pod is deleted already and no event will follow", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const owner = aReplicaSet({ replicas: 1 });
  client.put(replicaSets, owner);
  const labels = { app: "web" };
  client.put(pods, aPod({ name: "a", owner, labels }), aPod({ name: "b", owner, labels }));
  client.react("delete", "pods", ({ name = "" }) => {
    throw notFound(pods, name); // its event was handled before the expectation was recorded
  });
  await run(newReplicaSetController(ctx));
  client.put(replicaSets, aReplicaSet({ replicas: 3 }));
  await settle(30);
  assert.equal(client.objects(pods).length, 3);
});

test("reports when it may not create, and keeps trying", async (t) => {
  const { client, clock, ctx, run, events } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 3 }));
  let refuse = true;
  client.react("create", "pods", () => {
    if (refuse) throw forbidden(pods, "", "exceeded quota");
    return undefined;
  });
  await run(newReplicaSetController(ctx));
  const status = client.object<ReplicaSet>(replicaSets, "default/web")?.status;
  assert.partialDeepStrictEqual(status?.conditions?.[0], { type: "ReplicaFailure", status: "True", reason: "FailedCreate" });
  assert.ok(events.some((event) => event.startsWith("Warning FailedCreate Error creating: ")));
  refuse = false;
  await clock.advance(1000);
  assert.equal(client.objects(pods).length, 3);
  assert.equal(client.object<ReplicaSet>(replicaSets, "default/web")?.status?.conditions, undefined);
});

test("reports when it may not delete, and keeps trying", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 1 }));
  await run(newReplicaSetController(ctx));
  let refuse = true;
  client.react("delete", "pods", () => {
    if (refuse) throw forbidden(pods, "web", "not you");
    return undefined;
  });
  const statusNow = () => client.object<ReplicaSet>(replicaSets, "default/web")?.status;
  client.put(replicaSets, {
    ...(client.object<ReplicaSet>(replicaSets, "default/web") as ReplicaSet),
    spec: aReplicaSet({ replicas: 0 }).spec,
  });
  await settle(30);
  assert.partialDeepStrictEqual(statusNow()?.conditions?.[0], { type: "ReplicaFailure", status: "True", reason: "FailedDelete" });
  assert.equal(statusNow()?.replicas, 1);
  refuse = false;
  await clock.advance(1000);
  assert.equal(client.objects(pods).length, 0);
  assert.equal(statusNow()?.conditions, undefined);
});

test("adopts orphans that it selects instead of creating", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  client.put(pods, aPod({ name: "orphan", labels: { app: "web" } }));
  await run(newReplicaSetController(ctx));
  assert.equal(client.objects(pods).length, 2);
  assert.equal(client.object<Pod>(pods, "default/orphan")?.metadata.ownerReferences?.[0]?.name, "web");
});

test("lets go of a pod whose labels changed, and replaces it", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 1 }));
  await run(newReplicaSetController(ctx));
  const [pod] = client.objects<Pod>(pods) as [Pod];
  client.put(pods, { ...pod, metadata: { ...pod.metadata, labels: { app: "debug" } } });
  await settle(30);
  assert.deepEqual(client.object<Pod>(pods, `default/${pod.metadata.name}`)?.metadata.ownerReferences ?? [], []);
  assert.equal(client.objects(pods).length, 2);
});

test("creates nothing once it is being deleted", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2, deletedAt: "2022-01-01T00:00:00Z", finalizers: ["x"] }));
  await run(newReplicaSetController(ctx));
  assert.equal(client.objects(pods).length, 0);
});

test("counts a pod as available only after minReadySeconds, without an event", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 1, minReadySeconds: 30 }));
  await run(newReplicaSetController(ctx));
  const [pod] = client.objects<Pod>(pods) as [Pod];
  const ready = { type: "Ready", status: "True" as const, lastTransitionTime: "2022-01-01T00:00:00Z" };
  client.put(pods, { ...pod, status: { phase: "Running", conditions: [ready] } });
  await settle(30);
  const available = () => client.object<ReplicaSet>(replicaSets, "default/web")?.status?.availableReplicas;
  assert.equal(available(), 0);
  await clock.advance(31_000);
  assert.equal(available(), 1);
});

test("a replication controller does the same", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const { metadata, spec } = aReplicaSet({ replicas: 2 });
  client.put(replicationControllers, { metadata, spec: { ...spec, selector: { app: "web" } } });
  await run(newReplicationControllerController(ctx));
  assert.equal(client.objects(pods).length, 2);
  assert.equal(client.objects<Pod>(pods)[0]?.metadata.ownerReferences?.[0]?.kind, "ReplicationController");
});

test("writes nothing when an event changes neither pods nor counts", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  await run(newReplicaSetController(ctx));
  client.clearActions();
  const stored = client.object<ReplicaSet>(replicaSets, "default/web") as ReplicaSet;
  client.put(replicaSets, { ...stored, metadata: { ...stored.metadata, labels: { touched: "yes" } } });
  await settle(30);
  assert.deepEqual(client.writes, []);
});

test("a status write that failed is retried, and creates no pod a second time", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 2 }));
  let failures = 0;
  client.react("update", "replicasets", ({ subresource }) => {
    if (subresource !== "status" || failures++ > 0) return undefined;
    throw serviceUnavailable("the server is away");
  });
  await run(newReplicaSetController(ctx));
  await clock.advance(1000);
  await settle(30);
  assert.equal(client.objects(pods).length, 2);
  assert.equal(client.object<ReplicaSet>(replicaSets, "default/web")?.status?.replicas, 2);
});

test("pods that are seen while an orphan is adopted are not created once more", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const owner = aReplicaSet({ replicas: 2 });
  client.put(replicaSets, owner);
  let created = 0;
  client.react("create", "pods", () => aPod({ name: `unseen-${++created}` }));
  client.react("patch", "pods", () => {
    for (const name of ["unseen-1", "unseen-2"]) client.put(pods, aPod({ name, owner, labels: { app: "web" } }));
    return new Promise((resolve) => void settle(30).then(() => resolve(aPod({ name: "orphan", owner, labels: { app: "web" } }))));
  });
  await run(newReplicaSetController(ctx));
  client.put(pods, aPod({ name: "orphan", labels: { app: "web" } }));
  await settle(60);
  assert.equal(created, 2);
});

test("a deletion that is not seen is repeated, and does not wait for minReadySeconds", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  const status = { replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, observedGeneration: 0 };
  const owner = { ...aReplicaSet({ replicas: 1, minReadySeconds: 3600 }), status }; // no status is written, so no event follows
  const readySince = "2022-01-01T00:00:00Z";
  client.put(replicaSets, owner);
  client.put(pods, aPod({ name: "ready", owner, labels: { app: "web" }, readySince }));
  client.put(pods, aPod({ name: "surplus", owner, labels: { app: "web" }, ready: false }));
  let unseen = 1;
  client.react("delete", "pods", () => (unseen-- > 0 ? {} : undefined));
  await run(newReplicaSetController(ctx));
  assert.equal(client.objects(pods).length, 2);
  await clock.advance(301_000);
  await settle(30);
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["ready"],
  );
});

test("deletes the pod on the node where most pods of all sets of its deployment run", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const deployment = aDeployment();
  const [set, sibling] = ["web", "sibling"].map((name) =>
    aReplicaSet({ name, replicas: name === "web" ? 1 : 2, owner: deployment }),
  );
  const common = { createdAt: "2021-01-01T00:00:00Z", readySince: "2021-01-01T00:00:00Z" };
  const podOf = (owner: ReplicaSet | undefined, name: string, nodeName: string) =>
    aPod({ ...common, name, uid: name, nodeName, labels: { app: "web" }, ...(owner && { owner }) });
  client.put(replicaSets, set as ReplicaSet, sibling as ReplicaSet);
  client.put(pods, podOf(set, "a", "n1"), podOf(set, "b", "n2"), podOf(sibling, "c", "n2"), podOf(sibling, "d", "n2"));
  await run(newReplicaSetController(ctx));
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["a", "c", "d"],
  );
});

test("a pod that ended is not adopted", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, aReplicaSet({ replicas: 1 }));
  client.put(pods, aPod({ name: "ended", labels: { app: "web" }, phase: "Succeeded" }));
  await run(newReplicaSetController(ctx));
  assert.equal(client.object<Pod>(pods, "default/ended")?.metadata.ownerReferences, undefined);
  assert.equal(client.objects(pods).length, 2);
});

test("a pod that was ready before the controller started counts as available after minReadySeconds, and a decision says so", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  const owner = aReplicaSet({ replicas: 1, minReadySeconds: 30 });
  client.put(replicaSets, owner);
  const readySince = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  client.put(pods, aPod({ name: "ready", owner, labels: { app: "web" }, readySince }));
  await run(newReplicaSetController(ctx));
  const available = () => client.object<ReplicaSet>(replicaSets, "default/web")?.status?.availableReplicas;
  assert.equal(available(), 0);
  const theSet = { group: "apps", resource: "replicasets", kind: "ReplicaSet", namespace: "default", name: "web", uid: "" };
  assert.equal(
    ctx.decisions.of(theSet)[0]?.summary,
    "1 ready pods do not count as available before minReadySeconds (30 s) have passed",
  );
  await clock.advance(31_000);
  await settle(30);
  assert.equal(available(), 1);
});
