import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { namespaces, priorityClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { ensureNamespaces } from "./namespaces.ts";
import { ensurePriorityClasses } from "./priority-classes.ts";

type PriorityClass = KubeObject & { value: number };

test("a cluster has both classes of system pods, with upstream's values; one that is there is not changed", async () => {
  const client = newFakeClient();
  client.put<PriorityClass>(priorityClasses, { metadata: { name: "system-node-critical" }, value: 7 });
  await ensurePriorityClasses(client);
  const values = () => client.objects<PriorityClass>(priorityClasses).map(({ metadata, value }) => [metadata.name, value]);
  assert.deepEqual(values(), [
    ["system-node-critical", 7],
    ["system-cluster-critical", 2_000_000_000],
  ]);
  client.remove(priorityClasses, "system-node-critical");
  await ensurePriorityClasses(client);
  assert.deepEqual(values().at(-1), ["system-node-critical", 2_000_001_000]);
});

test("a cluster has its four namespaces, and those that are there are not written", async () => {
  const client = newFakeClient({ objects: [[namespaces, { metadata: { name: "default" } }]] });
  await ensureNamespaces(client);
  assert.deepEqual(
    client.writes.map(({ verb, name }) => `${verb} ${name}`),
    ["create kube-system", "create kube-public", "create kube-node-lease"],
  );
});
