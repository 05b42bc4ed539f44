import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ControllerRevision, DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { controllerRevisions, daemonSets, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDaemonSet, aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { revisionData } from "../../history/revision-data.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newDaemonSetController } from "./controller.ts";
import { targetNodeOf } from "./pod-template.ts";

const stored = ({ client }: TestContext): DaemonSet => client.object<DaemonSet>(daemonSets, "default/agent") as DaemonSet;
const revisions = ({ client }: TestContext): number[] =>
  client
    .objects<ControllerRevision>(controllerRevisions)
    .map(({ revision }) => revision)
    .toSorted();
const onNodes = ({ client }: TestContext): (string | undefined)[] => client.objects<Pod>(pods).map(targetNodeOf).toSorted();

async function running(world: TestContext, daemonSet: DaemonSet, ...names: string[]): Promise<void> {
  for (const name of names) world.client.put(nodes, aNode({ name }));
  world.client.put(daemonSets, daemonSet);
  await world.run(newDaemonSetController(world.ctx));
}

async function setImage(world: TestContext, image: string): Promise<void> {
  const { metadata, ...rest } = stored(world);
  const generation = (metadata.generation ?? 0) + 1;
  const { template } = aDaemonSet({ image }).spec;
  world.client.put(daemonSets, { ...rest, metadata: { ...metadata, generation }, spec: { ...rest.spec, template } });
  await settle(60);
}

test("nothing is tried again in a namespace that is being deleted", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "controllerrevisions", () => {
    tries++;
    const { status } = forbidden(controllerRevisions, "agent", "the namespace is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  await running(world, aDaemonSet(), "a");
  await world.clock.advance(60_000);
  assert.equal(tries, 1);
});

test("a pod that waits for a node that is deleted is deleted, and the node no longer counted", async (t) => {
  const world = newTestContext(t);
  await running(world, aDaemonSet(), "a", "b");
  assert.deepEqual(onNodes(world), ["a", "b"]);
  world.client.remove(nodes, "b");
  await settle(60);
  assert.deepEqual([onNodes(world), stored(world).status?.desiredNumberScheduled], [["a"], 1]);
});

test("no more than 250 pods are created in one reconciliation; the rest follows", async (t) => {
  const world = newTestContext(t);
  let [creates, before] = [0, 0];
  world.client.react("create", "pods", () => void creates++);
  world.client.react("update", "daemonsets", () => {
    before ||= creates;
    return undefined;
  });
  await running(world, aDaemonSet(), ...Array.from({ length: 260 }, (_, i) => `n${i}`));
  await settle(300);
  assert.deepEqual([before, creates], [250, 260]);
});

test("no more than 250 pods are deleted in one reconciliation; the rest follows", async (t) => {
  const world = newTestContext(t);
  await running(world, aDaemonSet(), ...Array.from({ length: 260 }, (_, i) => `n${i}`));
  await settle(300);
  let [deletes, before] = [0, 0];
  world.client.react("delete", "pods", () => void deletes++);
  world.client.react("update", "daemonsets", () => {
    before ||= deletes;
    return undefined;
  });
  const { spec, ...rest } = stored(world);
  const { template } = aDaemonSet().spec;
  const nowhere = { ...template, spec: { ...(template.spec as PodSpec), nodeSelector: { none: "has" } } };
  world.client.put(daemonSets, { ...rest, spec: { ...spec, template: nowhere } });
  await settle(300);
  assert.deepEqual([before, deletes], [250, 260]);
});

test("a revision without the label of its hash gets its name as hash, and so do the pods", async (t) => {
  const world = newTestContext(t);
  const daemonSet = aDaemonSet();
  const { uid = "" } = daemonSet.metadata;
  world.client.put(controllerRevisions, {
    metadata: {
      name: "agent-older",
      namespace: "default",
      uid: "r",
      labels: { app: "agent" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "agent", uid, controller: true }],
    },
    revision: 1,
    data: revisionData(daemonSet.spec.template),
  });
  let created = 0;
  world.client.react("create", "pods", () => {
    if (++created > 1) throw forbidden(pods, "agent", "created over and over");
    return undefined;
  });
  await running(world, daemonSet, "a");
  const label = "controller-revision-hash";
  assert.deepEqual(
    [...world.client.objects(controllerRevisions), ...world.client.objects(pods)].map(({ metadata }) => metadata.labels?.[label]),
    ["agent-older", "agent-older"],
  );
});

test("of two revisions of one template the newer is kept and gets the pods of the other, not those of older templates", async (t) => {
  const world = newTestContext(t);
  const label = "controller-revision-hash";
  const daemonSet = aDaemonSet({ spec: { updateStrategy: { type: "OnDelete" } } });
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "agent", uid: daemonSet.metadata.uid ?? "", controller: true };
  const ofAgent = (name: string, hash: string) => ({
    ...{ name, namespace: "default", uid: name, ownerReferences: [owner] },
    labels: { app: "agent", [label]: hash },
  });
  for (const [i, [hash, image]] of [
    ["old", "v0"],
    ["second", "busybox"],
    ["third", "busybox"],
  ].entries()) {
    const data = revisionData(aDaemonSet({ image: image! }).spec.template);
    world.client.put(controllerRevisions, { metadata: ofAgent(`agent-${hash}`, hash!), revision: i + 1, data });
  }
  for (const [node, hash] of Object.entries({ a: "old", b: "second", c: "third" })) {
    const { spec } = aPod({ name: node, nodeName: node });
    world.client.put(pods, { metadata: ofAgent(node, hash), spec, status: { phase: "Running" } });
  }
  await running(world, daemonSet, "a", "b", "c");
  assert.deepEqual(
    world.client.objects(pods).map(({ metadata }) => [metadata.name, metadata.labels?.[label]]),
    [
      ["a", "old"],
      ["b", "third"],
      ["c", "third"],
    ],
  );
  assert.deepEqual(revisions(world), [1, 3]);
});

test("a revision that a pod still has is kept beyond the history limit, another one is not", async (t) => {
  const world = newTestContext(t);
  const spec = { updateStrategy: { type: "OnDelete" }, revisionHistoryLimit: 0 };
  await running(world, aDaemonSet({ image: "v1", spec }), "a");
  for (const image of ["v2", "v3"]) await setImage(world, image);
  assert.deepEqual(revisions(world), [1, 3]);
  world.client.put(nodes, aNode({ name: "b" })); // its pod has the third
  await settle(60);
  await setImage(world, "v4");
  assert.deepEqual(revisions(world), [1, 3, 4], "that of each pod");
});

test("a pod that could not be deleted is deleted later, though nothing changes", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("delete", "pods", () => {
    if (++tries === 1) throw serviceUnavailable("away");
    return undefined;
  });
  await running(world, aDaemonSet(), "a");
  const [pod] = world.client.objects<Pod>(pods) as [Pod];
  world.client.put(pods, { ...pod, spec: { ...pod.spec, nodeName: "a" }, status: { phase: "Failed" } });
  await settle(30);
  await world.clock.advance(60_000);
  await settle(60);
  assert.equal(tries, 2);
  assert.notEqual(world.client.objects<Pod>(pods)[0]?.metadata.name, pod.metadata.name);
});

test("pods that are seen while an orphan is adopted are not created once more", async (t) => {
  const world = newTestContext(t);
  const { client } = world;
  const daemonSet = aDaemonSet({ spec: { updateStrategy: { type: "OnDelete" } } });
  const own = (name: string, nodeName: string): Pod =>
    aPod({ name, nodeName, owner: daemonSet, labels: { app: "agent", "controller-revision-hash": "x" } });
  let created = 0;
  client.react("create", "pods", () => own(`unseen-${++created}`, "b"));
  client.react("patch", "pods", () => {
    client.put(pods, own("unseen-1", "a"), own("unseen-2", "b"));
    return settle(30).then(() => own("orphan", "a"));
  });
  await running(world, daemonSet, "a", "b");
  assert.equal(created, 2);
  client.put(pods, aPod({ name: "orphan", nodeName: "a", labels: { app: "agent" } }));
  await settle(90);
  assert.equal(created, 2);
});

test("a creation that was not seen for five minutes is made up for without an event, and a decision says what is awaited", async (t) => {
  const world = newTestContext(t);
  let created = 0;
  world.client.react("create", "pods", () => aPod({ name: `unseen-${++created}` }));
  await running(world, aDaemonSet(), "a");
  world.client.put(daemonSets, { ...stored(world), metadata: { ...stored(world).metadata, labels: { touched: "yes" } } });
  await settle(60);
  const theSet = { group: "apps", resource: "daemonsets", kind: "DaemonSet", namespace: "default", name: "agent", uid: "" };
  assert.equal(world.ctx.decisions.of(theSet)[0]?.reason, "ExpectationsPending");
  await world.clock.advance(301_000);
  await settle(60);
  assert.equal(created, 2);
});

test("a failed pod is replaced after its back-off, which a decision names", async (t) => {
  const world = newTestContext(t);
  await running(world, aDaemonSet(), "a");
  for (let i = 0; i < 2; i++) {
    const [pod] = world.client.objects<Pod>(pods) as [Pod];
    world.client.put(pods, { ...pod, spec: { ...pod.spec, nodeName: "a" }, status: { phase: "Failed" } });
    await settle(60);
  }
  const theSet = { group: "apps", resource: "daemonsets", kind: "DaemonSet", namespace: "default", name: "agent", uid: "" };
  assert.equal(world.ctx.decisions.of(theSet)[0]?.reason, "FailedPodBackOff");
  await world.clock.advance(1_000);
  await settle(60);
  assert.deepEqual(
    world.client.objects<Pod>(pods).map(({ status }) => status?.phase),
    [undefined],
  );
});
