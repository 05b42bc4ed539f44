import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, invalid, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { claimObjects, decideClaim } from "./ownership.ts";

const owner = aReplicaSet({ name: "web" });
const leaving = aReplicaSet({ name: "web", deletedAt: "2024-01-01T00:00:00Z" });
const other = aReplicaSet({ name: "other" });

for (const { name, by, object, matches, want } of [
  { name: "keeps what is its own and matches", by: owner, object: aPod({ owner }), matches: true, want: "own" },
  { name: "releases what is its own and no longer matches", by: owner, object: aPod({ owner }), matches: false, want: "release" },
  { name: "releases nothing once it is being deleted", by: leaving, object: aPod({ owner }), matches: false, want: "ignore" },
  { name: "leaves what another controls", by: owner, object: aPod({ owner: other }), matches: true, want: "ignore" },
  { name: "adopts a matching orphan", by: owner, object: aPod(), matches: true, want: "adopt" },
  { name: "leaves an orphan that does not match", by: owner, object: aPod(), matches: false, want: "ignore" },
  {
    name: "leaves an orphan of another namespace",
    by: owner,
    object: aPod({ namespace: "shop" }),
    matches: true,
    want: "ignore",
  },
  {
    name: "leaves an orphan on its way out",
    by: owner,
    object: aPod({ deletedAt: "2024-01-01T00:00:00Z" }),
    matches: true,
    want: "ignore",
  },
  { name: "adopts nothing once it is being deleted", by: leaving, object: aPod(), matches: true, want: "ignore" },
]) {
  test(`an owner ${name}`, () => assert.equal(decideClaim(by, object, matches), want));
}

function claimIn(client: ReturnType<typeof newFakeClient>) {
  return claimObjects<Pod>({
    client,
    ref: pods,
    owner,
    ownerResource: replicaSets,
    selector: LabelSelector.fromSet({ app: "web" }),
    candidates: client.objects<Pod>(pods),
    signal: new AbortController().signal,
  });
}

test("adoption and release are written to the objects", async () => {
  const client = newFakeClient();
  client.put(replicaSets, owner);
  client.put(
    pods,
    aPod({ name: "another", labels: { app: "api" } }),
    aPod({ name: "orphan", labels: { app: "web" } }),
    aPod({ name: "relabelled", labels: { app: "api" }, owner }),
  );
  const claimed = await claimIn(client);
  assert.deepEqual(
    claimed.map(({ metadata }) => metadata.name),
    ["orphan"],
  );
  const [reference] = client.object<Pod>(pods, "default/orphan")?.metadata.ownerReferences ?? [];
  assert.partialDeepStrictEqual(reference, {
    kind: "ReplicaSet",
    name: "web",
    uid: "web-uid",
    controller: true,
    blockOwnerDeletion: true,
  });
  assert.deepEqual(client.object<Pod>(pods, "default/relabelled")?.metadata.ownerReferences ?? [], []);
});

test("an owner recreated under the same name does not adopt the dependents of the old one", async () => {
  const client = newFakeClient();
  client.put(replicaSets, aReplicaSet({ name: "web", uid: "younger" }));
  client.put(pods, aPod({ name: "orphan", labels: { app: "web" } }));
  await assert.rejects(claimIn(client), /is gone: got uid younger, wanted web-uid/);
  assert.equal(client.object<Pod>(pods, "default/orphan")?.metadata.ownerReferences, undefined);
});

test("one adoption that fails fails the whole, when the others are written; an orphan that is gone is just not there", async () => {
  const client = newFakeClient();
  client.put(replicaSets, owner);
  client.put(pods, ...["a", "b", "c"].map((name) => aPod({ name, labels: { app: "web" } })));
  client.react("patch", "pods", ({ name = "" }) => {
    if (name === "a") throw notFound(pods, name);
    return undefined;
  });
  const claimed = await claimIn(client);
  assert.deepEqual(
    claimed.map(({ metadata }) => metadata.name),
    ["b", "c"],
  );
  client.put(pods, aPod({ name: "d", labels: { app: "web" } }), aPod({ name: "e", labels: { app: "web" } }));
  client.react("patch", "pods", ({ name = "" }) => {
    if (name === "d") throw forbidden(pods, name, "no");
    return undefined;
  });
  await assert.rejects(claimIn(client), /forbidden/);
  assert.equal(client.object<Pod>(pods, "default/e")?.metadata.ownerReferences?.length, 1);
});

test("an owner that is being deleted, which only the server knows, adopts nothing; it is asked once", async () => {
  const client = newFakeClient();
  client.put(replicaSets, aReplicaSet({ name: "web", deletedAt: "2024-01-01T00:00:00Z", finalizers: ["example.com/x"] }));
  client.put(pods, aPod({ name: "a", labels: { app: "web" } }), aPod({ name: "b", labels: { app: "web" } }));
  await assert.rejects(claimIn(client), {
    message: "can't adopt default/web: it has just been deleted at 2024-01-01T00:00:00Z.",
  });
  assert.deepEqual(
    client.actions.map(({ verb, resource }) => `${verb} ${resource}`),
    ["get replicasets"],
  );
});

for (const { what, answer } of [
  { what: "was deleted", answer: (name: string) => notFound(pods, name) },
  { what: "was replaced by another of its name", answer: (name: string) => invalid({ group: "", kind: "Pod" }, name, []) },
])
  test(`an object to be released that ${what} meanwhile is no failure`, async () => {
    const client = newFakeClient();
    client.put(pods, aPod({ name: "relabelled", labels: { app: "api" }, owner }));
    client.react("patch", "pods", ({ name }) => {
      throw answer(name);
    });
    assert.deepEqual(await claimIn(client), []);
  });

test("a release that fails for another reason fails the whole", async () => {
  const client = newFakeClient();
  client.put(pods, aPod({ name: "relabelled", labels: { app: "api" }, owner }));
  client.react("patch", "pods", ({ name }) => {
    throw forbidden(pods, name, "no");
  });
  await assert.rejects(claimIn(client), /forbidden/);
});

test("both patches name the uid, so that an object of the same name is not changed", async () => {
  const client = newFakeClient();
  client.put(replicaSets, owner);
  client.put(
    pods,
    aPod({ name: "orphan", uid: "orphan-uid", labels: { app: "web" } }),
    aPod({ name: "relabelled", uid: "relabelled-uid", labels: { app: "api" }, owner }),
  );
  await claimIn(client);
  const uids = client.writes.map(({ name, sent }) => [name, (sent as { metadata?: { uid?: string } }).metadata?.uid]);
  assert.deepEqual(Object.fromEntries(uids), { orphan: "orphan-uid", relabelled: "relabelled-uid" });
});
