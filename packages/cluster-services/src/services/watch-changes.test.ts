import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { watchChanges } from "./watch-changes.ts";

const zoneLabel = "topology.kubernetes.io/zone";
const aNode = (zone: string, more: Partial<Node> = {}): Node => ({
  metadata: { name: "n1", labels: { [zoneLabel]: zone } },
  spec: {},
  ...more,
});
const withLabel = (slice: EndpointSlice, service: string): EndpointSlice => ({
  ...slice,
  metadata: { ...slice.metadata, labels: { "kubernetes.io/service-name": service } },
});
const triggered = (slice: EndpointSlice, ms: number): EndpointSlice => ({
  ...slice,
  metadata: {
    ...slice.metadata,
    annotations: { "endpoints.kubernetes.io/last-change-trigger-time": formatTime(ms) },
  },
});

async function start(t: TestContext) {
  const clock = newFakeClock();
  const web = aSlice("web", [anEndpoint("10.0.0.1", "n1")]);
  const client = newFakeClient({
    clock,
    objects: [
      [services, aService("web")],
      [endpointSlices, web],
      [nodes, aNode("a")],
    ],
  });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const node = informers.for<Node>(nodes, { fieldSelector: "metadata.name=n1" });
  informers.for<Service>(services);
  informers.for<EndpointSlice>(endpointSlices);
  informers.start(ending.signal);
  await informers.waitForSync(ending.signal);
  let seen: string[] = [];
  const metrics = newMetricsRegistry();
  watchChanges(
    { informers, clock, nodeName: "n1", metrics },
    {
      changed: (key, triggers = []) => void seen.push([key, ...triggers.map((ms) => ms - clock.now())].join(" ")),
      allChanged: () => void seen.push("all"),
      thisNode: () => ({ name: "n1", zone: node.lister.get("n1")?.metadata.labels?.[zoneLabel] }),
    },
  );
  /** What is reported since the last call. */
  const reported = async (): Promise<string[]> => {
    await settle();
    const since = seen;
    seen = [];
    return since;
  };
  return { clock, client, web, reported, metrics };
}

test("existing Services and slices are reported at the start, then each change of one", async (t) => {
  const { client, web, reported, metrics } = await start(t);
  assert.deepEqual(await reported(), ["default/web", "default/web"]);
  client.put(services, aService("other"));
  assert.deepEqual(await reported(), ["default/other"]);
  client.put(endpointSlices, { ...web, endpoints: [] });
  assert.deepEqual(await reported(), ["default/web"]);
  client.remove(endpointSlices, "default/web-1");
  assert.deepEqual(await reported(), ["default/web"], "a slice that was removed");
  client.remove(services, "default/other");
  assert.deepEqual(await reported(), ["default/other"], "a Service that was removed");
  const shown = await metrics.render();
  assert.match(shown, /^kubeproxy_sync_proxy_rules_service_changes_total 3$/m);
  assert.match(shown, /^kubeproxy_sync_proxy_rules_endpoint_changes_total 3$/m);
});

test("a slice that is relabelled to another Service changes both", async (t) => {
  const { client, web, reported } = await start(t);
  await reported();
  client.put(endpointSlices, withLabel(web, "other"));
  assert.deepEqual(await reported(), ["default/web", "default/other"]);
  client.put(endpointSlices, { ...web, metadata: { ...web.metadata, labels: {} } });
  assert.deepEqual(await reported(), ["default/other"], "a slice without the label is no Service's");
});

test("the time that triggered a change is reported, unless it lies before the start", async (t) => {
  const { clock, client, web, reported } = await start(t);
  await reported();
  await clock.advance(10_000);
  client.put(endpointSlices, triggered(web, clock.now() - 2_000));
  assert.deepEqual(await reported(), ["default/web -2000"]);
  client.put(endpointSlices, triggered(web, clock.now() - 20_000));
  assert.deepEqual(await reported(), ["default/web"]);
});

test("all Services are reported when the node's zone changes, and not at its heartbeats", async (t) => {
  const { client, reported } = await start(t);
  await reported();
  client.put(nodes, aNode("a", { status: { conditions: [] } }));
  assert.deepEqual(await reported(), []);
  client.put(nodes, aNode("b"));
  assert.deepEqual(await reported(), ["all"]);
  client.put(nodes, aNode("b", { status: { conditions: [] } }));
  assert.deepEqual(await reported(), []);
  client.put(nodes, aNode("a"));
  assert.deepEqual(await reported(), ["all"], "the second change");
  client.remove(nodes, "n1");
  assert.deepEqual(await reported(), ["all"], "without its Node no zone is near");
});
