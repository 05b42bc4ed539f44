/** Which server answers for a path, and which groups are announced, as APIServices come, change and go. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { apiServices } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { RequestContext } from "../request/context.ts";
import { newAggregator } from "./aggregator.ts";
import type { ApiService } from "./api-services.ts";

const anApiService = (group: string, version: string, isRemote: boolean): ApiService => ({
  metadata: { name: `${version}.${group}` },
  spec: {
    ...{ group, version, groupPriorityMinimum: 1000, versionPriority: 1, insecureSkipTLSVerify: true },
    ...(isRemote && { service: { namespace: "web", name: "server", port: 443 } }),
  },
});

async function anAggregator(t: TestContext, ...existing: ApiService[]) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(apiServices, ...existing);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const aggregator = newAggregator({
    ...{ informers, clock, tunnel: undefined, certificate: { current: undefined }, openApiV3: false },
    resolve: () => {
      throw new Error("nowhere");
    },
    builtIn: [
      { group: "apiregistration.k8s.io", version: "v1" },
      { group: "apps", version: "v1" },
    ],
    refused: () => {},
    metrics: newMetricsRegistry(),
    log: discardLogger,
  } as unknown as Parameters<typeof newAggregator>[0]);
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  /** Whether another server answers for the path. */
  const isProxied = (path: string): boolean => {
    const answered = aggregator.handle({ info: { path } } as unknown as RequestContext);
    answered?.catch(() => {}); // there is no server
    return answered !== undefined;
  };
  const groups = (): string[] => aggregator.groups().map(({ name, versions }) => `${name} ${versions.join()}`);
  return { client, aggregator, isProxied, groups };
}

test("requests below a group version go to its server, and only they", async (t) => {
  const { isProxied } = await anAggregator(t, anApiService("x.io", "v1", true), anApiService("y.io", "v1", false));
  for (const path of ["/apis/x.io/v1", "/apis/x.io/v1/things/a"]) assert.ok(isProxied(path), path);
  for (const path of ["/apis/x.io", "/apis/x.io/v2", "/apis/y.io/v1", "/api/v1", "x/apis/x.io/v1", "/version/x.io/v1"])
    assert.ok(!isProxied(path), path);
});

test("the aggregator's own group is served here and announced first, whatever an APIService says", async (t) => {
  const { isProxied, groups } = await anAggregator(t, anApiService("apiregistration.k8s.io", "v1", true));
  assert.ok(!isProxied("/apis/apiregistration.k8s.io/v1"));
  assert.deepEqual(groups(), ["apiregistration.k8s.io v1"]);
});

test("groups and servers are those of the APIServices of the moment", async (t) => {
  const { client, aggregator, isProxied, groups } = await anAggregator(t);
  assert.deepEqual(groups(), ["apiregistration.k8s.io v1"]);
  client.put(apiServices, anApiService("x.io", "v1", true));
  await waitFor(() => aggregator.remote.size === 1, { what: "the server" });
  assert.deepEqual([groups(), isProxied("/apis/x.io/v1")], [["apiregistration.k8s.io v1", "x.io v1"], true]);
  client.put(apiServices, anApiService("x.io", "v1", false));
  await waitFor(() => aggregator.remote.size === 0, { what: "the API to be local" });
  assert.ok(!isProxied("/apis/x.io/v1"));
  client.put(apiServices, anApiService("x.io", "v1", true));
  await waitFor(() => aggregator.remote.size === 1, { what: "the server again" });
  client.remove(apiServices, "v1.x.io");
  await waitFor(() => groups().length === 1, { what: "the group to go" });
  assert.deepEqual([aggregator.remote.size, isProxied("/apis/x.io/v1")], [0, false]);
});
