import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { after, before, describe, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Entry } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import type { Call } from "./env.ts";
import { handlerGates } from "./env.ts";
import { watchMetricsOf } from "./metrics.ts";
import type { ListOptions } from "./options.ts";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";
import { watch, watchTimeoutMs } from "./watch.ts";

test("a watch lasts as long as the client requests, and ends at once when that time has passed", () => {
  assert.equal(watchTimeoutMs(7, 1_800_000), 7_000);
  assert.equal(watchTimeoutMs(-1, 1_800_000), 0);
});

for (const { random, want } of [
  { random: 0, want: 1_800_000 },
  { random: 0.5, want: 2_700_000 },
]) {
  test(`a watch that asks for none gets between the least time and its double (${random})`, () => {
    assert.equal(
      watchTimeoutMs(undefined, 1_800_000, () => random),
      want,
    );
    assert.equal(
      watchTimeoutMs(0, 1_800_000, () => random),
      want,
    );
  });
}

/** A watch whose client, server and clock the test controls. */
function aCall(signal: AbortSignal, open: (signal: AbortSignal) => Promise<WatchQueue>) {
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const response = { write: () => true, drained: async () => {}, end: () => void said.push("end") };
  const said: string[] = [];
  const exchange = { headers: {}, stream: () => response, destroy: () => void said.push("destroy") };
  const call = {
    env: {
      clock,
      metrics,
      minRequestTimeoutMs: 1000,
      services: { now: clock.now, turns: new Turns(), featureEnabled: () => false },
      gates: handlerGates(() => false),
    },
    ctx: { exchange, query: new URLSearchParams(), signal, info: {} },
    served: {
      store: { watch: (_: string, options: { signal: AbortSignal }) => open(options.signal) },
      definition: {},
      kind: { group: "", version: "v1", kind: "Pod" },
    },
    namespace: "",
    subresource: "",
  } as unknown as Call;
  const watchers = () => watchMetricsOf(metrics, call.served).watchers.value;
  return { call, clock, said, watchers };
}

for (const { name, when } of [
  { name: "before its watch opened", when: "before" },
  { name: "while its watch opened", when: "opening" },
  { name: "later", when: "later" },
]) {
  test(`a client that went ${name} leaves no watch, timer or listener behind`, async () => {
    const client = new AbortController();
    if (when === "before") client.abort();
    let queue: WatchQueue | undefined;
    const { call, clock, watchers } = aCall(client.signal, async (signal) => {
      if (when === "opening") client.abort();
      queue = new WatchQueue({ signal });
      return queue;
    });
    let isOver = false;
    const done = watch(call, { resourceVersion: "" } as ListOptions).then(() => {
      isOver = true;
    });
    if (when === "later") {
      await new Promise(setImmediate);
      assert.equal(watchers(), 1);
      client.abort();
    }
    await settle();
    assert.equal(isOver, true);
    await done;
    assert.equal(watchers(), 0);
    assert.equal(queue?.ended, true);
    assert.equal(clock.waiting, 0);
    assert.equal(getEventListeners(client.signal, "abort").length, 0);
  });
}

test("a watch whose events cannot be encoded fails, and is counted and followed no more", async () => {
  const client = new AbortController();
  let queue: WatchQueue | undefined;
  const { call, clock, watchers } = aCall(client.signal, async (signal) => {
    queue = new WatchQueue({ signal });
    queue.push({ type: "ADDED", entry: {} as Entry });
    return queue;
  });
  await assert.rejects(watch(call, { resourceVersion: "" } as ListOptions));
  assert.deepEqual([queue?.ended, watchers(), clock.waiting], [true, 0, 0]);
  assert.equal(getEventListeners(client.signal, "abort").length, 0);
});

test("a watch that cannot be opened leaves no timer or listener behind, and its signal is aborted", async () => {
  const client = new AbortController();
  let opened: AbortSignal | undefined;
  const { call, clock } = aCall(client.signal, async (signal) => {
    opened = signal;
    throw new Error("etcd is gone");
  });
  await assert.rejects(watch(call, { resourceVersion: "" } as ListOptions), /etcd is gone/);
  assert.equal(opened?.aborted, true);
  assert.equal(clock.waiting, 0);
  assert.equal(getEventListeners(client.signal, "abort").length, 0);
});

for (const { name, isRead, want } of [
  { name: "ends the answer of a client that reads", isRead: true, want: ["end"] },
  { name: "breaks the connection of a client that does not read for a minute", isRead: false, want: ["destroy"] },
]) {
  test(`a watch ${name}`, async () => {
    const client = new AbortController();
    const { call, clock, said } = aCall(client.signal, async (signal) => {
      const queue = new WatchQueue({ signal });
      queue.push({ type: "ADDED", entry: { json: () => Buffer.from("{}") } as Entry });
      if (isRead) queue.end();
      return queue;
    });
    Object.assign(call.served, { watchFramers: new Map(), isHub: true });
    Object.assign(call.env, { gates: handlerGates(() => true) }); // without self links
    if (!isRead) {
      const response = { write: () => false, drained: () => new Promise(() => {}), end: () => void said.push("end") };
      Object.assign(call.ctx.exchange, { stream: () => response });
    }
    const done = watch(call, { resourceVersion: "", timeoutSeconds: 120 } as ListOptions);
    await settle();
    if (!isRead) {
      await clock.advance(59_999);
      assert.deepEqual(said, []);
      await clock.advance(1);
    }
    await done;
    assert.deepEqual([said, clock.waiting], [want, 0]);
  });
}

describe("watch", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());

  test("begins with the existing objects, then follows creation, change and deletion", async () => {
    await server.request("POST", configMaps, aConfigMap("watched-1", {}, { watched: "all" }));
    const watch = await server.watch(`${configMaps}?watch=1&labelSelector=watched`);
    assert.equal(watch.code, 200);
    const first = await watch.next();
    assert.partialDeepStrictEqual(first, {
      type: "ADDED",
      object: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "watched-1" } },
    });
    await server.request("POST", configMaps, aConfigMap("watched-2", {}, { watched: "all" }));
    assert.partialDeepStrictEqual(await watch.next(), { type: "ADDED", object: { metadata: { name: "watched-2" } } });
    await server.request(
      "PATCH",
      `${configMaps}/watched-2`,
      { data: { a: "1" } },
      { "content-type": "application/merge-patch+json" },
    );
    assert.partialDeepStrictEqual(await watch.next(), { type: "MODIFIED", object: { data: { a: "1" } } });
    await server.request("DELETE", `${configMaps}/watched-2`);
    assert.partialDeepStrictEqual(await watch.next(), { type: "DELETED", object: { metadata: { name: "watched-2" } } });
    watch.close();
  });

  test("resumes after a version without what was there before", async () => {
    const { body: list } = await server.request("GET", configMaps);
    await server.request("POST", configMaps, aConfigMap("resumed"));
    const watch = await server.watch(`${configMaps}?watch=true&resourceVersion=${list.metadata.resourceVersion}`);
    assert.partialDeepStrictEqual(await watch.next(), { type: "ADDED", object: { metadata: { name: "resumed" } } });
    watch.close();
  });

  test("an object that loses its label is deleted for who selects by it", async () => {
    await server.request("POST", configMaps, aConfigMap("relabelled", {}, { stage: "one" }));
    const watch = await server.watch(`${configMaps}?watch=1&labelSelector=stage%3Done`);
    assert.equal((await watch.next()).type, "ADDED");
    await server.request(
      "PATCH",
      `${configMaps}/relabelled`,
      { metadata: { labels: { stage: "two" } } },
      { "content-type": "application/merge-patch+json" },
    );
    assert.equal((await watch.next()).type, "DELETED");
    watch.close();
  });

  test("ends by itself when its time is up", async () => {
    const watch = await server.watch(`${configMaps}?watch=1&timeoutSeconds=1&labelSelector=nobody`);
    await watch.ended;
  });

  test("sends the columns of a table once", async () => {
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    await server.request("POST", configMaps, aConfigMap("row-1", { a: "1" }, { rows: "yes" }));
    await server.request("POST", configMaps, aConfigMap("row-2", {}, { rows: "yes" }));
    const watch = await server.watch(`${configMaps}?watch=1&labelSelector=rows`, { accept });
    const first = await watch.next();
    assert.equal(first.object.kind, "Table");
    assert.equal(first.object.columnDefinitions[0].name, "Name");
    assert.deepEqual(first.object.rows[0].cells.slice(0, 2), ["row-1", 1]);
    assert.equal((await watch.next()).object.columnDefinitions, null);
    watch.close();
  });

  test("the old paths watch a collection and one object", async () => {
    await server.request("POST", configMaps, aConfigMap("legacy"));
    const one = await server.watch("/api/v1/watch/namespaces/default/configmaps/legacy");
    assert.partialDeepStrictEqual(await one.next(), { type: "ADDED", object: { metadata: { name: "legacy" } } });
    one.close();
    const selected = "/api/v1/watch/namespaces/default/configmaps/legacy?fieldSelector=metadata.name";
    const same = await server.watch(`${selected}=legacy`);
    assert.equal((await same.next()).object.metadata.name, "legacy");
    same.close();
    const other = await server.request("GET", `${selected}=other`);
    assert.deepEqual([other.code, other.body.message], [400, "fieldSelector metadata.name doesn't match requested name"]);
    const all = await server.watch("/api/v1/watch/configmaps");
    assert.equal((await all.next()).type, "ADDED");
    all.close();
  });

  test("bookmarks carry a resourceVersion and nothing else", async () => {
    const watch = await server.watch(`${configMaps}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&labelSelector=nobody`);
    const bookmark = await watch.next();
    assert.equal(bookmark.type, "BOOKMARK");
    assert.equal(bookmark.object.kind, "ConfigMap");
    assert.match(bookmark.object.metadata.resourceVersion, /^\d+$/);
    watch.close();
  });

  for (const { query, code } of [
    { query: "watch=1&resourceVersion=old", code: 500 },
    { query: "watch=1&resourceVersionMatch=Exact&resourceVersion=5", code: 422 },
    { query: "watch=1&fieldSelector=spec.none%3D1", code: 400 },
    { query: "watch=1&timeoutSeconds=soon", code: 400 },
  ]) {
    test(`a watch with ${query} is ${code}`, async () => {
      assert.equal((await server.request("GET", `${configMaps}?${query}`)).code, code);
    });
  }
});
