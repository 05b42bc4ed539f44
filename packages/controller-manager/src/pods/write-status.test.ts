import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { writeStatus } from "./write-status.ts";

/** A cached ReplicaSet whose stored version has changed since. */
function outdated() {
  const client = newFakeClient();
  client.put(replicaSets, aReplicaSet());
  const cached = client.object<ReplicaSet>(replicaSets, "default/web") as ReplicaSet;
  client.put(replicaSets, { ...cached, metadata: { ...cached.metadata, labels: { app: "web", since: "yes" } } });
  const write = () => writeStatus(client, replicaSets, cached, { replicas: 7 }, new AbortController().signal);
  return { client, cached, write, stored: () => client.object<ReplicaSet>(replicaSets, "default/web") };
}

test("a status is written over later changes by others, and keeps these", async () => {
  const { write, stored } = outdated();
  await write();
  assert.equal(stored()?.status?.replicas, 7);
  assert.equal(stored()?.metadata.labels?.["since"], "yes");
});

test("another object of the name, or none, is left alone", async () => {
  const { client, write, stored } = outdated();
  client.remove(replicaSets, "default/web");
  await write();
  assert.equal(stored(), undefined);
  client.put(replicaSets, aReplicaSet({ uid: "another" }));
  await write();
  assert.equal(stored()?.status?.replicas, 0);
});

test("two conflicts in a row are an error", async () => {
  const { client, cached, write } = outdated();
  let version = 0;
  client.react("update", "replicasets", () => {
    client.put(replicaSets, { ...cached, metadata: { ...cached.metadata, labels: { version: String(version++) } } });
    return undefined;
  });
  await assert.rejects(write(), { message: /the object has been modified/ });
  assert.equal(version, 2);
});

test("a status of an older generation than the stored one is not written over it", async () => {
  const { client, cached, stored } = outdated();
  const newer = stored() as ReplicaSet;
  client.put(replicaSets, { ...newer, status: { replicas: 3, observedGeneration: 5 } });
  const write = (observedGeneration: number) =>
    writeStatus(client, replicaSets, cached, { replicas: 7, observedGeneration }, new AbortController().signal);
  await write(4);
  assert.deepEqual(stored()?.status, { replicas: 3, observedGeneration: 5 });
  await write(5);
  assert.deepEqual(stored()?.status, { replicas: 7, observedGeneration: 5 });
});
