import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "../agent-config.ts";
import { type ApiConnection, newApiConnection } from "./api-connection.ts";

type Rates = Pick<AgentConfig, "eventQps" | "eventBurst" | "kubeApiQps" | "kubeApiBurst">;

interface Connected {
  api: ApiConnection;
  clock: FakeClock;
  metrics: MetricsRegistry;
  /** The number of requests received. */
  count: () => number;
  /** The number of connections that are open. */
  open: () => Promise<number>;
}

/** A server that echoes requests, and the connection to it. */
async function connect(t: TestContext, rates: Rates): Promise<Connected> {
  let arrived = 0;
  const server = createServer((incoming, outgoing) => {
    arrived++;
    if (incoming.method === "GET") {
      if (incoming.url?.includes("watch=")) return;
      const items = [{ metadata: { name: "n1", uid: "u", resourceVersion: "1" } }];
      outgoing.writeHead(200, { "content-type": "application/json" });
      return void outgoing.end(JSON.stringify({ kind: "NodeList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items }));
    }
    outgoing.writeHead(201, { "content-type": "application/json" });
    incoming.pipe(outgoing);
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const api = newApiConnection({
    api: { host: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    config: rates as AgentConfig,
    nodeName: "n1",
    metrics,
    clock,
    log: discardLogger,
  });
  t.after(() => api.close());
  const open = promisify<number>((done) => server.getConnections(done));
  return { api, clock, metrics, count: () => arrived, open };
}

for (const { eventQps, eventBurst, atOnce, everyMs } of [
  { eventQps: 2, eventBurst: 3, atOnce: 3, everyMs: 500 },
  { eventQps: 0, eventBurst: 0, atOnce: 10, everyMs: 200 },
]) {
  test(`--event-qps=${eventQps} --event-burst=${eventBurst}: ${atOnce} events at once, then one each ${everyMs} ms`, async (t) => {
    const { api, clock, count } = await connect(t, { eventQps, eventBurst, kubeApiQps: 5, kubeApiBurst: 10 });
    for (let i = 0; i < atOnce + 2; i++) {
      api.recorder.event({ apiVersion: "v1", kind: "Node", name: `n${i}`, uid: `n${i}` }, "Normal", `Reason${i}`, `message ${i}`);
    }
    // The remaining requests wait for the rate limiter's clock.
    await waitFor(() => count() === atOnce && clock.waiting > 0, { what: "the burst" });
    await clock.advance(everyMs - 1);
    assert.equal(count(), atOnce);
    await clock.advance(1);
    await waitFor(() => count() === atOnce + 1 && clock.waiting > 0, { what: "one more" });
    await clock.advance(everyMs);
    await waitFor(() => count() === atOnce + 2, { what: "the last" });
  });
}

test("--kube-api-qps and --kube-api-burst limit requests, but not heartbeats", async (t) => {
  const { api, clock, count } = await connect(t, { eventQps: 5, eventBurst: 10, kubeApiQps: 1, kubeApiBurst: 2 });
  const create = (client: ApiConnection["client"], name: string): Promise<unknown> =>
    client.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" } });
  const all = ["a", "b", "c"].map((name) => create(api.client, name));
  await waitFor(() => count() === 2 && clock.waiting > 0, { what: "the burst" });
  // More than the burst of a client without a rate of its own.
  await Promise.all(Array.from({ length: 20 }, (_, at) => create(api.heartbeat, `h${at}`)));
  assert.equal(count(), 22);
  await clock.advance(1000);
  await Promise.all(all);
  assert.equal(count(), 23);
});

test("the connections of requests, heartbeats and events are closed together", async (t) => {
  const { api, count, open } = await connect(t, { eventQps: 5, eventBurst: 10, kubeApiQps: 5, kubeApiBurst: 10 });
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } };
  await Promise.all([api.client, api.heartbeat].map((client) => client.create(configMaps, map)));
  api.recorder.event({ apiVersion: "v1", kind: "Node", name: "n1", uid: "n1" }, "Normal", "Reason", "message");
  await waitFor(() => count() === 3, { what: "the event" });
  assert.equal(await open(), 3);
  api.close();
  await waitFor(async () => (await open()) === 0, { what: "the connections to be closed", timeoutMs: 5_000 });
});

test("a failure to take in an object is counted, by resource", async (t) => {
  const { api, metrics } = await connect(t, { eventQps: 5, eventBurst: 10, kubeApiQps: 5, kubeApiBurst: 10 });
  const stop = new AbortController();
  t.after(() => stop.abort());
  api.node.addHandler({
    added() {
      throw new Error("cannot be taken in");
    },
  });
  api.node.run(stop.signal).catch(() => undefined);
  await api.node.waitForSync(stop.signal);
  assert.match(await metrics.render(), /^coxswain_informer_handler_failures_total\{resource="nodes"\} 1$/m);
});
