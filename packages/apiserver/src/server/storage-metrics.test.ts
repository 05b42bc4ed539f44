import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import type { Entry } from "../storage/storage.ts";
import { startEtcdFront } from "../testing/etcd-front.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { newBookmarkClock } from "../watch/bookmarks.ts";
import { CacheReaders } from "../watch/cache-readers.ts";
import { Change, History, HistoryMemory } from "../watch/history.ts";
import { newStorageMetrics } from "./storage-metrics.ts";

test("etcd's progress on watches is counted for each cached resource, and what lists from etcd have cost", async (t) => {
  const etcd = await startEtcd();
  const front = await startEtcdFront(t, etcd.endpoint, "3.4.23");
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const server = await startTestServer(t, [`--etcd-servers=${front.endpoint}`]);
  // Enabled only now, with few writes: the etcd behind the proxy may send progress ahead of its events.
  front.version = "3.5.13";
  front.cut();
  const counted = async (type: string): Promise<number> => {
    const { text } = await server.request("GET", "/metrics");
    const series = `etcd_bookmark_counts{resource="${type}"} `;
    const line = text.split("\n").find((line) => line.startsWith(series));
    return Number(line?.slice(series.length) ?? 0);
  };
  await waitFor(
    async () => {
      // A write outside of the prefix makes a consistent read request progress.
      await client.put("/elsewhere", Buffer.from("1"));
      await server.request("GET", "/api/v1/namespaces");
      return (await counted("*core.Namespace")) > 0;
    },
    { what: "a bookmark" },
  );
  assert.ok((await counted("*apps.Deployment")) > 0, "one watch is everybody's");
  assert.equal(await counted("*core.Event"), 0, "events are not cached");
  const events = "/api/v1/namespaces/default/events";
  const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
  for (const name of ["a", "b"]) await server.request("POST", events, { metadata: { name }, involvedObject, reason: name });
  await server.request("GET", `${events}?fieldSelector=reason%3Db`);
  const { text: page } = await server.request("GET", "/metrics");
  for (const [series, value] of Object.entries({
    total: 1,
    fetched_objects_total: 2,
    evaluated_objects_total: 2,
    returned_objects_total: 1,
  }))
    assert.ok(page.includes(`\napiserver_storage_list_${series}{resource="events"} ${value}\n`), series);
  await server.stop(); // before the proxy, or it waits for etcd in vain
});

const changeAt = (revision: number): Change =>
  new Change("a", revision, undefined, { key: "a", revision, sizeBytes: 10 } as Entry);

test("a history that shrinks, and a watcher that does not read, are counted by resource", async () => {
  const registry = newMetricsRegistry();
  const metrics = newStorageMetrics(registry);
  const clock = newFakeClock();
  const resized = (now: number, before: number): void => metrics.cacheCapacity("pods", now, before);
  const history = new History(clock, new HistoryMemory(1024 * 1024), 0, resized);
  let revision = 0;
  while (history.capacity < 400) history.push(changeAt(++revision));
  await clock.advance(6 * 60_000);
  history.push(changeAt(++revision));
  const bookmarks = newBookmarkClock(clock);
  const memory = {
    isReady: () => true,
    readyInTime: async () => true,
    reachedExisting: async () => true,
    historyStart: () => 0,
    upToDate: async () => true,
    revision: () => revision,
    present: () => [],
    changesAfter: () => [],
  };
  const store = { watch: () => assert.fail("etcd is not watched") };
  const readers = new CacheReaders({ store, resource: "pods", bookmarks, log: discardLogger, metrics }, memory);
  const unread = await readers.watch({ prefix: "", signal: new AbortController().signal });
  while (!unread.ended) readers.dispatch(changeAt(++revision));
  bookmarks.stop();
  const page = await registry.render();
  for (const series of [
    'watch_cache_capacity{resource="pods"} 200',
    'watch_cache_capacity_increase_total{resource="pods"} 2',
    'watch_cache_capacity_decrease_total{resource="pods"} 1',
    'apiserver_terminated_watchers_total{resource="pods"} 1',
  ])
    assert.ok(page.includes(`\n${series}\n`), `${series}\n${page}`);
});

test("progress on watches is counted for a type as soon as there is any", async () => {
  const registry = newMetricsRegistry();
  const counts = { pods: 0, secrets: 0 };
  const metrics = newStorageMetrics(registry);
  metrics.bookmarks("*core.Pod", () => counts.pods);
  metrics.bookmarks("*core.Secret", () => counts.secrets);
  const lines = async () => (await registry.render()).split("\n").filter((line) => line.startsWith("etcd_bookmark_counts{"));
  assert.deepEqual(await lines(), []);
  counts.secrets = 3;
  assert.deepEqual(await lines(), ['etcd_bookmark_counts{resource="*core.Secret"} 3']);
});

test("counts of objects, leases, and what lists from a cache have cost are exported under their own names", async () => {
  const registry = newMetricsRegistry({ showHidden: true });
  const counted: [string, number][] = [];
  const metrics = newStorageMetrics(registry, (...count) => counted.push(count));
  metrics.objects("pods", 5);
  metrics.objects("pods", 4);
  metrics.leaseObjects(3);
  metrics.databaseSize("http://192.0.2.1:2379", 4096);
  metrics.initialEvents("pods", 7);
  metrics.dispatched("pods");
  metrics.cacheList("/pods", "f:spec.nodeName", 9, 2);
  metrics.cacheList("/pods", "", 20, 1);
  metrics.storageList("pods", 9, 8, 7);
  const page = await registry.render();
  for (const series of [
    'apiserver_storage_objects{resource="pods"} 4',
    'etcd_object_counts{resource="pods"} 4',
    "etcd_lease_object_counts_sum 3",
    'etcd_db_total_size_in_bytes{endpoint="http://192.0.2.1:2379"} 4096',
    'apiserver_init_events_total{resource="pods"} 7',
    'apiserver_watch_cache_events_dispatched_total{resource="pods"} 1',
    'apiserver_cache_list_total{resource_prefix="/pods",index="f:spec.nodeName"} 1',
    'apiserver_cache_list_fetched_objects_total{resource_prefix="/pods",index="f:spec.nodeName"} 9',
    'apiserver_cache_list_fetched_objects_total{resource_prefix="/pods",index=""} 20',
    'apiserver_cache_list_returned_objects_total{resource_prefix="/pods"} 3',
    'apiserver_storage_list_total{resource="pods"} 1',
    'apiserver_storage_list_fetched_objects_total{resource="pods"} 9',
    'apiserver_storage_list_evaluated_objects_total{resource="pods"} 8',
    'apiserver_storage_list_returned_objects_total{resource="pods"} 7',
  ])
    assert.ok(page.includes(`\n${series}\n`), `${series}\n${page}`);
  assert.deepEqual(counted, [
    ["pods", 5],
    ["pods", 4],
  ]);
});
