import assert from "node:assert/strict";
import { test } from "node:test";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod, aStatefulSet, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { revisionData } from "../../history/revision-data.ts";
import { desiredOwners, isStale } from "./claim-retention.ts";
import { claimsOf, hasStorage, isMember, newClaim, parsePodName, withIdentity, withStorage } from "./identity.ts";
import { newPod, type Revisions } from "./new-pod.ts";
import { planSteps, type View } from "./plan.ts";
import { isOutdated, statefulSetStatus } from "./status.ts";

const now = Date.parse("2024-01-02T00:00:00Z");
const revision = (name: string, image: string, number: number): ControllerRevision => ({
  metadata: { name },
  revision: number,
  data: revisionData({ metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "main", image }] } }),
});
const old = revision("db-old", "v1", 1);
const next = revision("db-new", "v2", 2);
const steady: Revisions = { current: next, update: next };
const rolling: Revisions = { current: old, update: next };

const podAt = (hash: "old" | "new", ordinal: number, options: PodOptions = {}): Pod =>
  aPod({
    name: `db-${ordinal}`,
    labels: { app: "db", "controller-revision-hash": `db-${hash}`, "statefulset.kubernetes.io/pod-name": `db-${ordinal}` },
    ...options,
  });
const up = (ordinal: number, options?: PodOptions): Pod => podAt("new", ordinal, options);
const stale = (ordinal: number, options?: PodOptions): Pod => podAt("old", ordinal, options);
const gone: PodOptions = { deletedAt: "2024-01-02T00:00:00Z" };
const unready: PodOptions = { ready: false };

function viewOf(set: StatefulSet, pods: readonly Pod[], options: Partial<View> = {}): View {
  return { set, pods, revisions: steady, minReadySeconds: 0, now, ...options };
}
const steps = (view: View): string[] => [...planSteps(view)].map(({ action, pod }) => `${action} ${pod.metadata.name}`);

for (const { name, replicas, parallel, pods = [], revisions, partition, strategy, want = [] } of [
  { name: "creates the first one, and waits", replicas: 3, want: ["create db-0"] },
  { name: "creates the next one when those before it serve", replicas: 3, pods: [up(0)], want: ["create db-1"] },
  { name: "waits for one that is not ready", replicas: 3, pods: [up(0), up(1, unready)] },
  { name: "waits for one on its way out", replicas: 3, pods: [up(0, gone)] },
  { name: "fills a gap first", replicas: 3, pods: [up(0), up(2)], want: ["create db-1"] },
  {
    name: "recreates one that failed",
    replicas: 2,
    pods: [up(0, { phase: "Failed" }), up(1)],
    want: ["delete failed db-0", "create db-0"],
  },
  {
    name: "repairs one that lost its label",
    replicas: 1,
    pods: [up(0, { labels: { app: "db", "controller-revision-hash": "db-new" } })],
    want: ["repair db-0"],
  },
  { name: "deletes the highest beyond the desired", replicas: 1, pods: [up(0), up(1), up(2)], want: ["delete db-2"] },
  { name: "waits for it to be gone", replicas: 1, pods: [up(0), up(1), up(2, gone)] },
  {
    name: "deletes none that serves while another does not",
    replicas: 1,
    pods: [up(0), up(1, unready), up(2)],
    want: ["delete db-2"],
  },
  { name: "waits while two of those to go do not serve", replicas: 1, pods: [up(0), up(1, unready), up(2, unready)] },
  {
    name: "deletes the one that does not serve if it is the highest",
    replicas: 1,
    pods: [up(0), up(1), up(2, unready)],
    want: ["delete db-2"],
  },
  { name: "scales down only when those that stay serve", replicas: 1, pods: [up(0, unready), up(1)] },
  { name: "has nothing to do", replicas: 2, pods: [up(0), up(1)] },
  { name: "leaves a pod alone whose number is no number", replicas: 1, pods: [up(0), aPod({ name: "db-99999999999" })] },
  {
    name: "updates the highest first",
    replicas: 3,
    revisions: rolling,
    pods: [stale(0), stale(1), stale(2)],
    want: ["delete db-2"],
  },
  { name: "waits for the updated one", replicas: 2, revisions: rolling, pods: [stale(0), up(1, unready)] },
  { name: "continues when it is ready", replicas: 2, revisions: rolling, pods: [stale(0), up(1)], want: ["delete db-0"] },
  { name: "stops at the partition", replicas: 3, partition: 2, revisions: rolling, pods: [stale(0), stale(1), up(2)] },
  {
    name: "all at once, does not delete an outdated pod twice",
    parallel: true,
    replicas: 2,
    revisions: rolling,
    pods: [stale(0), stale(1, gone)],
  },
  {
    name: "all at once, waits for an updated pod that is being deleted",
    parallel: true,
    replicas: 2,
    revisions: rolling,
    pods: [stale(0), up(1, gone)],
  },
  {
    name: "all at once, replaces a failed outdated pod once",
    parallel: true,
    replicas: 2,
    revisions: rolling,
    pods: [stale(0), stale(1, { phase: "Failed" })],
    want: ["delete failed db-1", "create db-1"],
  },
  { name: "waits for a pod that is ready but not running", replicas: 2, pods: [up(0, { phase: "Pending", ready: true })] },
  {
    name: "repairs a pod whose number has a leading zero",
    replicas: 1,
    pods: [
      up(0, { name: "db-00", labels: { "controller-revision-hash": "db-new", "statefulset.kubernetes.io/pod-name": "db-00" } }),
    ],
    want: ["repair db-00"],
  },
  {
    name: "updates nothing that is not deleted",
    replicas: 2,
    strategy: "OnDelete",
    revisions: rolling,
    pods: [stale(0), stale(1)],
  },
  { name: "scales before it updates", replicas: 3, revisions: rolling, pods: [stale(0), stale(1)], want: ["create db-2"] },
  {
    name: "all at once, creates what is missing",
    parallel: true,
    replicas: 3,
    pods: [up(1, unready)],
    want: ["create db-0", "create db-2"],
  },
  {
    name: "all at once, deletes what is too much",
    parallel: true,
    replicas: 1,
    pods: [up(0, unready), up(1), up(2, gone), up(3)],
    want: ["delete db-3", "delete db-1"],
  },
  {
    name: "all at once, updates one by one nevertheless",
    parallel: true,
    replicas: 3,
    revisions: rolling,
    pods: [stale(0), stale(1), up(2, unready)],
  },
  {
    name: "all at once, counts a deletion, a recreation and a repair as one step each",
    parallel: true,
    replicas: 300,
    pods: [up(0, { labels: { app: "db" } }), ...Array.from({ length: 299 }, (_, i) => up(i + 1, { phase: "Failed" }))],
    want: ["repair db-0", ...Array.from({ length: 250 }, (_, i) => [`delete failed db-${i + 1}`, `create db-${i + 1}`]).flat()],
  },
  {
    name: "all at once, takes no more than 500 at a time",
    parallel: true,
    replicas: 2_000_000_000,
    want: Array.from({ length: 500 }, (_, i) => `create db-${i}`),
  },
] as {
  name: string;
  replicas: number;
  parallel?: boolean;
  pods?: Pod[];
  revisions?: Revisions;
  partition?: number;
  strategy?: string;
  want?: string[];
}[]) {
  test(`a set ${name}`, () => {
    const updateStrategy =
      strategy === undefined ? { type: "RollingUpdate", rollingUpdate: { partition: partition ?? 0 } } : { type: strategy };
    const set = aStatefulSet({
      replicas,
      spec: { updateStrategy, podManagementPolicy: parallel === true ? "Parallel" : "OrderedReady" },
    });
    assert.deepEqual(steps(viewOf(set, pods, revisions === undefined ? {} : { revisions })), want);
  });
}

test("a set that is being deleted is left alone", () => {
  assert.deepEqual(steps(viewOf(aStatefulSet({ deletedAt: "2024-01-01T00:00:00Z" }), [])), []);
});

test("waits until a pod has served for minReadySeconds", () => {
  const set = aStatefulSet({ replicas: 2 });
  const view = viewOf(set, [up(0, { readySince: "2024-01-01T23:59:30Z" })], { minReadySeconds: 60 });
  assert.deepEqual(steps(view), []);
  assert.equal(statefulSetStatus(view, [], 0).availableReplicas, 0);
  assert.equal(statefulSetStatus(view, [], 0).readyReplicas, 1);
  assert.deepEqual(steps({ ...view, now: now + 30_000 }), ["create db-1"]);
});

test("deletes no available pod while another that is to go has not served for minReadySeconds", () => {
  const recent = { readySince: "2024-01-01T23:59:30Z" };
  const view = viewOf(aStatefulSet({ replicas: 1 }), [up(0), up(1, { ready: false }), up(2, recent)], { minReadySeconds: 60 });
  assert.deepEqual(steps(view), []);
  assert.deepEqual(steps({ ...view, now: now + 30_000 }), ["delete db-2"]);
});

test("a pod has its name, host, service, revision and claims, which win over the template's volumes", () => {
  const claim = (name: string): PersistentVolumeClaim => ({ metadata: { name, labels: { kept: "yes" } }, spec: {} });
  const set = aStatefulSet({
    namespace: "shop",
    spec: { serviceName: "dbs", volumeClaimTemplates: [claim("data"), claim("log")] },
  });
  const volumes = [
    { name: "data", emptyDir: {} },
    { name: "tmp", emptyDir: {} },
  ];
  const template = { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "main", image: "v2" }], volumes } };
  const update = { ...next, data: revisionData(template) };
  const pod = newPod(set, { current: update, update }, 4);
  hasFields(pod, {
    metadata: {
      name: "db-4",
      generateName: "db-",
      namespace: "shop",
      labels: { app: "db", "controller-revision-hash": "db-new", "statefulset.kubernetes.io/pod-name": "db-4" },
      ownerReferences: [{ kind: "StatefulSet", uid: set.metadata.uid, controller: true }],
    },
    spec: { hostname: "db-4", subdomain: "dbs", containers: [{ image: "v2" }] },
  });
  assert.deepEqual(pod.spec.volumes, [
    { name: "data", persistentVolumeClaim: { claimName: "data-db-4" } },
    { name: "log", persistentVolumeClaim: { claimName: "log-db-4" } },
    { name: "tmp", emptyDir: {} },
  ]);
  assert.deepEqual(
    [...claimsOf(set, 4).values()].map((claim) => newClaim(set, claim).metadata),
    ["data-db-4", "log-db-4"].map((name) => ({ name, namespace: "shop", labels: { kept: "yes", app: "db" } })),
  );
  assert.equal(set.spec.volumeClaimTemplates?.[0]?.metadata.name, "data", "the template stays as it is");
});

for (const { name, updateStrategy, currentReplicas, want } of [
  {
    name: "below the partition",
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
    want: ["v1", "v1", "v2"],
  },
  {
    name: "as long as it is counted, with no partition at all",
    updateStrategy: { type: "RollingUpdate" },
    currentReplicas: 1,
    want: ["v1", "v2", "v2"],
  },
  { name: "nowhere", updateStrategy: { type: "OnDelete" }, currentReplicas: 3, want: ["v2", "v2", "v2"] },
  {
    name: "nowhere without a number in the partition",
    updateStrategy: { type: "RollingUpdate", rollingUpdate: {} },
    currentReplicas: 3,
    want: ["v2", "v2", "v2"],
  },
]) {
  test(`the former template is for new pods ${name}`, () => {
    const set = aStatefulSet({ spec: { updateStrategy } });
    set.status = { replicas: 3, availableReplicas: 3, currentReplicas: currentReplicas ?? 0 };
    assert.deepEqual(
      [0, 1, 2].map((ordinal) => newPod(set, rolling, ordinal).spec.containers[0]?.image),
      want,
    );
  });
}

test("reads a pod's number from its name", () => {
  assert.deepEqual(parsePodName("my-db-12"), { parent: "my-db", ordinal: 12 });
  assert.deepEqual(parsePodName("db-2147483647"), { parent: "db", ordinal: 2147483647 });
  assert.deepEqual(parsePodName("db-2147483648"), { parent: "db", ordinal: -1 });
  for (const name of ["db", "db-", "db-x1", "12"]) assert.equal(parsePodName(name), undefined, name);
  const set = aStatefulSet();
  assert.deepEqual([isMember(set, aPod({ name: "db-0" })), isMember(set, aPod({ name: "other-0" }))], [true, false]);
});

test("knows whether a pod has its claims, and gives it those that it lacks", () => {
  const set = aStatefulSet({ spec: { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: {} }] } });
  const bare = aPod({ name: "db-1", spec: { volumes: [{ name: "data", emptyDir: {} }] } });
  assert.equal(hasStorage(set, bare), false);
  const repaired = withStorage(set, withIdentity(set, bare));
  assert.equal(hasStorage(set, repaired), true);
  assert.equal(repaired.metadata.labels?.["statefulset.kubernetes.io/pod-name"], "db-1");
});

test("a claim has the labels of the selector, and every claim of a pod has to be among its volumes", () => {
  const template = (name: string): PersistentVolumeClaim => ({ metadata: { name, labels: { app: "other" } }, spec: {} });
  const set = aStatefulSet({ spec: { volumeClaimTemplates: [template("data"), template("log")] } });
  assert.deepEqual(
    [...claimsOf(set, 1).values()].map((claim) => newClaim(set, claim).metadata.labels),
    [{ app: "db" }, { app: "db" }],
  );
  const half = aPod({ name: "db-1", spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-db-1" } }] } });
  assert.equal(hasStorage(set, half), false);
});

test("a rollout is complete only when all pods are ready", () => {
  const set = aStatefulSet({ replicas: 2 });
  const view = viewOf(set, [up(0), up(1, unready)], { revisions: rolling });
  assert.partialDeepStrictEqual(statefulSetStatus(view, [], 0), { currentRevision: "db-old", updatedReplicas: 2 });
});

test("a pod that was just created counts under its revision", () => {
  const view = viewOf(aStatefulSet({ replicas: 2 }), [up(0)]);
  const created = statefulSetStatus(view, [{ action: "create", pod: up(1) }], 0);
  assert.partialDeepStrictEqual(created, { replicas: 2, currentReplicas: 2, updatedReplicas: 2, readyReplicas: 1 });
});

for (const { name, change } of [
  { name: "another revision", change: { updateRevision: "db-next" } },
  { name: "a later generation", change: { observedGeneration: 2 } },
  { name: "a collision", change: { collisionCount: 1 } },
]) {
  test(`a status with ${name} is written`, () => {
    const set = aStatefulSet({ generation: 1 });
    const status = statefulSetStatus(viewOf(set, [up(0)]), [], 0);
    assert.equal(isOutdated({ ...set, status }, { ...status, ...change }), true);
  });
}

test("a status of an earlier generation than the stored one, and else the same, is not written", () => {
  const set = aStatefulSet({ generation: 1 });
  const status = statefulSetStatus(viewOf(set, [up(0)]), [], 0);
  assert.equal(isOutdated({ ...set, status: { ...status, observedGeneration: 2 } }, status), false);
});

test("the status counts pods of each revision, and is at the new one when all are", () => {
  const set = aStatefulSet({ generation: 4, replicas: 3 });
  const view = viewOf(set, [stale(0), up(1, unready), up(2), up(3, gone)], { revisions: rolling });
  const base = { observedGeneration: 4, collisionCount: 1, currentRevision: "db-old", updateRevision: "db-new" };
  const before = { ...base, replicas: 4, readyReplicas: 3, availableReplicas: 3, currentReplicas: 1, updatedReplicas: 2 };
  assert.deepEqual(statefulSetStatus(view, [], 1), before);
  const [first, second] = view.pods as [Pod, Pod];
  assert.deepEqual(
    statefulSetStatus(
      view,
      [
        { action: "delete", pod: first },
        { action: "delete failed", pod: second },
      ],
      1,
    ),
    {
      ...before,
      replicas: 3,
      currentReplicas: 0,
      updatedReplicas: 1,
    },
  );
  assert.equal(statefulSetStatus(view, [{ action: "create", pod: up(4) }], 1).replicas, 5);

  const complete = viewOf(set, [up(0), up(1), up(2)], { revisions: rolling });
  const after = statefulSetStatus(complete, [], 0);
  assert.partialDeepStrictEqual(after, { currentRevision: "db-new", currentReplicas: 3, updatedReplicas: 3 });
  const waiting = aStatefulSet({ spec: { updateStrategy: { type: "OnDelete" } } });
  assert.equal(statefulSetStatus({ ...complete, set: waiting }, [], 0).currentRevision, "db-old");
  assert.equal(isOutdated(set, after), true);
  set.status = after;
  assert.equal(isOutdated(set, after), false);
  assert.equal(isOutdated(set, { ...after, readyReplicas: 2 }), true);
  assert.equal(isOutdated(set, { ...after, observedGeneration: 3 }), false, "the stored status is of a newer generation");
});

const set3 = (whenDeleted: string, whenScaled: string): StatefulSet =>
  aStatefulSet({
    replicas: 1,
    spec: {
      persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: {} }],
    },
  });
const ownedBySet: OwnerReference = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "db-uid" };
const ownedByPod = (ordinal: number): OwnerReference => ({
  apiVersion: "v1",
  kind: "Pod",
  name: `db-${ordinal}`,
  uid: `db-${ordinal}-uid`,
});
const stranger: OwnerReference = { apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "x-uid" };
for (const { name, policy, ordinal, owners = [], want } of [
  { name: "stays, as it does", policy: ["Retain", "Retain"], ordinal: 0, want: undefined },
  {
    name: "stays, and is no longer deleted with the set",
    policy: ["Retain", "Retain"],
    ordinal: 0,
    owners: [stranger, ownedBySet],
    want: [stranger],
  },
  { name: "is deleted with the set", policy: ["Delete", "Retain"], ordinal: 0, owners: [stranger], want: [stranger, ownedBySet] },
  {
    name: "of a pod that was scaled away is deleted with the set too",
    policy: ["Delete", "Retain"],
    ordinal: 1,
    want: [ownedBySet],
  },
  {
    name: "is deleted with no owner while its pod is desired",
    policy: ["Retain", "Delete"],
    ordinal: 0,
    owners: [ownedByPod(0)],
    want: [],
  },
  { name: "is deleted with the pod that is scaled away", policy: ["Retain", "Delete"], ordinal: 1, want: [ownedByPod(1)] },
  {
    name: "of a former set of the name is deleted with the one of now",
    policy: ["Delete", "Retain"],
    ordinal: 0,
    owners: [{ ...ownedBySet, uid: "former" }],
    want: [{ ...ownedBySet, uid: "former" }, ownedBySet],
  },
  {
    name: "is deleted with the pod alone when both policies apply",
    policy: ["Delete", "Delete"],
    ordinal: 1,
    owners: [ownedBySet],
    want: [ownedByPod(1)],
  },
] as {
  name: string;
  policy: [string, string];
  ordinal: number;
  owners?: OwnerReference[];
  want: OwnerReference[] | undefined;
}[]) {
  test(`a claim ${name}`, () => {
    const claim = { metadata: { name: `data-db-${ordinal}`, ownerReferences: owners }, spec: {} };
    assert.deepEqual(desiredOwners(set3(...policy), up(ordinal), claim), want);
  });
}

test("no pod is created while a claim is being deleted with its predecessor", () => {
  const claim = { metadata: { name: "data-db-0", ownerReferences: [ownedByPod(0)] }, spec: {} };
  const set = set3("Retain", "Delete");
  assert.equal(isStale(set, "db-0", claim), true);
  assert.equal(isStale(set3("Delete", "Retain"), "db-0", claim), false);
  const ownedBy = (...ownerReferences: OwnerReference[]) => ({ metadata: { name: "data-db-0", ownerReferences }, spec: {} });
  assert.equal(isStale(set, "db-0", ownedBy(stranger, ownedByPod(0))), true, "by the second owner");
  assert.equal(isStale(set, "db-0", ownedBy({ ...stranger, name: "db-0" })), false, "not by another kind of its name");
  const claims = (name: string): PersistentVolumeClaim | undefined => (name === "data-db-0" ? claim : undefined);
  assert.deepEqual(steps(viewOf(set, [], { claims })), []);
  assert.deepEqual(steps(viewOf(set, [], { claims: () => undefined })), ["create db-0"]);
  assert.deepEqual(steps(viewOf(set, [])), ["create db-0"], "with the gate off it is not consulted");
  set.spec.volumeClaimTemplates?.unshift({ metadata: { name: "log" }, spec: {} });
  const both = (name: string) => (name === "log-db-0" ? { metadata: { name }, spec: {} } : claims(name));
  assert.deepEqual(steps(viewOf(set, [], { claims: both })), [], "the second claim counts too");
});

test("a pod is repaired when the owner of its second claim is not the policy's, without replicas as with one", () => {
  const set = set3("Retain", "Delete");
  delete set.spec.replicas;
  set.spec.volumeClaimTemplates?.push({ metadata: { name: "log" }, spec: {} });
  const volume = (name: string) => ({ name, persistentVolumeClaim: { claimName: `${name}-db-0` } });
  const pod = up(0, { spec: { volumes: [volume("data"), volume("log")] } });
  const owned = (...wrong: string[]) => ({
    claims: (name: string) => ({ metadata: { name, ownerReferences: wrong.includes(name) ? [ownedByPod(0)] : [] }, spec: {} }),
  });
  assert.deepEqual(steps(viewOf(set, [pod], owned("log-db-0"))), ["repair db-0"]);
  assert.deepEqual(steps(viewOf(set, [pod], owned())), []);
});
