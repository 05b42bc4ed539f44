/** Whether the objects of a namespace are read from the cache or from the API. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { limitRanges, namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { namespacedLookup } from "./lookups.ts";
import { namespaceLookup } from "./namespace-lookup.ts";

const named = (name: string): KubeObject => ({ metadata: { name, namespace: "web" } });

/** A lookup with a cache that the test sets, and a record of its API calls. */
function lookups(t: TestContext) {
  const client = newFakeClient();
  const cached: KubeObject[] = [];
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const lister = { inNamespace: () => cached, get: () => cached[0] };
  const some = { ...informers, for: () => ({ synced: true, lister }) } as unknown as typeof informers;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const calls = () => client.actions.length;
  const inCluster = namespacedLookup(some, client, limitRanges);
  const names = async () => (await inCluster.in("web")).map(({ metadata }) => metadata.name);
  return { client, cached, calls, names, namespace: namespaceLookup(some, client) };
}

test("objects that the cache lacks are read from the API, and an empty result is cached", async (t) => {
  t.mock.method(performance, "now", () => nowMs);
  let nowMs = 1;
  const { client, cached, calls, names } = lookups(t);
  assert.deepEqual([await names(), await names(), calls()], [[], [], 1]);
  cached.push(named("seen"));
  assert.deepEqual([await names(), calls()], [["seen"], 1], "the cache counts as soon as it has something");
  cached.length = 0;
  client.put(limitRanges, named("new"));
  nowMs += 29_999;
  t.mock.timers.tick(29_999);
  assert.deepEqual([await names(), calls()], [[], 1], "for thirty seconds");
  nowMs += 1_001;
  t.mock.timers.tick(1_001);
  assert.deepEqual(
    [await names(), await names(), calls()],
    [["new"], ["new"], 3],
    "an object that exists is read again until the cache has it",
  );
});

test("a namespace that the API does not have does not exist, a failed lookup is an error", async (t) => {
  const { client, cached, calls, namespace } = lookups(t);
  assert.equal(await namespace.get("web"), undefined);
  client.put(namespaces, { metadata: { name: "web" } });
  assert.equal((await namespace.get("web"))?.metadata.name, "web");
  client.react("get", "namespaces", () => {
    throw internalError(new Error("etcd is away"));
  });
  await assert.rejects(namespace.get("web"), /etcd is away/);
  cached.push(named("web"));
  const before = calls();
  assert.deepEqual([(await namespace.get("web"))?.metadata.name, calls()], ["web", before]);
});
