import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { endpointSlices, namespaces, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newClusterView } from "./cluster-view.ts";
import { addressKey } from "./service-records.ts";
import { aService, aSlice } from "./testing.ts";

for (const missing of [services, endpointSlices, namespaces])
  test(`the cluster is not known before its ${missing.resource} are`, async (t) => {
    const clock = newFakeClock();
    const client = newFakeClient({ clock });
    const held = Promise.withResolvers<void>();
    client.react("list", missing.resource, async () => {
      await held.promise;
      return { metadata: { resourceVersion: "1" }, items: [] };
    });
    const informers = newInformerFactory(client, { clock, log: discardLogger });
    const view = newClusterView(informers);
    const ending = new AbortController();
    t.after(() => ending.abort());
    informers.start(ending.signal);
    await settle(20);
    assert.equal(view.isSynced, false);
    held.resolve();
    await settle(20);
    assert.equal(view.isSynced, true);
  });

test("the objects of the cluster are found by name and by address", async (t) => {
  const clock = newFakeClock();
  const service = aService("dual", { clusterIP: "10.96.0.20", clusterIPs: ["10.96.0.20", "fd00:1::20"] });
  const slice = aSlice("dual", [{ addresses: ["10.244.0.5"] }, { addresses: ["10.244.0.6"] }]);
  const { "kubernetes.io/service-name": _, ...labels } = slice.metadata.labels ?? {};
  const without = { ...slice, metadata: { ...slice.metadata, name: "without", labels } };
  const client = newFakeClient({
    clock,
    objects: [
      [namespaces, { metadata: { name: "default" } }],
      [services, service],
      [endpointSlices, slice],
      [endpointSlices, without],
    ],
  });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const view = newClusterView(informers);
  const ending = new AbortController();
  t.after(() => ending.abort());
  informers.start(ending.signal);
  await waitFor(() => view.isSynced);
  const namesOf = (all: readonly { metadata: { name?: string } }[]): string =>
    all
      .map(({ metadata }) => metadata.name)
      .sort()
      .join();
  assert.deepEqual(["default", "kube-system", ""].map(view.hasNamespace), [true, false, false]);
  assert.deepEqual([view.service("default/dual")?.spec.clusterIP, view.service("other/dual")], ["10.96.0.20", undefined]);
  const second = addressKey("fd00:1::20");
  assert.deepEqual(
    ["10.96.0.20", second, "10.96.0.21"].map((key) => namesOf(view.servicesAt(key))),
    ["dual", "dual", ""],
  );
  assert.deepEqual(
    ["default/dual", "other/dual"].map((key) => namesOf(view.slicesOf(key))),
    ["dual-1", ""],
  );
  assert.deepEqual(
    ["10.244.0.6", "10.244.0.7"].map((key) => namesOf(view.slicesAt(key))),
    ["dual-1,without", ""],
  );
});
