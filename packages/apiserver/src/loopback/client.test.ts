import assert from "node:assert/strict";
import { test } from "node:test";
import { isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import { resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RegistryStore } from "../registry/generic/resource.ts";
import { newEntry } from "../storage/entry.ts";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { newLoopbackClient } from "./client.ts";

test("a list whose objects are not decoded yet lets others have their turn between them", async () => {
  let decoded = 0;
  const entries = Array.from({ length: 64 }, (_, i) => ({
    object() {
      for (const began = performance.now(); performance.now() - began < 1; ); // more than a slice for all of them
      decoded++;
      return { metadata: { name: `pod-${i}` } };
    },
  }));
  const client = newLoopbackClient({
    handle: async () => {},
    writeError: () => {},
    storeOf: () => ({ list: async () => ({ entries, revision: 7 }) }) as unknown as RegistryStore,
    onRead: () => {},
    turns: new Turns(),
  });
  const seen: number[] = [];
  const listed = client.list(pods);
  while (decoded < entries.length) {
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(decoded);
  }
  const { items, metadata } = await listed;
  assert.deepEqual([items.length, metadata.resourceVersion, items[63]?.metadata.name], [64, "7", "pod-63"]);
  assert.ok(new Set(seen).size > 2, `decoded after each turn: ${seen}`);
});

type Handle = Parameters<typeof newLoopbackClient>[0]["handle"];

/** A client whose reads a fake store serves; everything else goes to `handle`. */
function aClient(store: Partial<Record<"get" | "list" | "watch", unknown>>, handle: Handle = async () => {}) {
  const reads: string[] = [];
  const client = newLoopbackClient({
    handle,
    writeError: (exchange, err) => exchange.respond(500, {}, JSON.stringify({ kind: "Status", message: String(err), code: 500 })),
    storeOf: () => store as unknown as RegistryStore,
    onRead: (verb) => void reads.push(verb),
    turns: new Turns(),
  });
  return { client, reads };
}

const anEntry = (name: string): Entry => newEntry({ fieldsOf: () => ({}) } as never, name, 5, { metadata: { name } } as never);

/** A watch of the store that the test feeds. */
function aWatch(signal: AbortSignal) {
  let stopped = 0;
  const queue = new WatchQueue({ signal: new AbortController().signal, onStop: () => stopped++ });
  const { client } = aClient({ watch: async () => queue });
  const events = client.watch(pods, {}, { signal });
  return { queue, events, stopped: () => stopped, push: (event: WatchEvent) => queue.push(event) };
}

test("a watch of the store is ended by its reader, whether it leaves, fails or reads to the end", async () => {
  const { signal } = new AbortController();
  const left = aWatch(signal);
  left.push({ type: "ADDED", entry: anEntry("a") });
  for await (const { object } of left.events) {
    assert.equal(object.metadata.name, "a");
    break;
  }
  assert.equal(left.stopped(), 1);

  const expired = aWatch(signal);
  expired.push({ type: "BOOKMARK", revision: 9 });
  expired.queue.fail(resourceExpired("too old"));
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const { type, object } of expired.events) seen.push([type, object.metadata.resourceVersion]);
  })();
  await assert.rejects(reading, isResourceExpired);
  assert.deepEqual(seen, [["BOOKMARK", "9"]]);

  const ended = aWatch(signal);
  ended.queue.end();
  for await (const _ of ended.events) assert.fail("there is nothing");
});

test("a watch that its caller aborts throws the caller's reason", async () => {
  const caller = new AbortController();
  const { queue, events } = aWatch(caller.signal);
  const reading = (async () => {
    for await (const _ of events);
  })();
  caller.abort(new Error("enough"));
  queue.end();
  await assert.rejects(reading, /enough/);
});

test("a list reads the store's page of the caller's selection, and says where it goes on", async () => {
  const requests: Record<string, unknown>[] = [];
  const list = async (namespace: string, request: object) => {
    requests.push({ namespace, ...request });
    return { entries: [], revision: 7, continueToken: "next" };
  };
  const { client, reads } = aClient({ list });
  const selectors = { labelSelector: "app=a", fieldSelector: "metadata.name=b" };
  const { signal } = new AbortController();
  const page = { limit: 5, continue: "token", resourceVersion: "6", signal };
  const { metadata } = await client.list(pods, { namespace: "web" }, { ...selectors, ...page });
  assert.deepEqual(metadata, { resourceVersion: "7", continue: "next" });
  const { labels, fields, ...rest } = requests[0] ?? {};
  assert.deepEqual([`${labels}`, `${fields}`], ["app=a", "metadata.name=b"]);
  assert.deepEqual(rest, { namespace: "web", limit: 5, continueToken: "token", revision: 6, signal });
  assert.deepEqual(reads, ["LIST"]);
});

test("requests that the store cannot answer go through the handlers", async () => {
  const urls: string[] = [];
  const { client, reads } = aClient({}, async ({ exchange }) => {
    urls.push(exchange.url);
    exchange.respond(200, { "content-type": "application/json" }, '{"kind":"Pod","metadata":{},"items":[]}');
  });
  await client.list(pods, {}, { resourceVersion: "5", resourceVersionMatch: "Exact" });
  await client.list(pods, {}, { metadataOnly: true });
  await client.get(pods, { namespace: "web", name: "a", subresource: "status" });
  await client.get(pods, { namespace: "web", name: "a" }, { metadataOnly: true });
  assert.deepEqual([urls.length, reads], [4, []]);
  assert.equal(urls[0], "/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact");
});

test("writes, watches of metadata and raw requests go through the handlers as they are, in the user's name", async () => {
  const seen: unknown[] = [];
  const { client, reads } = aClient({}, async ({ exchange, user }) => {
    const body = (await exchange.body(1000)).toString();
    seen.push([exchange.method, exchange.url, body, user?.groups.includes("system:masters")]);
    const pod = '{"kind":"Pod","metadata":{}}';
    const answer = exchange.url.includes("watch=") ? `{"type":"ADDED","object":${pod}}\n` : pod;
    exchange.respond(200, { "content-type": "application/json" }, answer);
  });
  const target = { namespace: "web", name: "a" };
  await client.patch(pods, target, { type: "merge", body: { spec: {} } } as never, { dryRun: true } as never);
  await client.delete(pods, target, { preconditions: { uid: "u" } });
  await client.deleteCollection(pods, { namespace: "web" }, { labelSelector: "app=a" } as never);
  const answer = await client.raw("POST", "/raw?x=y", { headers: {}, body: "sent" });
  assert.equal(answer.status, 200);
  const { signal } = new AbortController();
  for await (const _ of client.watch(pods, { namespace: "web" }, { signal, metadataOnly: true })) break;
  client.close();
  assert.deepEqual(reads, []);
  const deletion = (more: object) => JSON.stringify({ kind: "DeleteOptions", apiVersion: "v1", ...more });
  assert.deepEqual(seen, [
    ["PATCH", "/api/v1/namespaces/web/pods/a?dryRun=All", '{"spec":{}}', true],
    ["DELETE", "/api/v1/namespaces/web/pods/a", deletion({ preconditions: { uid: "u" } }), true],
    ["DELETE", "/api/v1/namespaces/web/pods?labelSelector=app%3Da", deletion({}), true],
    ["POST", "/raw?x=y", "sent", true],
    ["GET", "/api/v1/namespaces/web/pods?watch=true", "", true],
  ]);
});

test("a handler that fails is answered for, and one that fails within its answer breaks it off", async () => {
  const early = aClient({}, async () => {
    throw new Error("before");
  });
  await assert.rejects(early.client.create(pods, { metadata: { namespace: "web" } }), /before/);
  const late = aClient({}, async ({ exchange }) => {
    exchange.stream(200, { "content-type": "application/json" }).write('{"kind":');
    throw new Error("within");
  });
  await assert.rejects(late.client.create(pods, { metadata: { namespace: "web" } }), /the request was aborted/);
});

test("a get reads the store at least at the revision that its caller names, without one the present", async () => {
  const requests: unknown[] = [];
  const get = async (namespace: string, name: string, read: object) => {
    requests.push([namespace, name, read]);
    return anEntry(name);
  };
  const { client, reads } = aClient({ get });
  const { signal } = new AbortController();
  for (const options of [{}, { resourceVersion: "0" }, { resourceVersion: "7", signal }]) {
    assert.equal((await client.get(pods, { namespace: "web", name: "a" }, options)).metadata.name, "a");
  }
  assert.deepEqual(requests, [
    ["web", "a", { minimumRevision: undefined }],
    ["web", "a", { minimumRevision: 0 }],
    ["web", "a", { minimumRevision: 7, signal }],
  ]);
  assert.deepEqual(reads, ["GET", "GET", "GET"]);
});

test("a watch asks the store for its caller's selection, revision and bookmarks", async () => {
  const requests: Record<string, unknown>[] = [];
  const watch = async (namespace: string, request: object) => {
    requests.push({ namespace, ...request });
    const queue = new WatchQueue({ signal: new AbortController().signal });
    queue.end();
    return queue;
  };
  const { client } = aClient({ watch });
  const { signal } = new AbortController();
  const selected = { labelSelector: "app=a", fieldSelector: "metadata.name=b" };
  for (const options of [{ ...selected, resourceVersion: "6", allowWatchBookmarks: true }, { resourceVersion: "0" }, {}]) {
    for await (const _ of client.watch(pods, { namespace: "web" }, { ...options, signal })) assert.fail("there is nothing");
  }
  const [first, ...others] = requests;
  const { labels, fields, ...rest } = first ?? {};
  assert.deepEqual([`${labels}`, `${fields}`], ["app=a", "metadata.name=b"]);
  assert.deepEqual(
    [rest, ...others],
    [
      { namespace: "web", revision: 6, bookmarks: true, signal },
      { namespace: "web", revision: 0, bookmarks: false, signal },
      { namespace: "web", revision: undefined, bookmarks: false, signal },
    ],
  );
});
