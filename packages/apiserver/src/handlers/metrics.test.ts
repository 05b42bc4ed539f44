import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startShared();
});
after(() => server.stop());

async function lines(name: string): Promise<string[]> {
  const { raw } = await server.request("GET", "/metrics");
  return raw
    .toString()
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`));
}

test("a watch is counted while it is open, and its events with their sizes", async () => {
  const kind = 'group="",version="v1",kind="ConfigMap"';
  const watchers = (count: number) => async () =>
    (await lines("apiserver_registered_watchers")).includes(`apiserver_registered_watchers{${kind}} ${count}`);
  const watch = await server.watch(`${configMaps}?watch=1&labelSelector=counted`);
  await waitFor(watchers(1));
  const target =
    'verb="WATCH",group="",version="v1",resource="configmaps",subresource="",scope="namespace",component="apiserver"';
  assert.deepEqual(await lines("apiserver_longrunning_requests"), [`apiserver_longrunning_requests{${target}} 1`]);
  assert.deepEqual(await lines("apiserver_longrunning_gauge"), [`apiserver_longrunning_gauge{${target}} 1`]);
  await server.request("POST", configMaps, aConfigMap("counted", {}, { counted: "" }));
  await watch.next();
  assert.deepEqual(await lines("apiserver_watch_events_total"), [`apiserver_watch_events_total{${kind}} 1`]);
  assert.deepEqual(await lines("apiserver_watch_events_sizes_count"), [`apiserver_watch_events_sizes_count{${kind}} 1`]);
  watch.close();
  await waitFor(watchers(0));
});

test("names made up by clients do not appear in metrics", async () => {
  for (const path of [
    "/apis/batch/v1beta1/namespaces/default/cronjobs/x/made-up",
    `${configMaps}/x/made-up`,
    `${configMaps}/x/..`,
  ])
    assert.equal((await server.request("GET", path)).code, 404);
  const { raw } = await server.request("GET", "/metrics");
  assert.doesNotMatch(raw.toString(), /="(made-up|\.\.)"/);
});

test("a deprecated API that was requested is named, with the release that removes it", async () => {
  await server.request("GET", "/apis/batch/v1beta1/cronjobs");
  await server.request("GET", "/api/v1/componentstatuses");
  const named = await lines("apiserver_requested_deprecated_apis");
  for (const line of [
    'group="batch",version="v1beta1",resource="cronjobs",subresource="",removed_release="1.25"',
    'group="",version="v1",resource="componentstatuses",subresource="",removed_release=""',
  ]) {
    assert.ok(named.includes(`apiserver_requested_deprecated_apis{${line}} 1`), named.join("\n"));
  }
});

test("requests are counted by upstream's verbs, dry run and code; requests that are not served are not", async () => {
  const apply = { "content-type": "application/apply-patch+yaml" };
  const named = { metadata: { name: "verbs" } };
  await server.request("POST", configMaps, named);
  await server.request("POST", `${configMaps}?dryRun=All`, named);
  await server.request("PUT", `${configMaps}/verbs`, named);
  await server.request("PATCH", `${configMaps}/verbs`, {}, { "content-type": "application/merge-patch+json" });
  await server.request("PATCH", `${configMaps}/verbs?fieldManager=me`, aConfigMap("verbs"), apply);
  await server.request("GET", `${configMaps}/verbs`);
  await server.request("GET", configMaps);
  await server.request("DELETE", `${configMaps}/verbs`);
  await server.request("DELETE", `${configMaps}?labelSelector=none`);
  await server.request("OPTIONS", configMaps);
  for (const moon of ["/api/v1/moons", "/apis/moon.io/v1/moons"]) await server.request("GET", moon);
  const counted = await lines("apiserver_request_total");
  const ours = counted.filter((line) => line.includes('resource="configmaps"'));
  const verbOf = (line: string): string => /verb="([A-Z]*)",dry_run="(\w*)"/.exec(line)?.slice(1, 3).join(" ") ?? "";
  const verbs = new Set(ours.map(verbOf));
  const want = ["POST ", "POST All", "PUT ", "PATCH ", "APPLY ", "GET ", "LIST ", "DELETE ", "DELETECOLLECTION "];
  for (const verb of want) assert.ok(verbs.has(verb), `${verb} of ${[...verbs]}`);
  assert.ok(!verbs.has(" "));
  assert.ok(!counted.some((line) => line.includes("moon")));
});
