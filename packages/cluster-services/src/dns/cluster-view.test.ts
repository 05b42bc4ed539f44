import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { endpointSlices, namespaces, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newClusterView } from "./cluster-view.ts";

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
