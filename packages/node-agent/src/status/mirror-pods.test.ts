import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { configHashAnnotation, configMirrorAnnotation, configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { newMirrorPods } from "./mirror-pods.ts";

const fromFile = (hash: string, name = "web"): NodePod =>
  aNodePod({}, { name, uid: hash, annotations: { [configHashAnnotation]: hash, [configSourceAnnotation]: "file" } });

function mirroring(metadata: Node["metadata"] = {}) {
  const client = newFakeClient({ clock: newFakeClock() });
  let heard: NodePod[] = [];
  const errors: string[] = [];
  const mirrors = newMirrorPods({
    client,
    log: { ...discardLogger, error: (message) => void errors.push(message) },
    apiPods: () => heard,
    node: async () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "node-uid", ...metadata }, spec: {} }),
  });
  /** Updates the agent's cache from the server. @returns names and hashes */
  const hear = async (): Promise<string[]> => {
    heard = (await client.list<Pod>(pods, { namespace: "default" })).items as NodePod[];
    return heard.map(({ metadata }) => `${metadata.name} ${metadata.annotations?.[configMirrorAnnotation]}`);
  };
  return { client, errors, mirrors, hear };
}

test("a static pod has a mirror pod owned by the node, and a new one when it changes", async () => {
  const { client, mirrors, hear } = mirroring();
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual(await hear(), ["web one"]);
  const { metadata } = await client.get<Pod>(pods, { namespace: "default", name: "web" });
  assert.deepEqual(metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid", controller: true }]);
  assert.notEqual(metadata.uid, "one", "its uid is the server's");
  assert.equal((client.writes[0]?.sent as Pod | undefined)?.metadata.uid, undefined, "and none is requested");
  await mirrors.ensure(fromFile("one"));
  assert.equal(client.writes.length, 1, "what is right is left alone");
  await mirrors.ensure(fromFile("two"));
  assert.deepEqual(await hear(), []);
  await mirrors.ensure(fromFile("two"));
  assert.deepEqual(await hear(), ["web two"]);
});

test("pods from the API server, and all on a node that is being deleted, have no mirror pods", async () => {
  const { mirrors, hear } = mirroring();
  await mirrors.ensure(aNodePod());
  assert.deepEqual(await hear(), []);
  const leaving = mirroring({ deletionTimestamp: "2026-01-01T00:00:00Z" });
  await leaving.mirrors.ensure(fromFile("one"));
  assert.deepEqual(await leaving.hear(), []);
});

test("mirror pods without a static pod are deleted, other pods are not", async () => {
  const { client, mirrors, hear } = mirroring();
  for (const name of ["wanted", "ending", "gone"]) await mirrors.ensure(fromFile(name, name));
  client.put(pods, aNodePod({}, { name: "other", uid: "other" }));
  await hear();
  const sameName = aNodePod({}, { name: "gone", uid: "of-the-api" });
  await mirrors.removeOrphans([fromFile("wanted", "wanted"), fromFile("ending", "ending"), sameName]);
  assert.deepEqual((await hear()).toSorted(), ["ending ending", "other undefined", "wanted wanted"]);
});

test("a mirror pod with a deletionTimestamp is deleted, and created again afterwards", async () => {
  const { client, mirrors, hear } = mirroring();
  await mirrors.ensure(fromFile("one"));
  const made = await client.get<Pod>(pods, { namespace: "default", name: "web" });
  client.put(pods, { ...made, metadata: { ...made.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
  await hear();
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual(await hear(), []);
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual(await hear(), ["web one"]);
});

test("a pod of the same name that is not a mirror pod is neither replaced nor treated as one", async () => {
  const { client, errors, mirrors, hear } = mirroring();
  client.put(pods, aNodePod({}, { uid: "other" }));
  await hear();
  assert.equal(mirrors.of(fromFile("one")), undefined);
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual([await hear(), errors], [["web undefined"], []]);
});

test("a mirror pod that was recreated before its deletion is not deleted", async () => {
  const { client, errors, mirrors, hear } = mirroring();
  await mirrors.ensure(fromFile("one"));
  await hear();
  const old = await client.get<Pod>(pods, { namespace: "default", name: "web" });
  client.remove(pods, "default/web");
  client.put(pods, { ...old, metadata: { ...old.metadata, uid: "another" } });
  await mirrors.ensure(fromFile("two"));
  await mirrors.removeOrphans([]);
  assert.equal((await client.get<Pod>(pods, { namespace: "default", name: "web" })).metadata.uid, "another");
  client.remove(pods, "default/web");
  await mirrors.ensure(fromFile("two"));
  await mirrors.removeOrphans([]);
  assert.deepEqual(errors, [], "neither is a failure");
});

test("a mirror pod that cannot be deleted does not prevent the deletion of the others", async () => {
  const { client, errors, mirrors, hear } = mirroring();
  for (const name of ["first", "second"]) await mirrors.ensure(fromFile(name, name));
  await hear();
  client.react("delete", "pods", ({ name }) => {
    if (name === "first") throw serviceUnavailable("away");
    return undefined;
  });
  await mirrors.removeOrphans([]);
  assert.deepEqual([await hear(), errors], [["first first"], ["Failed deleting mirror pod"]]);
});
