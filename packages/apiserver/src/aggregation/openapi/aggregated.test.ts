import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { apiServices as apiServicesRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { OpenApiDocument } from "@coxswain/apimachinery/objects/schema/openapi/document";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { ApiService } from "../api-services.ts";
import { newAggregatorMetrics } from "../metrics.ts";
import { AggregatedOpenApi } from "./aggregated.ts";
import type { Download } from "./download.ts";

const own = { swagger: "2.0", paths: { "/apis/own/v1": {} }, definitions: { Own: {} } } as unknown as OpenApiDocument;

function anApiService(group: string, versionPriority = 10): ApiService {
  return {
    metadata: { name: `v1.${group}` },
    spec: { group, version: "v1", groupPriorityMinimum: 1000, versionPriority, service: { namespace: "a", name: "b" } },
    status: { conditions: [{ type: "Available", status: "True" }] },
  };
}

interface Setup {
  readonly openApi: AggregatedOpenApi;
  readonly clock: FakeClock;
  readonly client: ReturnType<typeof newFakeClient>;
  /** Downloads: `<group> <path> <If-None-Match>`. */
  readonly fetched: string[];
  /** Paths of the merged document. */
  paths(): string[];
  /** The page of metrics. */
  metrics(): Promise<string>;
}

/** @param answer response for a group and path: status, ETag and body */
async function started(
  t: TestContext,
  answer: (group: string, path: string, etag: string) => { code: number; etag?: string; body?: unknown },
  v3 = false,
): Promise<Setup> {
  const clock = newFakeClock();
  const client = newFakeClient();
  const registry = newMetricsRegistry();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const apiServices = informers.for<ApiService>(apiServicesRef);
  const fetched: string[] = [];
  const openApi = new AggregatedOpenApi({
    apiServices,
    async fetch({ spec }, path, headers): Promise<Download> {
      const { "if-none-match": known = "" } = headers;
      fetched.push(`${spec.group} ${path} ${known}`.trim());
      const { code, etag = "", body = "" } = answer(spec.group as string, path, known);
      return { code, etag, contentType: "application/json", body: Buffer.from(JSON.stringify(body)) };
    },
    metrics: newAggregatorMetrics(registry),
    v3,
    turns: new Turns(() => 0), // never yields: the test moves the clock
    clock,
    log: discardLogger,
  });
  const stop = new AbortController();
  informers.start(stop.signal);
  const running = openApi.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  await clock.advance(0);
  const paths = (): string[] => Object.keys(atOnce(openApi.merge(own)).paths);
  return { openApi, clock, client, fetched, paths, metrics: () => registry.render() };
}

const documentOf = (...paths: string[]) => ({ paths: Object.fromEntries(paths.map((path) => [path, {}])) });

test("a document is fetched a second after its APIService came, and looked at again every minute", async (t) => {
  let etag = '"1"';
  let path = "/apis/a/v1";
  const { client, clock, fetched, openApi, paths, metrics } = await started(t, (_group, _path, known) =>
    known === etag ? { code: 304, etag } : { code: 200, etag, body: documentOf(path, "/healthz") },
  );
  await client.create(apiServicesRef, anApiService("a"));
  await clock.advance(999);
  assert.deepEqual(fetched, []);
  assert.equal(atOnce(openApi.merge(own)), own);
  await clock.advance(1);
  assert.deepEqual(fetched, ["a /openapi/v2"]);
  assert.deepEqual(paths(), ["/apis/a/v1", "/apis/own/v1"]);
  const { generation } = openApi;
  await clock.advance(60_000);
  assert.deepEqual(fetched.splice(0), ["a /openapi/v2", 'a /openapi/v2 "1"']);
  assert.equal(openApi.generation, generation, "nothing new");
  [etag, path] = ['"2"', "/apis/a/v1/new"];
  await clock.advance(60_000);
  assert.deepEqual(paths(), ["/apis/a/v1/new", "/apis/own/v1"]);
  assert.notEqual(openApi.generation, generation);
  await client.delete(apiServicesRef, { name: "v1.a" });
  await clock.advance(0);
  assert.deepEqual(paths(), ["/apis/own/v1"]);
  await clock.advance(600_000);
  assert.equal(fetched.length, 1, "a removed server gets no more requests");
  const page = await metrics();
  for (const reason of ["add", "update", "delete"])
    assert.ok(page.includes(`\naggregator_openapi_v2_regeneration_count{apiservice="v1.a",reason="${reason}"} 1\n`), page);
  assert.match(page, /^aggregator_openapi_v2_regeneration_duration\{reason="update"\} \d/m);
});

test("a document that comes again with the same ETag is not read again", async (t) => {
  let body: unknown = documentOf("/apis/a/v1");
  const { client, clock, openApi, paths } = await started(t, () => ({ code: 200, etag: '"1"', body }));
  await client.create(apiServicesRef, anApiService("a"));
  await clock.advance(1_000);
  const { generation } = openApi;
  body = documentOf("/apis/a/v1/other");
  await clock.advance(60_000);
  assert.deepEqual([openApi.generation, paths()], [generation, ["/apis/a/v1", "/apis/own/v1"]]);
});

test("of two versions of a group that have the same path the one of the higher priority describes it", async (t) => {
  let calls = 0;
  const { client, clock, openApi } = await started(t, () => ({
    ...{ code: 200, etag: '"1"' },
    body: { paths: { "/apis/shared": { description: `answer ${++calls}` } } },
  }));
  // Both are of one group, so that the name would decide otherwise.
  for (const [version, priority] of [
    ["v1", 1],
    ["v2", 20],
  ] as const) {
    const { spec, ...rest } = anApiService("a", priority);
    await client.create(apiServicesRef, {
      ...rest,
      metadata: { name: `${version}.a` },
      spec: { ...spec, version },
    } as ApiService);
    await clock.advance(1_000);
  }
  assert.deepEqual(atOnce(openApi.merge(own)).paths["/apis/shared"], { description: "answer 2" });
});

for (const { name, answer } of [
  { name: "has none", answer: { code: 404 } },
  { name: "gives one that is none", answer: { code: 200, etag: '"1"', body: { paths: [] } } },
  { name: "cannot give it", answer: { code: 500 } },
]) {
  test(`a server that ${name} is queried again after one minute, two, four, and the document does without`, async (t) => {
    const { client, clock, fetched, paths } = await started(t, () => answer);
    await client.create(apiServicesRef, anApiService("a"));
    await clock.advance(1_000);
    for (const [minutes, count] of [
      [1, 2],
      [2, 3],
      [4, 4],
      [3, 4],
    ] as const) {
      await clock.advance(minutes * 60_000);
      assert.equal(fetched.length, count);
    }
    assert.deepEqual(paths(), ["/apis/own/v1"]);
  });
}

test("a document that cannot be read any more leaves the one before it", async (t) => {
  let body: unknown = documentOf("/apis/a/v1");
  let etag = '"1"';
  const { client, clock, paths } = await started(t, () => ({ code: 200, etag, body }));
  await client.create(apiServicesRef, anApiService("a"));
  await clock.advance(1_000);
  [body, etag] = [{ paths: 1 }, '"2"'];
  await clock.advance(60_000);
  assert.deepEqual(paths(), ["/apis/a/v1", "/apis/own/v1"]);
});

test("the time that a merge takes is that which passes, also when the clock is set meanwhile", async (t) => {
  const { client, clock, openApi, metrics } = await started(t, () => ({
    code: 200,
    etag: '"1"',
    body: documentOf("/apis/a/v1"),
  }));
  await client.create(apiServicesRef, anApiService("a"));
  await clock.advance(1_000);
  const steps = openApi.merge(own);
  assert.equal(steps.next().done, false);
  clock.setOn(3_600_000);
  await clock.advance(2_000);
  while (steps.next().done !== true);
  assert.match(await metrics(), /^aggregator_openapi_v2_regeneration_duration\{reason="update"\} 2$/m);
});

test("of two servers with the same path the one of the higher priority describes it", async (t) => {
  const { client, clock, openApi } = await started(t, (group) => ({
    code: 200,
    etag: '"1"',
    body: { paths: { "/apis/shared": { description: group } } },
  }));
  await client.create(apiServicesRef, {
    ...anApiService("low"),
    spec: { ...anApiService("low").spec, groupPriorityMinimum: 10 },
  });
  await client.create(apiServicesRef, anApiService("high"));
  await clock.advance(1_000);
  assert.deepEqual(atOnce(openApi.merge(own)).paths["/apis/shared"], { description: "high" });
});

test("the highest priority of a group's versions counts for all of them", async (t) => {
  const { client, clock, openApi } = await started(t, (group) => ({
    code: 200,
    etag: '"1"',
    body: { paths: { "/apis/shared": { description: group } } },
  }));
  const versionOf = (group: string, version: string, groupPriorityMinimum: number): ApiService => ({
    ...anApiService(group),
    metadata: { name: `${version}.${group}` },
    spec: { ...anApiService(group).spec, version, groupPriorityMinimum },
  });
  await client.create(apiServicesRef, versionOf("other", "v1", 500));
  await client.create(apiServicesRef, versionOf("several", "v1", 1000));
  await client.create(apiServicesRef, versionOf("several", "v2", 10));
  await clock.advance(1_000);
  assert.deepEqual(atOnce(openApi.merge(own)).paths["/apis/shared"], { description: "several" });
});

test("documents of OpenAPI v3 are named when their server names them, and given as it gives them", async (t) => {
  const { client, clock, openApi, paths } = await started(
    t,
    (group, path) => {
      if (path === "/openapi/v3" && group === "broken") throw new Error("the connection broke off");
      if (path === "/openapi/v3") return group === "new" ? { code: 200, body: { Paths: ["apis/new/v1"] } } : { code: 404 };
      return { code: 200, etag: '"1"', body: path === "/openapi/v2" ? documentOf(`/apis/${group}/v1`) : { of: path } };
    },
    true,
  );
  await client.create(apiServicesRef, anApiService("old"));
  await client.create(apiServicesRef, anApiService("new"));
  await client.create(apiServicesRef, anApiService("broken"));
  await clock.advance(1_000);
  assert.deepEqual(openApi.v3Roots(), ["apis/new/v1"]);
  assert.deepEqual(paths(), ["/apis/broken/v1", "/apis/new/v1", "/apis/old/v1", "/apis/own/v1"], "each is described in v2");
  const given = await openApi.v3("apis/new/v1", "application/json");
  assert.deepEqual(JSON.parse(String(given?.body)), { of: "/openapi/v3/apis/new/v1" });
  assert.equal(await openApi.v3("apis/none/v1", "application/json"), undefined);
});

test("a server that becomes available is asked a second later, whatever its failures were before", async (t) => {
  let isThere = false;
  const { client, clock, fetched, paths } = await started(t, () =>
    isThere ? { code: 200, etag: '"1"', body: documentOf("/apis/a/v1") } : { code: 503 },
  );
  const withStatus = (status: "True" | "False"): ApiService => ({
    ...anApiService("a"),
    status: { conditions: [{ type: "Available", status }] },
  });
  client.put(apiServicesRef, withStatus("False"));
  await clock.advance(1_000);
  await clock.advance(60_000);
  assert.equal(fetched.splice(0).length, 2);
  isThere = true;
  client.put(apiServicesRef, withStatus("True"));
  await clock.advance(0);
  await clock.advance(1_000);
  assert.deepEqual([fetched, paths()], [["a /openapi/v2"], ["/apis/a/v1", "/apis/own/v1"]]);
  client.put(apiServicesRef, { ...withStatus("True"), metadata: { name: "v1.a", labels: { a: "b" } } });
  await clock.advance(0);
  await clock.advance(1_000);
  assert.equal(fetched.length, 1, "nothing that it serves has changed");
});

test("documents of OpenAPI v3 that come and go while that of v2 stays are announced, and only then", async (t) => {
  let Paths: string[] = [];
  const { client, clock, openApi, paths } = await started(
    t,
    (_group, path, etag) => {
      if (path === "/openapi/v3") return { code: 200, body: { Paths } };
      return etag === '"1"' ? { code: 304, etag } : { code: 200, etag: '"1"', body: documentOf("/apis/a/v1") };
    },
    true,
  );
  await client.create(apiServicesRef, anApiService("a"));
  await clock.advance(1_000);
  const seen: [string[], boolean][] = [];
  for (const next of [[], ["apis/a/v1"], ["apis/a/v1", "apis/b/v1"], []]) {
    const { generation } = openApi;
    Paths = next;
    await clock.advance(60_000);
    seen.push([openApi.v3Roots(), openApi.generation !== generation]);
  }
  assert.deepEqual(seen, [
    [[], false],
    [["apis/a/v1"], true],
    [["apis/a/v1"], false],
    [[], true],
  ]);
  assert.deepEqual(paths(), ["/apis/a/v1", "/apis/own/v1"]);
});
