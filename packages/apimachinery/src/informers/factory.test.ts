import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../objects/meta/types.ts";
import { eventsV1, nodes, pods } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { aNode, aPod } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { newInformerFactory } from "./factory.ts";
import { informerFailures } from "./metrics.ts";

test("a factory of one namespace reads cluster-scoped resources as a whole, and transforms what it lists", async (t) => {
  const client = newFakeClient();
  client.put(pods, aPod({ name: "a", namespace: "web", annotations: { big: "x" } }), aPod({ name: "b", namespace: "shop" }));
  client.put(nodes, aNode({ name: "n" }));
  const clock = newFakeClock();
  let period = 0;
  const factory = newInformerFactory(client, {
    log: discardLogger,
    clock,
    namespace: "web",
    resyncMs: () => (period += 10_000),
    transform: (object) => ({ ...object, metadata: { ...object.metadata, annotations: {} } }),
  });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const updates: string[] = [];
  const informers = [factory.for<KubeObject>(pods), factory.for<KubeObject>(nodes)];
  for (const { addHandler } of informers) addHandler({ updated: (_, { metadata }) => void updates.push(metadata.name ?? "") });
  assert.deepEqual([factory.hasAll(pods), factory.hasAll(nodes)], [false, true]);
  factory.start(stop.signal);
  await factory.waitForSync(stop.signal);
  const lists = client.actions.filter(({ verb }) => verb === "list");
  assert.deepEqual(
    lists.map(({ resource, namespace }) => [resource, namespace]),
    [
      ["pods", "web"],
      ["nodes", ""],
    ],
  );
  assert.deepEqual(informers[0]?.lister.get("web/a")?.metadata.annotations, {});
  await clock.advance(20_000);
  assert.deepEqual(updates, ["a", "n", "a"].toSorted(), "each informer has its own period");
});

test("failures of handlers are counted by resource and group", async (t) => {
  const client = newFakeClient();
  client.put(eventsV1, { metadata: { name: "e", namespace: "web" } });
  const metrics = newMetricsRegistry();
  const onFailure = informerFailures(metrics);
  const factory = newInformerFactory(client, { log: discardLogger, clock: newFakeClock(), onFailure });
  const stop = new AbortController();
  t.after(() => stop.abort());
  factory.for<KubeObject>(eventsV1).addHandler({
    added() {
      throw new Error("ill");
    },
  });
  factory.start(stop.signal);
  await factory.waitForSync(stop.signal);
  assert.match(await metrics.render(), /^coxswain_informer_handler_failures_total\{resource="events.events.k8s.io"\} 1$/m);
});
