import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  controllerRevisions,
  persistentVolumeClaims,
  pods,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aStatefulSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newStatefulSetController } from "./controller.ts";

const key = "default/db";
const stored = ({ client }: TestContext): StatefulSet => client.object<StatefulSet>(statefulSets, key) as StatefulSet;
const podsOf = ({ client }: TestContext): Pod[] =>
  client.objects<Pod>(pods).toSorted((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1));
const names = (world: TestContext): string[] => podsOf(world).map(({ metadata }) => metadata.name ?? "");
const images = (world: TestContext): string[] => podsOf(world).map(({ spec }) => spec.containers[0]?.image ?? "");
const revisions = ({ client }: TestContext): ControllerRevision[] =>
  client.objects<ControllerRevision>(controllerRevisions).toSorted((a, b) => a.revision - b.revision);
const claims = ({ client }: TestContext): string[] =>
  client
    .objects<PersistentVolumeClaim>(persistentVolumeClaims)
    .map(({ metadata }) => metadata.name ?? "")
    .toSorted();

async function start(
  t: { after(fn: () => void): void },
  set: StatefulSet,
  gates: Readonly<Record<string, boolean>> = {},
): Promise<TestContext> {
  const world = newTestContext(t, {}, gates);
  world.client.put(statefulSets, set);
  await world.run(newStatefulSetController(world.ctx));
  return world;
}

/** Stands in for the kubelets: every waiting Pod runs and becomes ready. */
async function makeReady(world: TestContext, which: (pod: Pod) => boolean = () => true): Promise<void> {
  for (let quiet = 0; quiet < 2; ) {
    const waiting = podsOf(world).filter((pod) => pod.status?.conditions === undefined && which(pod));
    quiet = waiting.length === 0 ? quiet + 1 : 0;
    for (const pod of waiting) {
      world.client.put(pods, {
        ...pod,
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: "True", lastTransitionTime: pod.metadata.creationTimestamp }],
        },
      });
    }
    await settle(30);
  }
}

function change(world: TestContext, edit: (set: StatefulSet) => void): Promise<void> {
  const set = deepClone(stored(world));
  edit(set);
  set.metadata.generation = (set.metadata.generation ?? 0) + 1;
  world.client.put(statefulSets, set);
  return settle(30);
}
const setImage = (image: string) => (set: StatefulSet) => {
  (set.spec.template.spec?.containers[0] as { image: string }).image = image;
};
const data: PersistentVolumeClaim = { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"] } };

test("creates pods in order, each when the one before is ready, with separate claims", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, generation: 2, spec: { volumeClaimTemplates: [data] } }));
  assert.deepEqual(names(world), ["db-0"]);
  assert.deepEqual(claims(world), ["data-db-0"]);
  assert.deepEqual(world.events, [
    "Normal SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success",
    "Normal SuccessfulCreate create Pod db-0 in StatefulSet db successful",
  ]);
  const counts = world.client.writes.flatMap(({ resource, sent }) =>
    resource === "statefulsets" ? [(sent as StatefulSet).status?.replicas] : [],
  );
  assert.equal(counts[0], 1, "the first status has the pod that was just created");
  await makeReady(world);
  assert.deepEqual(names(world), ["db-0", "db-1", "db-2"]);
  assert.deepEqual(claims(world), ["data-db-0", "data-db-1", "data-db-2"]);
  const [revision] = revisions(world) as [ControllerRevision];
  assert.equal(revision.metadata.name, `db-${revision.metadata.labels?.["controller.kubernetes.io/hash"]}`);
  assert.deepEqual(stored(world).status, {
    observedGeneration: 2,
    replicas: 3,
    readyReplicas: 3,
    availableReplicas: 3,
    currentReplicas: 3,
    updatedReplicas: 3,
    currentRevision: revision.metadata.name,
    updateRevision: revision.metadata.name,
    collisionCount: 0,
  });
});

test("scales down from the highest, one at a time, and keeps the claims", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, spec: { volumeClaimTemplates: [data] } }));
  await makeReady(world);
  world.events.length = 0;
  await change(world, ({ spec }) => {
    spec.replicas = 1;
  });
  assert.deepEqual(names(world), ["db-0"]);
  assert.deepEqual(world.events, [
    "Normal SuccessfulDelete delete Pod db-2 in StatefulSet db successful",
    "Normal SuccessfulDelete delete Pod db-1 in StatefulSet db successful",
  ]);
  assert.deepEqual(claims(world), ["data-db-0", "data-db-1", "data-db-2"]);
});

test("rolls a new template out from the highest, waiting for each", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, image: "v1" }));
  await makeReady(world);
  const before = stored(world).status?.currentRevision;
  await change(world, setImage("v2"));
  assert.deepEqual(images(world), ["v1", "v1", "v2"]);
  const { currentRevision, updateRevision, updatedReplicas } = stored(world).status ?? {};
  assert.deepEqual([currentRevision, updatedReplicas], [before, 1]);
  assert.notEqual(updateRevision, before);
  let fewest = 3;
  world.client.react("*", "pods", () => {
    fewest = Math.min(fewest, podsOf(world).filter(({ status }) => status?.phase === "Running").length);
    return undefined;
  });
  await makeReady(world);
  assert.deepEqual(images(world), ["v2", "v2", "v2"]);
  assert.equal(fewest, 2);
  assert.partialDeepStrictEqual(stored(world).status, {
    currentRevision: updateRevision,
    updateRevision,
    currentReplicas: 3,
    updatedReplicas: 3,
  });
});

test("a template that changes in the middle of a rollout: the current revision stays the first one, pods of the second are replaced", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, image: "v1" }));
  await makeReady(world);
  const first = stored(world).status?.currentRevision;
  await change(world, setImage("v2"));
  const second = stored(world).status?.updateRevision;
  assert.deepEqual(images(world), ["v1", "v1", "v2"]);
  await makeReady(world, ({ metadata }) => metadata.name === "db-2");
  await change(world, setImage("v3"));
  const { currentRevision, updateRevision, observedGeneration } = stored(world).status ?? {};
  assert.equal(currentRevision, first);
  assert.ok(updateRevision !== first && updateRevision !== second);
  assert.equal(observedGeneration, stored(world).metadata.generation);
  await makeReady(world);
  assert.deepEqual(images(world), ["v3", "v3", "v3"]);
  assert.partialDeepStrictEqual(stored(world).status, {
    currentRevision: updateRevision,
    currentReplicas: 3,
    updatedReplicas: 3,
  });
});

test("a rollout that is taken back in the middle ends at the first revision, with all pods of it", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, image: "v1" }));
  await makeReady(world);
  const first = stored(world).status?.currentRevision;
  await change(world, setImage("v2"));
  await change(world, setImage("v1"));
  assert.equal(stored(world).status?.updateRevision, first);
  await makeReady(world);
  assert.deepEqual(images(world), ["v1", "v1", "v1"]);
  assert.partialDeepStrictEqual(stored(world).status, {
    currentRevision: first,
    updateRevision: first,
    currentReplicas: 3,
    updatedReplicas: 3,
  });
});

test("stops at the partition, keeps pods below it at the earlier template, and continues when it is lowered", async (t) => {
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: 2 } };
  const world = await start(t, aStatefulSet({ replicas: 3, image: "v1", spec: { updateStrategy } }));
  await makeReady(world);
  await change(world, setImage("v2"));
  await makeReady(world);
  assert.deepEqual(images(world), ["v1", "v1", "v2"]);
  assert.partialDeepStrictEqual(stored(world).status, { currentReplicas: 2, updatedReplicas: 1 });
  world.client.remove(pods, "default/db-0");
  await settle(30);
  assert.deepEqual(images(world), ["v1", "v1", "v2"]);
  await makeReady(world);
  await change(world, ({ spec }) => {
    spec.updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: 0 } };
  });
  await makeReady(world);
  assert.deepEqual(images(world), ["v2", "v2", "v2"]);
});

test("with OnDelete a new template is for the next pod of a name", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 2, image: "v1", spec: { updateStrategy: { type: "OnDelete" } } }));
  await makeReady(world);
  await change(world, setImage("v2"));
  assert.deepEqual(images(world), ["v1", "v1"]);
  world.client.remove(pods, "default/db-0");
  await settle(30);
  assert.deepEqual(images(world), ["v2", "v1"]);
});

test("returns to an earlier revision under a new number, and keeps only revisionHistoryLimit", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 1, image: "v1", spec: { revisionHistoryLimit: 1 } }));
  await makeReady(world);
  const first = revisions(world)[0]?.metadata.name;
  for (const image of ["v2", "v1"]) {
    await change(world, setImage(image));
    await makeReady(world);
  }
  assert.deepEqual(images(world), ["v1"]);
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [2, 3],
  );
  assert.equal(stored(world).status?.currentRevision, first);
  await change(world, setImage("v3"));
  await makeReady(world);
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [3, 4],
  );
});

test("names a revision as kube-controller-manager does, so that each knows the other's pods", async (t) => {
  const env = [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } }];
  const logged = { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" } as const;
  const main = {
    name: "main",
    image: "v1",
    imagePullPolicy: "Always",
    command: ["sh", "-c", "a && b <x>"],
    env,
    ...logged,
  } as const;
  const template: StatefulSet["spec"]["template"] = {
    metadata: { labels: { app: "st" } },
    spec: {
      containers: [{ ...main, command: [...main.command] }],
      volumes: [{ name: "e", emptyDir: {} }],
      dnsPolicy: "ClusterFirst",
      restartPolicy: "Always",
      schedulerName: "default-scheduler",
      securityContext: {},
      terminationGracePeriodSeconds: 0,
    },
  };
  const selector = { matchLabels: { app: "st" } };
  const world = await start(t, aStatefulSet({ name: "st", spec: { selector, template } }));
  // The name generated by Kubernetes 1.20.
  assert.equal(revisions(world)[0]?.metadata.name, "st-67d8d89954");
});

test("takes the next name when another revision has it", async (t) => {
  const world = newTestContext(t);
  let taken = "";
  world.client.react("create", "controllerrevisions", ({ sent }) => {
    if (taken !== "") return undefined;
    taken = (sent as ControllerRevision).metadata.name ?? "";
    const metadata = { name: taken, namespace: "default", uid: "other" };
    world.client.put(controllerRevisions, { metadata, revision: 1, data: { spec: { template: {} } } });
    return undefined;
  });
  world.client.put(statefulSets, aStatefulSet());
  await world.run(newStatefulSetController(world.ctx));
  assert.deepEqual(names(world), ["db-0"]);
  const { collisionCount, updateRevision } = stored(world).status ?? {};
  assert.equal(collisionCount, 1);
  assert.notEqual(updateRevision, taken);
});

const theSet = { group: "apps", resource: "statefulsets", kind: "StatefulSet", namespace: "default", name: "db", uid: "" };

test("in parallel, all are created and deleted at once", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 3, spec: { podManagementPolicy: "Parallel" } }));
  assert.deepEqual(names(world), ["db-0", "db-1", "db-2"]);
  assert.deepEqual(world.ctx.decisions.of(theSet), [], "none waits for another");
  await change(world, ({ spec }) => {
    spec.replicas = 0;
  });
  assert.deepEqual(names(world), []);
});

test("recreates a pod that failed, under its name", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 1 }));
  const [pod] = podsOf(world) as [Pod];
  world.client.put(pods, { ...pod, status: { phase: "Failed" } });
  await settle(30);
  assert.deepEqual(names(world), ["db-0"]);
  assert.notEqual(podsOf(world)[0]?.metadata.uid, pod.metadata.uid);
  assert.ok(world.events.includes("Warning RecreatingFailedPod StatefulSet default/db is recreating failed Pod db-0"));
  assert.deepEqual([...new Set(world.regarding)], ["StatefulSet default/db"]);
});

test("adopts a pod of its name, repairs its label, and leaves others that it selects alone", async (t) => {
  const world = newTestContext(t);
  world.client.put(pods, aPod({ name: "db-0", labels: { app: "db" } }), aPod({ name: "other", labels: { app: "db" } }));
  world.client.put(statefulSets, aStatefulSet({ replicas: 1, spec: { updateStrategy: { type: "OnDelete" } } }));
  await world.run(newStatefulSetController(world.ctx));
  const adopted = world.client.object<Pod>(pods, "default/db-0") as Pod;
  assert.equal(adopted.metadata.ownerReferences?.[0]?.name, "db");
  assert.equal(adopted.metadata.labels?.["statefulset.kubernetes.io/pod-name"], "db-0");
  assert.deepEqual(world.events, ["Normal SuccessfulUpdate update Pod db-0 in StatefulSet db successful"]);
  assert.equal(world.client.object<Pod>(pods, "default/other")?.metadata.ownerReferences, undefined);
});

test("says that the label of a pod cannot be repaired", async (t) => {
  const world = newTestContext(t);
  world.client.react("update", "pods", () => {
    throw forbidden(pods, "db-0", "not now");
  });
  world.client.put(pods, aPod({ name: "db-0", labels: { app: "db" } }));
  world.client.put(statefulSets, aStatefulSet({ replicas: 1 }));
  await world.run(newStatefulSetController(world.ctx));
  assert.match(
    world.events[0] ?? "",
    /^Warning FailedUpdate update Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: not now$/,
  );
});

test("reports when it may not create a claim or a pod, and keeps trying", async (t) => {
  const world = newTestContext(t);
  let refuse = "persistentvolumeclaims";
  world.client.react("create", "*", ({ resource }) => {
    if (resource === refuse) throw forbidden({ group: "", resource }, "", "exceeded quota");
    return undefined;
  });
  world.client.put(statefulSets, aStatefulSet({ spec: { volumeClaimTemplates: [data] } }));
  await world.run(newStatefulSetController(world.ctx));
  assert.deepEqual(names(world), []);
  assert.equal(stored(world).status?.updateRevision, revisions(world)[0]?.metadata.name, "the status is written all the same");
  assert.match(
    world.events[0] ?? "",
    /^Warning FailedCreate create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: .*exceeded quota$/,
  );
  assert.match(
    world.events[1] ?? "",
    /^Warning FailedCreate create Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: .*exceeded quota$/,
  );
  refuse = "pods";
  await world.clock.advance(100);
  assert.deepEqual([claims(world), names(world)], [["data-db-0"], []]);
  assert.match(
    world.events.at(-1) ?? "",
    /^Warning FailedCreate create Pod db-0 in StatefulSet db failed error: .*exceeded quota$/,
  );
  refuse = "";
  await world.clock.advance(1000);
  assert.deepEqual(names(world), ["db-0"]);
});

test("waits for a claim that is being deleted", async (t) => {
  const world = newTestContext(t);
  const metadata = { name: "data-db-0", namespace: "default", deletionTimestamp: "2024-01-01T00:00:00Z", finalizers: ["x"] };
  world.client.put(persistentVolumeClaims, { metadata, spec: {} });
  world.client.put(statefulSets, aStatefulSet({ spec: { volumeClaimTemplates: [data] } }));
  await world.run(newStatefulSetController(world.ctx));
  assert.deepEqual(names(world), []);
  assert.ok(
    world.events.includes("Warning FailedCreate create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"),
  );
  world.client.remove(persistentVolumeClaims, "default/data-db-0");
  await settle(30);
  assert.deepEqual([names(world), claims(world)], [["db-0"], ["data-db-0"]]);
});

test("a deleted claim wakes the set whose second template it was of, and no other", async (t) => {
  const world = newTestContext(t);
  const metadata = { name: "logs-db-0", namespace: "default", deletionTimestamp: "2024-01-01T00:00:00Z", finalizers: ["x"] };
  world.client.put(persistentVolumeClaims, { metadata, spec: {} });
  const logs = { ...data, metadata: { name: "logs" } };
  world.client.put(
    statefulSets,
    aStatefulSet({ name: "another", replicas: 0 }),
    aStatefulSet({ spec: { volumeClaimTemplates: [data, logs] } }),
  );
  await world.run(newStatefulSetController(world.ctx));
  assert.deepEqual(names(world), []);
  world.client.clearActions();
  world.client.remove(persistentVolumeClaims, "default/logs-db-0");
  await settle(30);
  assert.deepEqual([names(world), claims(world)], [["db-0"], ["data-db-0", "logs-db-0"]]);
  assert.ok(world.client.writes.every(({ name }) => !name.startsWith("another")));
});

test("creates the claims that are missing beside one that exists", async (t) => {
  const world = newTestContext(t);
  const metadata = { name: "data-db-0", namespace: "default", labels: { from: "before" } };
  world.client.put(persistentVolumeClaims, { metadata, spec: {} });
  const logs = { ...data, metadata: { name: "logs" } };
  world.client.put(statefulSets, aStatefulSet({ spec: { volumeClaimTemplates: [data, logs] } }));
  await world.run(newStatefulSetController(world.ctx));
  assert.deepEqual(claims(world), ["data-db-0", "logs-db-0"]);
  const kept = world.client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data-db-0");
  assert.deepEqual(kept?.metadata.labels, { from: "before" });
});

test("without a limit ten revisions are kept besides the one in use", async (t) => {
  const set = aStatefulSet({ replicas: 0, image: "v1" });
  delete set.spec.revisionHistoryLimit;
  const world = await start(t, set);
  for (let version = 2; version <= 13; version++) await change(world, setImage(`v${version}`));
  await change(world, (changed) => (changed.metadata.labels = { touched: "yes" }));
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
  );
});

test("a status that another writer changed in between is written on what that one stored", async (t) => {
  const world = newTestContext(t);
  world.client.put(statefulSets, aStatefulSet({ replicas: 1 }));
  let races = 0;
  world.client.react("update", "statefulsets", ({ subresource }) => {
    if (subresource === "status" && races++ === 0) {
      const set = stored(world);
      world.client.put(statefulSets, { ...set, metadata: { ...set.metadata, annotations: { by: "another" } } });
    }
    return undefined;
  });
  await world.run(newStatefulSetController(world.ctx));
  assert.equal(stored(world).status?.replicas, 1);
  assert.deepEqual(stored(world).metadata.annotations, { by: "another" });
});

test("a pod that the cache does not show is not reported twice", async (t) => {
  const world = newTestContext(t);
  world.client.react("list", "pods", () => ({ metadata: { resourceVersion: "1000000" }, items: [] }));
  world.client.put(pods, aPod({ name: "db-0", labels: { app: "db" } }));
  world.client.put(statefulSets, aStatefulSet());
  await world.run(newStatefulSetController(world.ctx));
  await world.clock.advance(1000);
  assert.deepEqual(world.events, []);
  assert.ok(world.client.actions.filter(({ verb, resource }) => verb === "create" && resource === "pods").length > 1);
});

test("counts a pod as available, and continues, only after minReadySeconds", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 2, spec: { minReadySeconds: 30 } }));
  await makeReady(world);
  assert.deepEqual(names(world), ["db-0"]);
  assert.partialDeepStrictEqual(stored(world).status, { readyReplicas: 1, availableReplicas: 0 });
  await world.clock.advance(31_000);
  assert.deepEqual(names(world), ["db-0", "db-1"]);
  assert.equal(stored(world).status?.availableReplicas, 1);
});

test("with the gate StatefulSetMinReadySeconds off, minReadySeconds is ignored", async (t) => {
  const set = aStatefulSet({ replicas: 2, spec: { minReadySeconds: 30 } });
  const world = await start(t, set, { StatefulSetMinReadySeconds: false });
  await makeReady(world);
  assert.partialDeepStrictEqual(stored(world).status, { readyReplicas: 2, availableReplicas: 2 });
});

test("with the gate StatefulSetAutoDeletePVC, claims belong to the set, and of pods scaled away to those", async (t) => {
  const policy = { whenDeleted: "Delete", whenScaled: "Delete" } as const;
  const set = aStatefulSet({ replicas: 2, spec: { volumeClaimTemplates: [data], persistentVolumeClaimRetentionPolicy: policy } });
  const world = await start(t, set, { StatefulSetAutoDeletePVC: true });
  await makeReady(world);
  await change(world, () => {});
  const owners = (claim: string): string[] =>
    (world.client.object(persistentVolumeClaims, `default/${claim}`)?.metadata.ownerReferences ?? []).map(
      ({ kind, name }) => `${kind} ${name}`,
    );
  assert.deepEqual([owners("data-db-0"), owners("data-db-1")], [["StatefulSet db"], ["StatefulSet db"]]);
  await change(world, ({ spec }) => {
    spec.replicas = 1;
  });
  assert.deepEqual([owners("data-db-0"), owners("data-db-1")], [["StatefulSet db"], ["Pod db-1"]]);
  await change(world, ({ spec }) => {
    spec.replicas = 2;
  });
  assert.deepEqual(names(world), ["db-0"], "the claim of the former db-1 is still there");
  world.client.remove(persistentVolumeClaims, "default/data-db-1");
  await settle(30);
  assert.deepEqual(
    [names(world), claims(world)],
    [
      ["db-0", "db-1"],
      ["data-db-0", "data-db-1"],
    ],
  );
});

test("does nothing but count once it is being deleted", async (t) => {
  const set = aStatefulSet({ deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] });
  const world = await start(t, set);
  assert.deepEqual(world.client.writes, []);
});

test("a revision that a pod still has is kept, though it is neither the current nor the next one", async (t) => {
  const spec = { updateStrategy: { type: "OnDelete" as const }, revisionHistoryLimit: 0 };
  const world = await start(t, aStatefulSet({ replicas: 2, image: "v1", spec }));
  await makeReady(world);
  await change(world, setImage("v2"));
  world.client.remove(pods, "default/db-1");
  await settle(30);
  await makeReady(world);
  await change(world, setImage("v3"));
  assert.deepEqual(images(world), ["v1", "v2"]);
  assert.equal(revisions(world).length, 3);
});

test("of two revisions of its template the later one is the set's, as it is", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 1 }));
  await makeReady(world);
  const twin = deepClone(revisions(world)[0] as ControllerRevision);
  twin.metadata = { ...twin.metadata, name: "db-twin", uid: "twin" };
  // Without it, a controller that renumbers the wrong one would do so forever.
  world.client.react("update", "controllerrevisions", () => {
    throw forbidden(controllerRevisions, "db", "none has to change");
  });
  world.client.put(controllerRevisions, { ...twin, revision: 5 });
  await settle(30);
  await change(world, ({ metadata }) => {
    metadata.labels = { touched: "yes" };
  });
  assert.equal(stored(world).status?.updateRevision, "db-twin");
  assert.deepEqual(
    revisions(world).map(({ revision }) => revision),
    [1, 5],
  );
});

test("deletes the pod that it saw, not one that has its name now", async (t) => {
  const world = await start(t, aStatefulSet({ replicas: 1 }));
  const [pod] = podsOf(world) as [Pod];
  world.client.put(pods, { ...pod, status: { phase: "Failed" } });
  await settle(30);
  const deletion = world.client.writes.find(({ verb, resource }) => verb === "delete" && resource === "pods");
  assert.partialDeepStrictEqual(deletion?.sent, { preconditions: { uid: pod.metadata.uid } });
});
