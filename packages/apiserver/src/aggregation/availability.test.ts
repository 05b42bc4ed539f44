/** When an APIService counts as available, the effects of a change, and when it is checked again. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  apiServices as apiServicesRef,
  endpoints as endpointsRef,
  services as servicesRef,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { type ApiService, availableCondition } from "./api-services.ts";
import { newAvailabilityController } from "./availability.ts";
import { newAggregatorMetrics } from "./metrics.ts";

const name = "v1.example.com";
function anApiService(service: object | null = { namespace: "a", name: "b", port: 8443 }): ApiService {
  const spec = { group: "example.com", version: "v1", groupPriorityMinimum: 1, versionPriority: 1 };
  return { metadata: { name }, spec: { ...spec, ...(service && { service }) } };
}
const metadata = { namespace: "a", name: "b" };
const aService = (spec: object = {}): Service & KubeObject => ({
  metadata,
  spec: {
    ports: [
      { name: "other", port: 443 },
      { name: "https", port: 8443 },
    ],
    ...spec,
  },
});
const address = { ip: "10.1.0.1" };
const served = { addresses: [address], ports: [{ name: "https", port: 443 }] };
const someEndpoints = (...subsets: object[]) => ({ metadata, subsets }) as Endpoints & KubeObject;

async function started(
  t: TestContext,
  apiService: ApiService,
  service?: Service & KubeObject,
  endpoints?: Endpoints & KubeObject,
) {
  const clock = newFakeClock(Date.parse("2022-01-01T00:00:00Z"));
  const client = newFakeClient({ clock });
  client.put(apiServicesRef, apiService);
  if (service !== undefined) client.put(servicesRef, service);
  if (endpoints !== undefined) client.put(endpointsRef, endpoints);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const registry = newMetricsRegistry();
  const probed = { times: 0, problem: undefined as string | undefined };
  const controller = newAvailabilityController({
    client,
    apiServices: informers.for<ApiService>(apiServicesRef),
    services: informers.for(servicesRef),
    endpoints: informers.for(endpointsRef),
    async probe() {
      probed.times++;
      return probed.problem;
    },
    metrics: newAggregatorMetrics(registry),
    clock,
    log: discardLogger,
  });
  const stop = new AbortController();
  informers.start(stop.signal);
  const running = controller.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  await clock.advance(100);
  const condition = () => {
    const found = client.object<ApiService>(apiServicesRef, name);
    return found && availableCondition(found);
  };
  const metric = async (wanted: string) => (await registry.render()).split("\n").filter((line) => line.startsWith(wanted));
  return { clock, client, probed, condition, metric };
}

for (const { what, apiService = anApiService(), service, endpoints, want } of [
  { what: "without a service", apiService: anApiService(null), want: "True Local" },
  { what: "whose service is not there", want: "False ServiceNotFound" },
  { what: "whose port no service has", service: aService({ ports: [{ port: 443 }] }), want: "False ServicePortError" },
  { what: "without endpoints", service: aService(), want: "False EndpointsNotFound" },
  {
    what: "whose endpoints are not ready",
    service: aService(),
    endpoints: someEndpoints({ notReadyAddresses: [address], ports: served.ports }),
    want: "False MissingEndpoints",
  },
  {
    what: "with addresses for another port only",
    service: aService(),
    endpoints: someEndpoints({ addresses: [address], ports: [{ name: "other", port: 1 }] }, { ports: served.ports }),
    want: "False MissingEndpoints",
  },
  {
    what: "with an address in the second subset",
    service: aService(),
    endpoints: someEndpoints({ addresses: [address], ports: [{ name: "other", port: 1 }] }, served),
    want: "True Passed",
  },
  {
    what: "behind another name, which has no endpoints",
    service: aService({ type: "ExternalName", externalName: "example.com" }),
    want: "True Passed",
  },
]) {
  test(`an APIService ${what} is ${want}`, async (t) => {
    const { condition } = await started(t, apiService, service, endpoints);
    assert.equal(`${condition()?.status} ${condition()?.reason}`, want);
  });
}

test("the time of the condition is that of its status, other conditions stay, and the counter counts what became unavailable", async (t) => {
  const apiService = anApiService();
  const other = { type: "Other", status: "True" } as const;
  apiService.status = { conditions: [other] };
  const { clock, client, probed, condition, metric } = await started(t, apiService, aService(), someEndpoints(served));
  const since = condition()?.lastTransitionTime;
  assert.equal(condition()?.status, "True");
  probed.problem = "no answer";
  await clock.advance(30_000);
  assert.deepEqual([condition()?.reason, condition()?.message], ["FailedDiscoveryCheck", "no answer"]);
  const lost = condition()?.lastTransitionTime;
  assert.notEqual(lost, since);
  assert.deepEqual(await metric("aggregator_unavailable_apiservice{"), [`aggregator_unavailable_apiservice{name="${name}"} 1`]);
  probed.problem = "another";
  await clock.advance(60_000);
  assert.deepEqual([condition()?.message, condition()?.lastTransitionTime], ["another", lost]);
  client.put(endpointsRef, someEndpoints());
  await clock.advance(100);
  assert.deepEqual([condition()?.reason, condition()?.lastTransitionTime], ["MissingEndpoints", lost]);
  assert.deepEqual(await metric("aggregator_unavailable_apiservice_total{"), [
    `aggregator_unavailable_apiservice_total{name="${name}",reason="FailedDiscoveryCheck"} 1`,
  ]);
  assert.deepEqual(client.object<ApiService>(apiServicesRef, name)?.status?.conditions?.[0], other);
  client.remove(apiServicesRef, name);
  await clock.advance(100);
  assert.deepEqual(await metric("aggregator_unavailable_apiservice{"), []);
});

test("a failed probe is repeated soon, a good one after half a minute, and nothing is written while nothing changes", async (t) => {
  const { clock, client, probed } = await started(t, anApiService(), aService(), someEndpoints(served));
  const [times, writes] = [probed.times, client.writes.length];
  await clock.advance(29_000);
  assert.equal(probed.times, times);
  await clock.advance(61_000);
  assert.equal(probed.times, times + 3);
  assert.equal(client.writes.length, writes);
  probed.problem = "no answer";
  await clock.advance(30_000);
  const failed = probed.times;
  await clock.advance(1_000);
  assert.ok(probed.times >= failed + 3, String(probed.times - failed));
});
