import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, conflict, forbidden, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
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
import { revisionData } from "../../history/revision-data.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newStatefulSetController } from "./controller.ts";

const stored = ({ client }: TestContext): StatefulSet => client.object<StatefulSet>(statefulSets, "default/db") as StatefulSet;
const names = ({ client }: TestContext): string[] =>
  client
    .objects<Pod>(pods)
    .map(({ metadata }) => metadata.name ?? "")
    .toSorted();
const claimNames = ({ client }: TestContext): string[] =>
  client
    .objects<PersistentVolumeClaim>(persistentVolumeClaims)
    .map(({ metadata }) => metadata.name ?? "")
    .toSorted();
const claim = (name: string): PersistentVolumeClaim => ({ metadata: { name }, spec: { accessModes: ["ReadWriteOnce"] } });
const member = (ordinal: number, options: Parameters<typeof aPod>[0] = {}): Pod =>
  aPod({
    name: `db-${ordinal}`,
    owner: aStatefulSet(),
    labels: { app: "db", "statefulset.kubernetes.io/pod-name": `db-${ordinal}` },
    ...options,
  });
/** A Pod of the set's name that lost the label of its name. */
const unlabelled = (): Pod => member(0, { labels: { app: "db" } });
const patient = { updateStrategy: { type: "OnDelete" as const } };

async function running(world: TestContext, set: StatefulSet, ...existing: Pod[]): Promise<void> {
  world.client.put(pods, ...existing);
  world.client.put(statefulSets, set);
  await world.run(newStatefulSetController(world.ctx));
}

test("nothing is tried again, and nothing fails, in a namespace that is being deleted", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "pods", () => {
    tries++;
    const { status } = forbidden(pods, "db-0", "the namespace is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  await running(world, aStatefulSet());
  const before = tries;
  await world.clock.advance(60_000);
  assert.equal(tries, before);
  assert.ok(before > 0);
});

test("a pod that was ready before the controller started counts as available after minReadySeconds", async (t) => {
  const world = newTestContext(t);
  const readySince = new Date(world.clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  await running(world, aStatefulSet({ replicas: 1, spec: { ...patient, minReadySeconds: 30 } }), member(0, { readySince }));
  assert.equal(stored(world).status?.availableReplicas, 0);
  await world.clock.advance(31_000);
  await settle(30);
  assert.equal(stored(world).status?.availableReplicas, 1);
});

const theSet = { group: "apps", resource: "statefulsets", kind: "StatefulSet", namespace: "default", name: "db", uid: "" };
for (const { name, existing, want } of [
  {
    name: "the lowest pod that is not available",
    existing: [member(2, { ready: false }), member(1, { ready: false }), member(0)],
    want: "goes on when its pod db-1 is running, ready and available: its pods come one after the other",
  },
  {
    name: "a pod that is being deleted, though it is ready",
    existing: [member(0), member(1, { deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] })],
    want: "goes on when its pod db-1 is gone: its pods come one after the other",
  },
]) {
  test(`the decision names ${name}`, async (t) => {
    const world = newTestContext(t);
    await running(world, aStatefulSet({ replicas: 3, spec: patient }), ...existing);
    assert.equal(world.ctx.decisions.of(theSet)[0]?.summary, want);
  });
}

test("a pod that is deleted already when the controller deletes it is no failure", async (t) => {
  const world = newTestContext(t);
  world.client.react("delete", "pods", ({ name }) => {
    throw notFound(pods, name);
  });
  await running(world, aStatefulSet({ replicas: 0 }), member(0));
  assert.deepEqual([...new Set(world.events)], ["Normal SuccessfulDelete delete Pod db-0 in StatefulSet db successful"]);
});

test("a pod that was changed in between is repaired as it is now", async (t) => {
  const world = newTestContext(t);
  let updates = 0;
  world.client.react("update", "pods", () => {
    if (updates++ > 0) return undefined;
    const { metadata, ...pod } = world.client.object<Pod>(pods, "default/db-0") as Pod;
    world.client.put(pods, { ...pod, metadata: { ...metadata, annotations: { by: "another" } } });
    throw conflict(pods, "db-0", "the object has been modified");
  });
  await running(world, aStatefulSet({ spec: patient }), unlabelled());
  const { annotations, labels } = world.client.object<Pod>(pods, "default/db-0")?.metadata ?? {};
  assert.deepEqual([annotations, labels?.["statefulset.kubernetes.io/pod-name"]], [{ by: "another" }, "db-0"]);
  assert.deepEqual(world.events, ["Normal SuccessfulUpdate update Pod db-0 in StatefulSet db successful"]);
});

test("a pod that may not be repaired is not read and tried a second time at once", async (t) => {
  const world = newTestContext(t);
  let updates = 0;
  world.client.react("update", "pods", () => {
    updates++;
    throw forbidden(pods, "db-0", "not now");
  });
  await running(world, aStatefulSet({ spec: patient }), unlabelled());
  assert.equal(world.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "pods").length, 0);
  assert.equal(updates, world.events.length, "one event for each try");
});

test("a pod without the volume of its claim gets it, and the claim is created", async (t) => {
  const world = newTestContext(t);
  await running(world, aStatefulSet({ spec: { ...patient, volumeClaimTemplates: [claim("data")] } }), member(0));
  assert.deepEqual(claimNames(world), ["data-db-0"]);
  assert.deepEqual(world.client.object<Pod>(pods, "default/db-0")?.spec.volumes, [
    { name: "data", persistentVolumeClaim: { claimName: "data-db-0" } },
  ]);
});

test("each claim is tried, and the event on the pod names all that could not be created", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "persistentvolumeclaims", ({ name }) => {
    if (name !== "logs-db-0") throw forbidden(persistentVolumeClaims, name, "no");
    return undefined;
  });
  const volumeClaimTemplates = [claim("data"), claim("logs"), claim("temp")];
  await running(world, aStatefulSet({ spec: { volumeClaimTemplates } }));
  assert.deepEqual(claimNames(world), ["logs-db-0"]);
  const failed = (name: string) => `failed to create PVC ${name}: persistentvolumeclaims "${name}" is forbidden: no`;
  const text = `[${failed("data-db-0")}, ${failed("temp-db-0")}]`;
  assert.ok(
    world.events.includes(`Warning FailedCreate create Pod db-0 in StatefulSet db failed error: ${text}`),
    world.events.join("\n"),
  );
});

test("a claim that the cache does not show yet does not keep its pod from being created", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "persistentvolumeclaims", ({ name }) => {
    throw alreadyExists(persistentVolumeClaims, name);
  });
  await running(world, aStatefulSet({ spec: { volumeClaimTemplates: [claim("data")] } }));
  assert.deepEqual(names(world), ["db-0"]);
  assert.deepEqual(world.events, ["Normal SuccessfulCreate create Pod db-0 in StatefulSet db successful"]);
});

const retention = { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" } };
for (const enabled of [true, false]) {
  test(`with the gate StatefulSetAutoDeletePVC ${enabled ? "on, every claim of a pod gets" : "off, no claim gets"} its owner`, async (t) => {
    const world = newTestContext(t, {}, { StatefulSetAutoDeletePVC: enabled });
    const owned = { ...claim("data-db-0").metadata, namespace: "default" };
    const { uid = "" } = aStatefulSet().metadata;
    world.client.put(
      persistentVolumeClaims,
      {
        metadata: { ...owned, ownerReferences: enabled ? [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid }] : [] },
        spec: {},
      },
      { metadata: { ...owned, name: "logs-db-0" }, spec: {} },
    );
    const spec = { ...patient, ...retention, volumeClaimTemplates: [claim("data"), claim("logs")] };
    await running(world, aStatefulSet({ spec }), member(0, { labels: { app: "db" } }));
    const owners = world.client
      .objects<PersistentVolumeClaim>(persistentVolumeClaims)
      .map(({ metadata }) => metadata.ownerReferences?.map(({ name }) => name) ?? []);
    assert.deepEqual(owners, enabled ? [["db"], ["db"]] : [[], []]);
  });
}

for (const [what, collisions, want] of [
  ["a revision whose name is free leaves the number of collisions in the status as it is", 0, 3],
  ["collisions of a revision's name are counted on from the number in the status", 2, 5],
] as const) {
  test(what, async (t) => {
    const world = newTestContext(t);
    let tries = 0;
    world.client.react("create", "controllerrevisions", ({ name }) => {
      if (++tries > collisions) return undefined;
      const metadata = { namespace: "default", name, uid: name };
      world.client.put(controllerRevisions, { metadata, revision: 9, data: { of: "another" } });
      throw alreadyExists(controllerRevisions, name);
    });
    const status = { replicas: 0, availableReplicas: 0, collisionCount: 3 };
    await running(world, { ...aStatefulSet(), status });
    assert.deepEqual([tries, stored(world).status?.collisionCount], [collisions + 1, want]);
  });
}

test("while it is being deleted, the status counts what is left, under the known revisions", async (t) => {
  const world = newTestContext(t);
  const set = aStatefulSet({ replicas: 2, generation: 4, deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] });
  const names = { currentRevision: "db-1", updateRevision: "db-2" };
  for (const [name, revision] of [
    ["db-1", 1],
    ["db-2", 2],
  ] as const) {
    world.client.put(controllerRevisions, {
      metadata: {
        name,
        namespace: "default",
        uid: name,
        labels: { app: "db" },
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: set.metadata.uid ?? "", controller: true },
        ],
      },
      revision,
      data: revisionData({ metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "main", image: name }] } }),
    } satisfies ControllerRevision);
  }
  await running(world, { ...set, status: { replicas: 2, availableReplicas: 2, collisionCount: 2, ...names } }, member(0));
  assert.partialDeepStrictEqual(stored(world).status, { ...names, replicas: 1, collisionCount: 2, observedGeneration: 4 });
  assert.deepEqual(
    world.client.writes.map(({ resource, subresource }) => `${resource}/${subresource}`),
    ["statefulsets/status"],
    "no revision and no pod is written",
  );
});

test("the revision before an update is kept beyond the history limit, though no pod has it", async (t) => {
  const world = newTestContext(t);
  await running(world, aStatefulSet({ replicas: 0, image: "v1", spec: { ...patient, revisionHistoryLimit: 0 } }));
  for (const image of ["v2", "v3"]) {
    const set = stored(world);
    set.spec.template = aStatefulSet({ image }).spec.template;
    set.metadata.generation = (set.metadata.generation ?? 0) + 1;
    world.client.put(statefulSets, set);
    await settle(30);
  }
  const kept = world.client.objects<ControllerRevision>(controllerRevisions).map(({ revision }) => revision);
  assert.deepEqual(kept.toSorted(), [1, 3]);
});

test("a revision with other labels is left alone, whoever controls it", async (t) => {
  const world = newTestContext(t);
  const { uid = "" } = aStatefulSet().metadata;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid, controller: true };
  for (const [name, ownerReferences] of [
    ["orphan", []],
    ["own", [owner]],
  ] as const) {
    const metadata = { name, namespace: "default", uid: name, labels: { app: "api" }, ownerReferences: [...ownerReferences] };
    world.client.put(controllerRevisions, { metadata, revision: 7 });
  }
  await running(world, aStatefulSet());
  await settle(30);
  const ownersOf = (name: string) => world.client.object(controllerRevisions, `default/${name}`)?.metadata.ownerReferences;
  assert.deepEqual([ownersOf("orphan"), ownersOf("own")], [[], [owner]]);
  assert.ok(world.client.objects<ControllerRevision>(controllerRevisions).some(({ revision }) => revision === 1));
});
