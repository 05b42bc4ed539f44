import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { startTestServer } from "../testing/start-test-server.ts";

test("the storage flags reach etcd and the metrics: ttl, leases, media type, periods", async (t) => {
  const server = await startTestServer(t, [
    "--event-ttl=10m",
    "--lease-reuse-duration-seconds=7",
    "--storage-backend=etcd3",
    "--storage-media-type=application/json",
    "--etcd-count-metric-poll-period=100ms",
    "--etcd-db-metric-poll-interval=100ms",
  ]);
  const event = { metadata: { name: "e" }, involvedObject: { kind: "Pod", namespace: "default" } };
  assert.equal((await server.request("POST", "/api/v1/namespaces/default/events", event)).code, 201);

  const etcd = newEtcdClient({ servers: [server.etcdEndpoint] });
  t.after(() => etcd.close());
  const { kvs } = await etcd.range({ key: `${server.prefix}/events/default/e` });
  assert.equal(JSON.parse(String(kvs[0]?.value)).metadata.name, "e");
  const answer = await fetch(`${server.etcdEndpoint}/v3/lease/timetolive`, {
    method: "POST",
    body: JSON.stringify({ ID: String(kvs[0]?.lease) }),
  });
  assert.equal(((await answer.json()) as { grantedTTL: string }).grantedTTL, String(600 + 7));

  const metrics = async (): Promise<string> => (await server.request("GET", "/metrics")).text;
  await waitFor(async () => /^apiserver_storage_objects\{resource="events"\} 1$/m.test(await metrics()), { what: "the count" });
  const text = await metrics();
  assert.match(text, /^etcd_db_total_size_in_bytes\{endpoint="http:\/\/127\.0\.0\.1:\d+"\} [1-9]/m);
  assert.match(text, /^etcd_request_duration_seconds_count\{operation="create",type="\*core\.Event"\} [1-9]/m);
  assert.match(text, /^etcd_lease_object_counts_count 0$/m);
});

test("--default-watch-cache-size=0: only resources whose size is named have a watch cache", async (t) => {
  const server = await startTestServer(t, ["--default-watch-cache-size=0", "--watch-cache-sizes=configmaps#5,secrets#0"]);
  const { text } = await server.request("GET", "/metrics");
  const named = [...text.matchAll(/^watch_cache_capacity\{resource="([^"]+)"\}/gm)].map(([, resource]) => resource);
  assert.deepEqual(named, ["configmaps"]);
});

test("--watch-cache-sizes: 0 disables a cache, other sizes are ignored and the cache grows with use", async (t) => {
  const server = await startTestServer(t, ["--watch-cache-sizes=pods#0,configmaps#500,events#1"]);
  const capacities = async (name = ""): Promise<Record<string, string>> => {
    const { text } = await server.request("GET", "/metrics");
    const lines = text.matchAll(/^watch_cache_capacity(\w*)\{resource="([^"]+)"\} (\d+)$/gm);
    return Object.fromEntries(
      [...lines].filter(([, suffix]) => suffix === name).map(([, , resource, value]) => [resource, value]),
    );
  };
  const before = await capacities();
  assert.deepEqual([before["pods"], before["configmaps"], before["events"], before["secrets"]], [undefined, "100", "100", "100"]);
  const create = (i: number) =>
    server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: `counted-${i}` } });
  for (let i = 0; i < 120; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => create(i + j)));
  await waitFor(async () => (await capacities())["configmaps"] === "200", { what: "the growth" });
  assert.deepEqual([(await capacities("_increase_total"))["configmaps"], await capacities("_decrease_total")], ["1", {}]);
});
