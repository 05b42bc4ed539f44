import assert from "node:assert/strict";
import { test } from "node:test";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";
import { type Any, ask, merge, must, openWatch } from "./wire.ts";

const aConfigMap = (name: string, labels: Record<string, string> = {}) => ({
  ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels } },
});
const summary = (events: Any[]): string[] => events.map((event) => `${event.type} ${event.object.metadata.name}`);
const mine = `fieldSelector=${encodeURIComponent("metadata.name!=kube-root-ca.crt")}`;

test("a watch resumed after any event continues with the next one", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "resume")}/configmaps`;
  const start = (await must("GET", path)).metadata.resourceVersion as string;
  await must("POST", path, aConfigMap("a"));
  await must("PATCH", `${path}/a`, { data: { x: "1" } }, merge);
  await must("POST", path, aConfigMap("b"));
  await must("DELETE", `${path}/a`);
  const all = await openWatch(`${path}?watch=1&resourceVersion=${start}&${mine}`);
  t.after(all.stop);
  assert.equal(all.code, 200);
  const events = await all.count(4);
  const want = ["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"];
  assert.deepEqual(summary(events), want);
  for (const [index, event] of events.slice(0, 3).entries()) {
    const rest = await openWatch(`${path}?watch=true&resourceVersion=${event.object.metadata.resourceVersion}&${mine}`);
    assert.deepEqual(summary(await rest.count(3 - index)), want.slice(index + 1));
    rest.stop();
  }
  for (const query of ["", "&resourceVersion=0"]) {
    const fresh = await openWatch(`${path}?watch=true&${mine}${query}`);
    assert.deepEqual(summary(await fresh.count(1)), ["ADDED b"]);
    fresh.stop();
  }
});

test("an object that comes to match, or no longer matches, is added and deleted for the watcher", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "match")}/configmaps`;
  const watching = await openWatch(`${path}?watch=true&labelSelector=on%3Dyes`);
  t.after(watching.stop);
  const label = (on: string | null) => must("PATCH", `${path}/a`, { metadata: { labels: { on } } }, merge);
  await must("POST", path, aConfigMap("a"));
  await label("yes");
  await must("PATCH", `${path}/a`, { data: { x: "1" } }, merge);
  const last = await label(null);
  await label("yes");
  await must("DELETE", `${path}/a`);
  const events = await watching.count(5);
  assert.deepEqual(summary(events), ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a"]);
  assert.equal(events[2].object.metadata.resourceVersion, last.metadata.resourceVersion, "the version it left with");
  assert.equal(events[2].object.metadata.labels.on, "yes", "as it was when it last matched");
});

test("bookmarks come to those who ask, with a version and nothing else", async (t) => {
  const path = "/api/v1/namespaces/default/configmaps";
  const watching = await openWatch(`${path}?watch=true&allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=4`);
  t.after(watching.stop);
  await waitFor("the end of the watch", async () => watching.isEnded);
  const bookmark = watching.events.find((event: Any) => event.type === "BOOKMARK");
  assert.ok(bookmark, JSON.stringify(watching.events));
  assert.equal(bookmark.object.kind, "ConfigMap");
  assert.ok(Number(bookmark.object.metadata.resourceVersion) > 0);
  assert.equal(bookmark.object.metadata.name, undefined);
});

test("a watch as Tables: the columns come once", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "table")}/configmaps`;
  const watching = await openWatch(`${path}?watch=true&${mine}`, "application/json;as=Table;g=meta.k8s.io;v=v1");
  t.after(watching.stop);
  await must("POST", path, aConfigMap("a"));
  await must("POST", path, aConfigMap("b"));
  const [first, second] = await watching.count(2);
  assert.equal(first.object.kind, "Table");
  assert.equal(first.object.columnDefinitions[0].name, "Name");
  assert.deepEqual(second.object.columnDefinitions ?? [], []);
  assert.equal(second.object.rows[0].cells[0], "b");
});

test("a wrong watch is refused before it begins", async () => {
  const path = "/api/v1/namespaces/default/configmaps?watch=true";
  assert.equal((await ask("GET", `${path}&resourceVersionMatch=Exact&resourceVersion=5`)).code, 422);
  // Upstream responds with 500.
  assert.equal((await ask("GET", `${path}&resourceVersion=x`)).code, 500);
});
