import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { newTestContext } from "../testing/test-context.ts";
import { enqueueWhenAvailable, ownerEventHandlers } from "./owner-event-handlers.ts";

const [one, two, api] = [aReplicaSet({ name: "one" }), aReplicaSet({ name: "two" }), aReplicaSet({ name: "api" })];
api.spec.selector = { matchLabels: { app: "api" } };
const version = (pod: Pod, resourceVersion: string): Pod => ({ ...pod, metadata: { ...pod.metadata, resourceVersion } });

async function setUp(t: { after(fn: () => void): void }, ...owners: ReplicaSet[]) {
  const { client, ctx, run } = newTestContext(t);
  client.put(replicaSets, ...(owners.length === 0 ? [one, two, api] : owners));
  const informer = ctx.informers.for<ReplicaSet>(replicaSets);
  await run();
  const heard: string[] = [];
  const handlers = ownerEventHandlers<ReplicaSet, Pod>(
    {
      owners: informer,
      selectorOf: ({ spec }) => LabelSelector.ofCached(spec.selector),
      created: (key) => void heard.push(`created ${key}`),
      removed: (key, { metadata }) => void heard.push(`removed ${key} ${metadata.name}`),
      changed: enqueueWhenAvailable(() => 30),
    },
    {
      enqueue: (key) => void heard.push(key),
      enqueueAfter: (key, ms) => void heard.push(`${key} after ${ms}`),
    },
  );
  const after = (call: () => void): string[] => {
    heard.length = 0;
    call();
    return [...heard];
  };
  return { handlers, after };
}

test("a new pod counts as created for its owner; on its way out when first seen, as removed", async (t) => {
  const { handlers, after } = await setUp(t);
  assert.deepEqual(
    after(() => handlers.added(aPod({ name: "a", owner: one }))),
    ["created default/one", "default/one"],
  );
  const going = aPod({ name: "a", owner: one, deletedAt: "2022-01-01T00:00:00Z" });
  assert.deepEqual(
    after(() => handlers.added(going)),
    ["removed default/one a", "default/one"],
  );
  assert.deepEqual(
    after(() => handlers.added(aPod({ name: "a", owner: aReplicaSet({ name: "one", uid: "older" }) }))),
    [],
  );
  assert.deepEqual(
    after(() => handlers.added(aPod({ name: "a", owner: { ...one, kind: "Job" } }))),
    [],
  );
});

test("an orphan wakes all that select it, when it comes, when its labels change, and when it is released", async (t) => {
  const { handlers, after } = await setUp(t);
  const web = version(aPod({ name: "a", labels: { app: "web" } }), "1");
  assert.deepEqual(after(() => handlers.added(web)).toSorted(), ["default/one", "default/two"]);
  assert.deepEqual(
    after(() => handlers.updated(web, version(web, "2"))),
    [],
    "nothing about it changed",
  );
  const relabelled = version(aPod({ name: "a", labels: { app: "api" } }), "2");
  assert.deepEqual(
    after(() => handlers.updated(web, relabelled)),
    ["default/api"],
  );
  const owned = version(aPod({ name: "a", labels: { app: "web" }, owner: two }), "3");
  assert.deepEqual(after(() => handlers.updated(owned, version(web, "4"))).toSorted(), [
    "default/one",
    "default/two",
    "default/two",
  ]);
});

test("an owner whose selector cannot be read keeps an orphan from no other", async (t) => {
  const broken = aReplicaSet({ name: "broken" });
  broken.spec.selector = { matchExpressions: [{ key: "a", operator: "Nonsense", values: [] }] };
  const { handlers, after } = await setUp(t, broken, one);
  assert.deepEqual(
    after(() => handlers.added(aPod({ name: "a", labels: { app: "web" } }))),
    ["default/one"],
  );
});

test("a pod that changes its owner wakes both owners, also under its old version after a restore of etcd; a resync wakes none", async (t) => {
  const { handlers, after } = await setUp(t);
  const before = version(aPod({ name: "a", owner: one }), "1");
  const now = version(aPod({ name: "a", owner: two }), "2");
  assert.deepEqual(
    after(() => handlers.updated(before, now)),
    ["default/one", "default/two"],
  );
  assert.deepEqual(
    after(() => handlers.updated(before, version(now, "1"))),
    ["default/one", "default/two"],
  );
  assert.deepEqual(
    after(() => handlers.updated(now, now)),
    [],
  );
});

test("a pod counts as removed when its deletion starts, and again when it is deleted", async (t) => {
  const { handlers, after } = await setUp(t);
  const before = version(aPod({ name: "a", owner: one }), "1");
  const going = version(aPod({ name: "a", owner: one, deletedAt: "2022-01-01T00:00:00Z" }), "2");
  assert.deepEqual(
    after(() => handlers.updated(before, going)),
    ["removed default/one a", "default/one"],
  );
  assert.deepEqual(
    after(() => handlers.deleted(going)),
    ["removed default/one a", "default/one"],
  );
  assert.deepEqual(
    after(() => handlers.deleted(aPod({ name: "x" }))),
    [],
  );
});

test("a pod that becomes ready is looked at again when it is available; one that was ready is not", async (t) => {
  const { handlers, after } = await setUp(t);
  const [unready, ready] = [false, true].map((is, i) => version(aPod({ name: "a", owner: one, ready: is }), String(i)));
  assert.deepEqual(
    after(() => handlers.updated(unready as Pod, ready as Pod)),
    ["default/one", "default/one after 31000"],
  );
  assert.deepEqual(
    after(() => handlers.updated(ready as Pod, version(ready as Pod, "9"))),
    ["default/one"],
  );
  assert.deepEqual(
    after(() => handlers.updated(ready as Pod, unready as Pod)),
    ["default/one"],
  );
});

test("a pod that is released on its way out counts as removed for the owner that it had", async (t) => {
  const { handlers, after } = await setUp(t);
  const old = aPod({ name: "a", owner: one, labels: { app: "web" } });
  const now = aPod({ name: "a", labels: { app: "debug" }, deletedAt: "2022-01-01T00:00:00Z" });
  assert.deepEqual(
    after(() => handlers.updated(old, now)),
    ["removed default/one a", "default/one"],
  );
});

test("an owner whose selector has 50,000 labels is compared with each of 1,000 orphans in little time", async (t) => {
  const large = aReplicaSet({ name: "large" });
  large.spec.selector = { matchLabels: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`l${i}`, "v"])) };
  const { handlers, after } = await setUp(t, large);
  const orphans = Array.from({ length: 1_000 }, (_, i) => aPod({ name: `p${i}`, labels: { l0: "v" } }));
  const heard = after(() => {
    const tookMs = cpuMsOf(() => orphans.forEach(handlers.added));
    assert.ok(tookMs < 1_000, `${tookMs} ms`);
  });
  assert.deepEqual(heard, []);
});

test("an orphan wakes no owner whose selector is empty", async (t) => {
  const all = aReplicaSet({ name: "all" });
  const { handlers, after } = await setUp(t, { ...all, spec: { ...all.spec, selector: {} } });
  assert.deepEqual(
    after(() => handlers.added(aPod({ name: "a", labels: { app: "web" } }))),
    [],
  );
});

test("without minReadySeconds a pod that becomes ready needs no second look", () => {
  const looks: string[] = [];
  const queue = { enqueue: (key: string) => void looks.push(key), enqueueAfter: (key: string) => void looks.push(key) };
  const [before, now] = [aPod({ name: "a", ready: false }), aPod({ name: "a" })];
  enqueueWhenAvailable<ReplicaSet>(() => 0)(one, before, now, queue);
  assert.deepEqual(looks, []);
});
