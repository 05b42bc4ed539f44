import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists, isConflict } from "@coxswain/apimachinery/objects/errors/predicates";
import { alreadyExists, conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { attempts, ensure } from "./ensure.ts";

type ConfigMap = KubeObject & { data?: Record<string, string> };
const aConfigMap = (data: Record<string, string>): ConfigMap => ({ metadata: { namespace: "kube-system", name: "a" }, data });
const bring = (existing: ConfigMap): ConfigMap | undefined =>
  existing.data?.["own"] === "1" ? undefined : { ...existing, data: { ...existing.data, own: "1" } };
const verbs = (client: ReturnType<typeof newFakeClient>): string[] => client.writes.map(({ verb }) => verb);
const stored = (client: ReturnType<typeof newFakeClient>) => client.object<ConfigMap>(configMaps, "kube-system/a")?.data;

test("a missing object is created, a different one is updated, and a correct one is not written", async () => {
  const client = newFakeClient();
  await ensure(client, configMaps, aConfigMap({ own: "1" }), bring);
  await ensure(client, configMaps, aConfigMap({ own: "1" }), bring);
  assert.deepEqual(verbs(client), ["create"]);
  client.put(configMaps, aConfigMap({ others: "2" }));
  await ensure(client, configMaps, aConfigMap({ own: "1" }), bring);
  assert.deepEqual([verbs(client), stored(client)], [["create", "update"], { others: "2", own: "1" }]);
});

test("an object that another server creates meanwhile is updated", async () => {
  const client = newFakeClient();
  let isFirst = true;
  client.react("create", "configmaps", () => {
    if (isFirst) client.put(configMaps, aConfigMap({ others: "2" }));
    isFirst = false;
  });
  await ensure(client, configMaps, aConfigMap({ own: "1" }), bring);
  assert.deepEqual([verbs(client), stored(client)], [["create", "update"], { others: "2", own: "1" }]);
});

test("after a conflict the current object is tried, at most five times", async () => {
  const client = newFakeClient({ objects: [[configMaps, aConfigMap({})]] });
  let conflicts = attempts - 1;
  client.react("update", "configmaps", () => {
    if (conflicts-- > 0) throw conflict(configMaps, "a", "changed");
  });
  await ensure(client, configMaps, aConfigMap({}), bring);
  assert.deepEqual([client.writes.length, stored(client)], [attempts, { own: "1" }]);
  client.put(configMaps, aConfigMap({}));
  client.clearActions();
  client.react("update", "configmaps", () => {
    if (client.writes.length > attempts) throw new Error("it does not give up");
    throw conflict(configMaps, "a", "changed");
  });
  await assert.rejects(ensure(client, configMaps, aConfigMap({}), bring), isConflict);
  assert.equal(client.writes.length, attempts);
});

test("an object that is created and deleted by others all the time is given up after five attempts", async () => {
  const client = newFakeClient();
  client.react("create", "configmaps", () => {
    if (client.writes.length > attempts) throw new Error("it does not give up");
    throw alreadyExists(configMaps, "a");
  });
  await assert.rejects(ensure(client, configMaps, aConfigMap({}), bring), isAlreadyExists);
  assert.equal(client.writes.length, attempts);
});

test("another failure is not tried again", async () => {
  const client = newFakeClient();
  client.react("create", "configmaps", () => {
    throw new Error("the store is full");
  });
  await assert.rejects(ensure(client, configMaps, aConfigMap({}), bring), /the store is full/);
  assert.equal(client.writes.length, 1);
});
