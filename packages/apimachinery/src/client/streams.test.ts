import assert from "node:assert/strict";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { runLeaderElection } from "../controller/leader-election.ts";
import { newResourceLock } from "../controller/resource-lock.ts";
import { newInformerFactory } from "../informers/factory.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import { realClock } from "../process/clock/clock.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { testPair } from "../testing/tls.ts";
import { waitFor } from "../testing/wait-for.ts";
import { newClient, newClientFamily } from "./client.ts";
import { clientMetrics } from "./metrics.ts";

const server = await testPair();
const namespaces: ResourceRef = { group: "", version: "v1", resource: "namespaces", kind: "Namespace", namespaced: false };

/** Resources of `count` CustomResourceDefinitions. */
const definitions = (count: number): ResourceRef[] =>
  Array.from({ length: count }, (_, i) => ({
    group: "example.com",
    version: "v1",
    resource: `things${i}`,
    kind: `Thing${i}`,
    namespaced: true,
  }));

interface Server {
  readonly url: string;
  readonly sessions: Set<http2.ServerHttp2Session>;
  /** Number of open watches by connection. */
  readonly watches: Map<http2.ServerHttp2Session, number>;
}

/** Serves empty lists and silent watches, with a limit of streams per connection. */
async function startServer(t: TestContext, maxConcurrentStreams: number): Promise<Server> {
  const listener = http2.createSecureServer({ ...server, settings: { maxConcurrentStreams } });
  const sessions = new Set<http2.ServerHttp2Session>();
  const watches: Server["watches"] = new Map();
  listener.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.once("close", () => sessions.delete(session));
  });
  listener.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const session = stream.session as http2.ServerHttp2Session;
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/json" });
    if (!String(headers[":path"]).includes("watch=true")) return stream.end('{"metadata":{"resourceVersion":"1"},"items":[]}');
    watches.set(session, (watches.get(session) ?? 0) + 1);
    stream.once("close", () => watches.set(session, (watches.get(session) ?? 0) - 1));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const session of sessions) session.destroy();
    listener.close();
  });
  return { url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}`, sessions, watches };
}

const total = ({ watches }: Server): number => [...watches.values()].reduce((sum, count) => sum + count, 0);

for (const { streams, resources } of [
  { streams: 40, resources: 100 },
  { streams: 250, resources: 600 },
]) {
  test(`informers of ${resources} resources over connections of ${streams} streams leave room for requests and leases`, async (t) => {
    const running = await startServer(t, streams);
    const metrics = newMetricsRegistry();
    const family = newClientFamily({ host: running.url, ca: server.ca }, { observer: clientMetrics(metrics) });
    t.after(() => family.close());
    const client = family.member({ qps: -1 });
    const ending = new AbortController();
    t.after(() => ending.abort(new Error("over")));
    const informers = newInformerFactory(client, { log: discardLogger, clock: realClock });
    for (const ref of definitions(resources)) informers.for(ref);
    informers.start(ending.signal);
    await informers.waitForSync(ending.signal);
    await waitFor(() => total(running) === resources, { what: "all watches" });
    await client.list(namespaces, {}, { signal: AbortSignal.timeout(20_000) });
    const { host } = new URL(running.url);
    const text = await metrics.render();
    const least = Math.ceil(resources / streams);
    const opened = Number(/rest_client_connections\{[^}]*\} (\d+)/.exec(text)?.[1]);
    assert.ok(opened >= least && opened <= least + 1, `${opened} connections`);
    assert.ok(text.includes(`rest_client_stream_queue_length{host="${host}"} 0\n`), text);
    assert.match(text, /rest_client_stream_wait_duration_seconds_count\{[^}]*\} [1-9]/);
  });
}

test("a client with its own connection never shares it", async (t) => {
  const running = await startServer(t, 100);
  const family = newClientFamily({ host: running.url, ca: server.ca });
  t.after(() => family.close());
  await family.member({ qps: -1 }).list(namespaces);
  const lease = family.apart({ qps: -1 });
  await lease.list(namespaces);
  assert.equal(running.sessions.size, 2);
  await family.member({ qps: -1 }).list(namespaces);
  assert.equal(running.sessions.size, 2);
  family.close();
  await waitFor(() => running.sessions.size === 0, { what: "the end of both" });
});

test("connections that are idle are closed, all but one", async (t) => {
  const running = await startServer(t, 10);
  const clock = newFakeClock();
  const client = newClient({ host: running.url, ca: server.ca, qps: -1 }, { clock });
  t.after(() => client.close());
  const ending = new AbortController();
  const watching = definitions(30).map(async (ref) => {
    for await (const _ of client.watch(ref, {}, { signal: ending.signal }));
  });
  await waitFor(() => total(running) === 30, { what: "all watches" });
  assert.equal(running.sessions.size, 3);
  ending.abort(new Error("over"));
  await Promise.allSettled(watching);
  await waitFor(() => total(running) === 0, { what: "the end of the watches" });
  await waitFor(
    async () => {
      await clock.advance(30_000);
      return running.sessions.size === 1;
    },
    { what: "the end of two connections" },
  );
  await client.list(namespaces);
  assert.equal(running.sessions.size, 1);
});

test("GOAWAY on one of several connections: watches on the others continue, requests use another", async (t) => {
  const running = await startServer(t, 10);
  const client = newClient({ host: running.url, ca: server.ca, qps: -1 });
  t.after(() => client.close());
  const ending = new AbortController();
  t.after(() => ending.abort(new Error("over")));
  let ended = 0;
  for (const ref of definitions(25)) {
    void (async () => {
      for await (const _ of client.watch(ref, {}, { signal: ending.signal }));
    })()
      .catch(() => {})
      .finally(() => ended++);
  }
  await waitFor(() => total(running) === 25, { what: "all watches" });
  const [first] = running.sessions as Iterable<http2.ServerHttp2Session>;
  first?.goaway(0);
  await Promise.all(Array.from({ length: 30 }, () => client.list(namespaces)));
  assert.equal(ended, 0);
  first?.destroy();
  await waitFor(() => ended === 10, { what: "the end of the watches on it" });
  assert.equal(total(running), 15);
});

test("a request that waits for a stream fails at its deadline", async (t) => {
  const running = await startServer(t, 0);
  const client = newClient({ host: running.url, ca: server.ca, qps: -1 });
  t.after(() => client.close());
  const deadline = new AbortController();
  const listing = client.list(namespaces, {}, { signal: deadline.signal });
  await waitFor(() => running.sessions.size === 1, { what: "the connection" });
  deadline.abort(new Error("deadline exceeded"));
  await assert.rejects(listing, /deadline exceeded/);
  assert.equal(running.sessions.size, 1);
});

test("leader election fails in time when the server allows no streams", async (t) => {
  const running = await startServer(t, 0);
  const clock = newFakeClock();
  const family = newClientFamily({ host: running.url, ca: server.ca }, { clock });
  t.after(() => family.close());
  const ending = new AbortController();
  const electing = runLeaderElection({
    client: family.apart({ qps: -1 }),
    lock: newResourceLock("leases", "kube-system", "x"),
    identity: "me",
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    onStarted: () => assert.fail("it leads without a lease"),
    log: discardLogger,
    clock,
    signal: ending.signal,
  });
  await waitFor(() => running.sessions.size === 1, { what: "the connection" });
  ending.abort(new Error("over"));
  await electing;
});
