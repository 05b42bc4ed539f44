import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ControllerRevision, DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { controllerRevisions, daemonSets, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDaemonSet, aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { countingLooks } from "../../testing/looks.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newDaemonSetController } from "./controller.ts";
import { targetNodeOf } from "./pod-template.ts";

const key = "default/agent";
const stored = ({ client }: TestContext): DaemonSet => client.object<DaemonSet>(daemonSets, key) as DaemonSet;
const running = ({ client }: TestContext): Pod[] => client.objects<Pod>(pods);
const revisions = ({ client }: TestContext): ControllerRevision[] =>
  client.objects<ControllerRevision>(controllerRevisions).toSorted((a, b) => a.revision - b.revision);
const images = (world: TestContext): Record<string, string> =>
  Object.fromEntries(running(world).map((pod) => [targetNodeOf(pod) ?? "", pod.spec.containers[0]?.image ?? ""]));

async function start(
  t: { after(fn: () => void): void },
  daemonSet: DaemonSet,
  nodeNames: readonly string[] = ["a", "b", "c"],
): Promise<TestContext> {
  const world = newTestContext(t);
  for (const name of nodeNames) world.client.put(nodes, aNode({ name }));
  world.client.put(daemonSets, daemonSet);
  await world.run(newDaemonSetController(world.ctx));
  return world;
}

/** Stands in for scheduler and kubelets: every Pod is scheduled, runs and is ready. */
async function makeReady(world: TestContext, which: (pod: Pod) => boolean = () => true): Promise<void> {
  for (let quiet = 0; quiet < 2; ) {
    const waiting = running(world).filter((pod) => pod.status?.conditions === undefined && which(pod));
    quiet = waiting.length === 0 ? quiet + 1 : 0;
    for (const pod of waiting) {
      world.client.put(pods, {
        ...pod,
        spec: { ...pod.spec, nodeName: targetNodeOf(pod) ?? "" },
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: "True", lastTransitionTime: pod.metadata.creationTimestamp }],
        },
      });
    }
    await settle(30);
  }
}

function change(world: TestContext, edit: (daemonSet: DaemonSet) => void): Promise<void> {
  const daemonSet = deepClone(stored(world));
  edit(daemonSet);
  daemonSet.metadata.generation = (daemonSet.metadata.generation ?? 0) + 1;
  world.client.put(daemonSets, daemonSet);
  return settle(30);
}
const setImage = (image: string) => (daemonSet: DaemonSet) => {
  (daemonSet.spec.template.spec?.containers[0] as { image: string }).image = image;
};

test("puts a pod on each node, of a revision that it keeps, and counts them", async (t) => {
  const world = await start(t, aDaemonSet({ generation: 3, annotations: { "kubernetes.io/change-cause": "first" } }));
  assert.deepEqual(Object.keys(images(world)).toSorted(), ["a", "b", "c"]);
  const [revision] = revisions(world) as [ControllerRevision];
  hasFields(revision, {
    revision: 1,
    metadata: { annotations: { "kubernetes.io/change-cause": "first" }, ownerReferences: [{ kind: "DaemonSet", name: "agent" }] },
  });
  const hash = revision.metadata.labels?.["controller-revision-hash"];
  assert.equal(revision.metadata.name, `agent-${hash}`);
  for (const pod of running(world)) {
    assert.equal(pod.metadata.labels?.["controller-revision-hash"], hash);
    assert.match(pod.metadata.name ?? "", /^agent-/);
  }
  assert.equal(world.events.filter((event) => event.startsWith("Normal SuccessfulCreate Created pod: agent-")).length, 3);
  await makeReady(world);
  assert.partialDeepStrictEqual(stored(world).status, {
    observedGeneration: 3,
    desiredNumberScheduled: 3,
    currentNumberScheduled: 3,
    updatedNumberScheduled: 3,
    numberReady: 3,
    numberAvailable: 3,
    numberMisscheduled: 0,
  });
  const writes = world.client.writes.length;
  await change(world, () => {});
  assert.equal(world.client.writes.length, writes + 1, "only the observed generation is written");
});

test("follows nodes that come, get labels and taints, and go", async (t) => {
  const world = await start(t, aDaemonSet({ template: { nodeSelector: { disk: "ssd" } } }), []);
  const put = async (node: Node): Promise<string[]> => {
    world.client.put(nodes, node);
    await settle(30);
    await makeReady(world);
    return Object.keys(images(world)).toSorted();
  };
  assert.deepEqual(await put(aNode({ name: "a", labels: { disk: "ssd" } })), ["a"]);
  assert.deepEqual(await put(aNode({ name: "b" })), ["a"]);
  assert.deepEqual(await put(aNode({ name: "b", labels: { disk: "ssd" } })), ["a", "b"]);
  const tainted = aNode({ name: "b", labels: { disk: "ssd" }, taints: [{ key: "x", effect: "NoSchedule" }] });
  assert.deepEqual(await put(tainted), ["a", "b"]);
  assert.equal(stored(world).status?.numberMisscheduled, 1);
  const evicting = aNode({ name: "b", labels: { disk: "ssd" }, taints: [{ key: "x", effect: "NoExecute" }] });
  assert.deepEqual(await put(evicting), ["a"]);
  assert.deepEqual(await put(aNode({ name: "a" })), []);
  assert.equal(stored(world).status?.desiredNumberScheduled, 0);
});

test("counts the pods that are there when the status is written, not those that were when the changes began", async (t) => {
  const world = await start(t, aDaemonSet(), ["a", "b"]);
  await makeReady(world);
  const written: (number | undefined)[] = [];
  world.client.react("update", "daemonsets", ({ sent }) => void written.push((sent as DaemonSet).status?.numberReady));
  let isFirst = true;
  world.client.react("create", "pods", ({ sent }) => {
    if (!isFirst) return undefined;
    isFirst = false;
    for (const { metadata } of running(world)) world.client.remove(pods, `default/${metadata.name}`);
    const created = { ...(sent as Pod), metadata: { ...(sent as Pod).metadata, name: "agent-c", uid: "c" } };
    return settle(30).then(() => {
      world.client.put(pods, created);
      return created;
    });
  });
  world.client.put(nodes, aNode({ name: "c" }));
  await settle(90);
  assert.equal(written[0], 0);
  await makeReady(world);
  assert.deepEqual([written.at(-1), Object.keys(images(world)).toSorted()], [3, ["a", "b", "c"]]);
});

test("rolls a new template out, never more nodes without a pod than it may", async (t) => {
  const rollingUpdate = { maxUnavailable: 1, maxSurge: 0 };
  const world = await start(t, aDaemonSet({ image: "v1", spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate } } }));
  await makeReady(world);
  let fewest = 3;
  world.client.react("*", "pods", () => {
    fewest = Math.min(fewest, running(world).filter(({ status }) => status?.phase === "Running").length);
    return undefined;
  });
  await change(world, setImage("v2"));
  await makeReady(world);
  assert.deepEqual(images(world), { a: "v2", b: "v2", c: "v2" });
  assert.equal(fewest, 2);
  assert.equal(stored(world).status?.updatedNumberScheduled, 3);
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [1, 2],
  );
});

test("surges: the old pod is deleted when the new one on its node is ready", async (t) => {
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
  const world = await start(t, aDaemonSet({ image: "v1", spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate } } }));
  await makeReady(world);
  await change(world, setImage("v2"));
  assert.equal(running(world).length, 4);
  const serving = (): number =>
    new Set(
      running(world)
        .filter(({ status }) => status?.phase === "Running")
        .map(targetNodeOf),
    ).size;
  let fewest = 3;
  world.client.react("*", "pods", () => {
    fewest = Math.min(fewest, serving());
    return undefined;
  });
  await makeReady(world);
  assert.deepEqual(images(world), { a: "v2", b: "v2", c: "v2" });
  assert.deepEqual([running(world).length, fewest], [3, 3]);
});

test("with OnDelete a new template is for the next pod on a node", async (t) => {
  const world = await start(t, aDaemonSet({ image: "v1", spec: { updateStrategy: { type: "OnDelete" } } }), ["a", "b"]);
  await makeReady(world);
  await change(world, setImage("v2"));
  assert.deepEqual(images(world), { a: "v1", b: "v1" });
  assert.equal(stored(world).status?.updatedNumberScheduled ?? 0, 0);
  const [onA] = running(world).filter((pod) => targetNodeOf(pod) === "a") as [Pod];
  world.client.remove(pods, `default/${onA.metadata.name}`);
  await settle(30);
  assert.deepEqual(images(world), { a: "v2", b: "v1" });
});

test("returns to an earlier revision under a new number, and keeps only revisionHistoryLimit", async (t) => {
  const world = await start(t, aDaemonSet({ image: "v1", spec: { revisionHistoryLimit: 1 } }), ["a"]);
  await makeReady(world);
  const first = revisions(world)[0]?.metadata.name;
  await change(world, setImage("v2"));
  await makeReady(world);
  await change(world, setImage("v1"));
  await makeReady(world);
  assert.deepEqual(images(world), { a: "v1" });
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [2, 3],
  );
  assert.equal(revisions(world).at(-1)?.metadata.name, first);
  await change(world, setImage("v3"));
  await makeReady(world);
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [3, 4],
  );
});

test("rolls back before a rollout is complete without touching pods that were not updated", async (t) => {
  const world = await start(t, aDaemonSet({ image: "v1" }));
  await makeReady(world);
  const before = new Map(running(world).map((pod) => [targetNodeOf(pod), pod.metadata.uid]));
  await change(world, setImage("broken"));
  const [moved] = Object.entries(images(world)).filter(([, image]) => image === "broken");
  assert.deepEqual(Object.values(images(world)).toSorted(), ["broken", "v1", "v1"]);
  await change(world, setImage("v1"));
  await makeReady(world);
  assert.deepEqual(images(world), { a: "v1", b: "v1", c: "v1" });
  for (const pod of running(world)) {
    const node = targetNodeOf(pod);
    assert.equal(pod.metadata.uid === before.get(node), node !== moved?.[0], `the pod on ${node}`);
  }
});

test("counts a name that another revision has, and takes the next hash", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "a" }));
  let name = "";
  world.client.react("create", "controllerrevisions", ({ sent }) => {
    if (name !== "") return undefined;
    name = (sent as ControllerRevision).metadata.name ?? "";
    const metadata = { name, namespace: "default", uid: "other" };
    world.client.put(controllerRevisions, { metadata, revision: 1, data: { spec: { template: {} } } });
    return undefined;
  });
  world.client.put(daemonSets, aDaemonSet());
  await world.run(newDaemonSetController(world.ctx));
  assert.equal(stored(world).status?.collisionCount, 1);
  await world.clock.advance(1000);
  assert.equal(running(world).length, 1);
  assert.notEqual(`agent-${running(world)[0]?.metadata.labels?.["controller-revision-hash"]}`, name);
  assert.equal(stored(world).status?.collisionCount, 1);
});

test("makes one of several revisions of the same template", async (t) => {
  const world = await start(t, aDaemonSet(), ["a"]);
  await makeReady(world);
  const [before] = running(world);
  const [revision] = revisions(world) as [ControllerRevision];
  const twin = deepClone(revision);
  twin.metadata = {
    ...twin.metadata,
    name: "agent-twin",
    uid: "twin",
    labels: { ...twin.metadata.labels, "controller-revision-hash": "twin" },
  };
  world.client.put(controllerRevisions, { ...twin, revision: 5 });
  await settle(30);
  assert.deepEqual(
    revisions(world).map(({ metadata }) => metadata.name),
    ["agent-twin"],
  );
  const [pod] = running(world) as [Pod];
  assert.equal(pod.metadata.labels?.["controller-revision-hash"], "twin");
  assert.deepEqual(
    running(world).map(({ metadata }) => metadata.uid),
    [before?.metadata.uid],
    "its pod is relabelled, not replaced",
  );
});

test("replaces a pod that failed, and waits longer when it fails again", async (t) => {
  const world = await start(t, aDaemonSet(), ["a"]);
  const fail = async (): Promise<string> => {
    const [pod] = running(world) as [Pod];
    world.client.put(pods, { ...pod, spec: { ...pod.spec, nodeName: "a" }, status: { phase: "Failed" } });
    await settle(30);
    return pod.metadata.name ?? "";
  };
  const first = await fail();
  const failure = `Warning FailedDaemonPod Found failed daemon pod default/${first} on node a, will try to kill it`;
  assert.match(world.regarding[world.events.indexOf(failure)] ?? "", /^DaemonSet /);
  assert.equal(running(world).length, 1);
  const second = await fail();
  assert.notEqual(second, first);
  assert.equal(running(world)[0]?.metadata.name, second, "it has to wait");
  await world.clock.advance(1100);
  assert.equal(running(world).length, 1);
  assert.notEqual(running(world)[0]?.metadata.name, second);
});

test("a failed pod of a new generation does not wait for the back-off of the former one", async (t) => {
  const world = await start(t, aDaemonSet(), ["a"]);
  const fail = async (): Promise<string> => {
    const [pod] = running(world) as [Pod];
    world.client.put(pods, { ...pod, spec: { ...pod.spec, nodeName: "a" }, status: { phase: "Failed" } });
    await settle(30);
    return pod.metadata.name ?? "";
  };
  await fail();
  const failed = await fail();
  assert.equal(running(world)[0]?.metadata.name, failed, "it has to wait");
  await change(world, (daemonSet) => {
    daemonSet.spec.minReadySeconds = 1;
  });
  assert.notEqual(running(world)[0]?.metadata.name, failed);
});

test("a pod counts as available that became so while the changes took their time", async (t) => {
  const world = await start(t, aDaemonSet({ spec: { minReadySeconds: 30 } }), ["a"]);
  await makeReady(world);
  const written: (number | undefined)[] = [];
  world.client.react("update", "daemonsets", ({ sent }) => void written.push((sent as DaemonSet).status?.numberAvailable));
  world.client.react("create", "pods", () => new Promise((resolve) => void world.clock.after(40_000, () => resolve(undefined))));
  world.client.put(nodes, aNode({ name: "b" }));
  await world.clock.advance(40_000);
  await settle(60);
  assert.deepEqual(written, [1]);
});

test("a pod that failed on one node does not make another node's wait", async (t) => {
  const world = await start(t, aDaemonSet(), ["a", "b"]);
  for (const name of ["a", "b"]) {
    const pod = running(world).find((one) => targetNodeOf(one) === name) as Pod;
    world.client.put(pods, { ...pod, spec: { ...pod.spec, nodeName: name }, status: { phase: "Failed" } });
    await settle(30);
  }
  assert.deepEqual(
    running(world).map(({ status }) => status?.phase),
    [undefined, undefined],
  );
});

test("adopts what it selects, and lets go of what it does not any more", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "a" }));
  world.client.put(pods, aPod({ name: "orphan", labels: { app: "agent" }, nodeName: "a" }));
  world.client.put(daemonSets, aDaemonSet({ spec: { updateStrategy: { type: "OnDelete" } } }));
  await world.run(newDaemonSetController(world.ctx));
  const orphan = () => world.client.object<Pod>(pods, "default/orphan") as Pod;
  assert.equal(orphan().metadata.ownerReferences?.[0]?.name, "agent");
  assert.equal(running(world).length, 1);
  world.client.put(pods, { ...orphan(), metadata: { ...orphan().metadata, labels: { app: "debug" } } });
  await settle(30);
  assert.deepEqual(orphan().metadata.ownerReferences ?? [], []);
  assert.equal(running(world).length, 2);
});

test("does not create twice what its cache does not show yet, and creates it again when it does not show it for five minutes", async (t) => {
  const world = newTestContext(t);
  for (const name of ["a", "b"]) world.client.put(nodes, aNode({ name }));
  let created = 0;
  world.client.react("create", "pods", () => {
    created++;
    return aPod({ name: `unseen-${created}` }); // not stored, so no watch event follows
  });
  world.client.put(daemonSets, aDaemonSet());
  await world.run(newDaemonSetController(world.ctx));
  await change(world, ({ metadata }) => {
    metadata.labels = { touched: "yes" };
  });
  assert.equal(created, 2);
  await world.clock.advance(301_000);
  await settle(30);
  assert.equal(created, 4);
});

test("tries one refused pod at first, and the others once it is admitted", async (t) => {
  const world = newTestContext(t);
  for (const name of ["a", "b", "c"]) world.client.put(nodes, aNode({ name }));
  let refused = 0;
  let refuse = true;
  world.client.react("create", "pods", () => {
    if (!refuse) return undefined;
    refused++;
    throw forbidden(pods, "", "exceeded quota");
  });
  world.client.put(daemonSets, aDaemonSet());
  await world.run(newDaemonSetController(world.ctx));
  assert.ok(refused <= 2, `${refused} of three at once, at two looks: the second is for the status`);
  assert.ok(world.events.some((event) => event.startsWith("Warning FailedCreate Error creating: ")));
  assert.equal(stored(world).status?.desiredNumberScheduled, 3, "the status says so nevertheless");
  refuse = false;
  await world.clock.advance(1000);
  assert.equal(running(world).length, 3);
});

test("counts a pod as available only after minReadySeconds, without an event", async (t) => {
  const world = await start(t, aDaemonSet({ spec: { minReadySeconds: 30 } }), ["a"]);
  await makeReady(world);
  const counts = () => [stored(world).status?.numberAvailable ?? 0, stored(world).status?.numberUnavailable ?? 0];
  assert.deepEqual(counts(), [0, 1]);
  await world.clock.advance(31_000);
  assert.deepEqual(counts(), [1, 0]);
});

test("a pod that was ready before the start counts as available after minReadySeconds, without an event", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "a" }));
  world.client.put(daemonSets, aDaemonSet({ spec: { minReadySeconds: 60 } }));
  const first = new AbortController();
  void newDaemonSetController(world.ctx).run(first.signal);
  await world.run();
  await makeReady(world);
  first.abort();
  await world.run(newDaemonSetController(world.ctx));
  assert.deepEqual([stored(world).status?.numberReady, stored(world).status?.numberAvailable], [1, 0]);
  await world.clock.advance(61_000);
  await settle(30);
  assert.equal(stored(world).status?.numberAvailable, 1);
});

test("does nothing once it is being deleted, nor when it would select everything", async (t) => {
  const deleted = await start(t, aDaemonSet({ deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] }));
  assert.deepEqual(deleted.client.writes, []);
  const greedy = await start(t, aDaemonSet({ spec: { selector: {} } }));
  assert.deepEqual(greedy.client.writes, []);
  assert.deepEqual(greedy.events, [
    "Warning SelectingAll This daemon set is selecting all pods. A non-empty selector is required.",
  ]);
});

for (const { name: when, isLookedAt } of [
  { name: "", isLookedAt: true },
  { name: " before its end was looked at", isLookedAt: false },
]) {
  test(`one that is made again under its name${when} does not wait for what the former one created`, async (t) => {
    const world = newTestContext(t);
    world.client.put(nodes, aNode({ name: "a" }));
    let created = 0;
    world.client.react("create", "pods", () => aPod({ name: `unseen-${++created}` })); // not stored, so no watch event follows
    world.client.put(daemonSets, aDaemonSet());
    await world.run(newDaemonSetController(world.ctx));
    assert.equal(created, 1);
    const { namespace, name, uid: _, ...metadata } = stored(world).metadata;
    const again = { ...stored(world), metadata: { ...metadata, namespace, name, uid: "another" } } as DaemonSet;
    world.client.remove(daemonSets, `${namespace}/${name}`);
    if (isLookedAt) await settle(30);
    world.client.put(daemonSets, again);
    await settle(30);
    assert.equal(created, 2);
  });
}

test("one that is made again while the former one creates does not wait for that pod", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "a" }));
  let created = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  world.client.react("create", "pods", () => {
    created++;
    return promise.then(() => aPod({ name: `unseen-${created}` }));
  });
  world.client.put(daemonSets, aDaemonSet());
  await world.run(newDaemonSetController(world.ctx));
  const { namespace, name, uid: _, ...metadata } = stored(world).metadata;
  const again = { ...stored(world), metadata: { ...metadata, namespace, name, uid: "another" } } as DaemonSet;
  world.client.remove(daemonSets, `${namespace}/${name}`);
  world.client.put(daemonSets, again);
  await settle(30);
  assert.equal(created, 1);
  resolve();
  await settle(60);
  await world.clock.advance(1_000);
  await settle(30);
  assert.equal(created, 2);
});

test("a collision is not counted on what the cache shows of the count, when it is older", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "a" }));
  let name = "";
  world.client.react("create", "controllerrevisions", ({ sent }) => {
    if (name !== "") return undefined;
    name = (sent as ControllerRevision).metadata.name ?? "";
    const metadata = { name, namespace: "default", uid: "other" };
    world.client.put(controllerRevisions, { metadata, revision: 1, data: { spec: { template: {} } } });
    return undefined;
  });
  let reads = 0;
  world.client.react("get", "daemonsets", () => {
    if (reads++ > 0) return undefined;
    return { ...stored(world), status: { ...stored(world).status, collisionCount: 3 } };
  });
  world.client.put(daemonSets, aDaemonSet());
  await world.run(newDaemonSetController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(stored(world).status?.collisionCount, 1, "counted once, from what the second read showed");
});

test("a set is looked at when a node becomes one of its nodes or ceases to be, not at other changes of nodes", async (t) => {
  const world = newTestContext(t);
  const { client, run } = world;
  const { ctx, looksAfter } = countingLooks(world.ctx);
  const ssd = { disk: "ssd" };
  client.put(nodes, aNode({ name: "a", labels: ssd }));
  client.put(daemonSets, aDaemonSet({ template: { nodeSelector: ssd } }));
  await run(newDaemonSetController(ctx));
  await makeReady(world);
  const taints = [{ key: "x", effect: "NoExecute" }];
  const looks: Record<string, boolean> = {};
  for (const [what, change] of Object.entries({
    "a status": () => client.put(nodes, aNode({ name: "a", labels: ssd, ready: false })),
    "another label": () => client.put(nodes, aNode({ name: "a", labels: { ...ssd, other: "x" } })),
    "a node that it is not for": () => client.put(nodes, aNode({ name: "b" })),
    "a taint of that node": () => client.put(nodes, aNode({ name: "b", taints })),
    "its end": () => client.remove(nodes, "b"),
    "a label that makes it unfit": () => client.put(nodes, aNode({ name: "a" })),
    "one that makes it fit": () => client.put(nodes, aNode({ name: "a", labels: ssd })),
    "a taint that it does not tolerate": () => client.put(nodes, aNode({ name: "a", labels: ssd, taints })),
    "the end of the taint": () => client.put(nodes, aNode({ name: "a", labels: ssd })),
    "the end of its node": () => client.remove(nodes, "a"),
  }))
    looks[what] = (await looksAfter(change)) > 0;
  assert.deepEqual(looks, {
    ...{ "a status": false, "another label": false },
    ...{ "a node that it is not for": false, "a taint of that node": false, "its end": false },
    ...{ "a label that makes it unfit": true, "one that makes it fit": true },
    ...{ "a taint that it does not tolerate": true, "the end of the taint": true, "the end of its node": true },
  });
});
