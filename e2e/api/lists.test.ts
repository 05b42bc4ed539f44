import assert from "node:assert/strict";
import { test } from "node:test";
import { newNamespace } from "../framework/namespace.ts";
import { ask, must } from "./wire.ts";

const aConfigMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { app: "lists" } },
  data,
});

test("a list in chunks is one snapshot, whatever changes meanwhile", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "chunks")}/configmaps`;
  const names = Array.from({ length: 7 }, (_, index) => `chunk-${index}`);
  for (const name of names) await must("POST", path, aConfigMap(name));
  const only = `${path}?fieldSelector=${encodeURIComponent("metadata.name!=kube-root-ca.crt")}`;
  const first = await must("GET", `${path}?limit=3`);
  assert.equal(first.kind, "ConfigMapList");
  assert.equal(first.items.length, 3);
  assert.ok(first.metadata.remainingItemCount >= 4);
  await must("DELETE", `${path}/chunk-6`);
  await must("PATCH", `${path}/chunk-5`, { data: { later: "yes" } }, { "content-type": "application/merge-patch+json" });
  await must("POST", path, aConfigMap("chunk-5a"));
  const seen = [...first.items];
  let page = first;
  while (page.metadata.continue) {
    page = await must("GET", `${path}?limit=3&continue=${encodeURIComponent(page.metadata.continue)}`);
    assert.equal(page.metadata.resourceVersion, first.metadata.resourceVersion);
    seen.push(...page.items);
  }
  assert.equal(page.metadata.remainingItemCount, undefined);
  const chunks = seen.filter((item) => item.metadata.name.startsWith("chunk-"));
  assert.deepEqual(
    chunks.map((item) => item.metadata.name),
    names,
  );
  assert.ok(chunks.every((item) => item.data === undefined));
  const selected = await must("GET", `${only}&limit=2`);
  assert.equal(selected.items.length, 2);
  assert.equal(selected.metadata.remainingItemCount, undefined, "unknown with a selector");
});

test("each cell of the table of resourceVersions answers as the API documents", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "versions")}/configmaps`;
  const label = "labelSelector=app%3Dlists";
  const one = await must("POST", path, aConfigMap("a"));
  const old = one.metadata.resourceVersion as string;
  await must("POST", path, aConfigMap("b"));
  await must("POST", path, aConfigMap("c"));
  const token = encodeURIComponent((await must("GET", `${path}?${label}&limit=1`)).metadata.continue);
  for (const { query, code = 200, names, exactly } of [
    { query: "", names: "abc" },
    { query: "resourceVersion=0", names: "abc" },
    { query: `resourceVersion=${old}`, names: "abc" },
    { query: "limit=2", names: "ab" },
    { query: "limit=2&resourceVersion=0", names: "abc|ab" },
    { query: `limit=2&resourceVersion=${old}`, names: "a", exactly: true },
    { query: `limit=2&continue=${token}`, names: "bc" },
    { query: `limit=2&continue=${token}&resourceVersion=0`, names: "bc" },
    { query: `limit=2&continue=${token}&resourceVersion=${old}`, code: 400 },
    { query: "resourceVersionMatch=Exact", code: 422 },
    { query: "resourceVersionMatch=Exact&resourceVersion=0", code: 422 },
    { query: `resourceVersionMatch=Exact&resourceVersion=${old}`, names: "a", exactly: true },
    { query: "limit=2&resourceVersionMatch=Exact", code: 422 },
    { query: "limit=2&resourceVersionMatch=Exact&resourceVersion=0", code: 422 },
    { query: `limit=2&resourceVersionMatch=Exact&resourceVersion=${old}`, names: "a", exactly: true },
    { query: "resourceVersionMatch=NotOlderThan", code: 422 },
    { query: "resourceVersionMatch=NotOlderThan&resourceVersion=0", names: "abc" },
    { query: `resourceVersionMatch=NotOlderThan&resourceVersion=${old}`, names: "abc" },
    { query: "limit=2&resourceVersionMatch=NotOlderThan", code: 422 },
    { query: "limit=2&resourceVersionMatch=NotOlderThan&resourceVersion=0", names: "abc|ab" },
    { query: `limit=2&resourceVersionMatch=NotOlderThan&resourceVersion=${old}`, names: "abc|ab" },
    { query: `limit=2&continue=${token}&resourceVersionMatch=Exact&resourceVersion=${old}`, code: 422 },
  ] as { query: string; code?: number; names?: string; exactly?: boolean }[]) {
    const answer = await ask("GET", `${path}?${label}&${query}`);
    assert.equal(answer.code, code, `${query}: ${JSON.stringify(answer.body)}`);
    if (names === undefined) continue;
    const found = answer.body.items.map((item: { metadata: { name: string } }) => item.metadata.name).join("");
    assert.ok(names.split("|").includes(found), `${query}: ${found} instead of ${names}`);
    const version = answer.body.metadata.resourceVersion as string;
    if (exactly) assert.equal(version, old, query);
    else assert.ok(BigInt(version) >= BigInt(old), query);
  }
});

test("a read at a future resourceVersion fails with 504 and retryAfterSeconds", async () => {
  const path = "/api/v1/namespaces/default/configmaps";
  for (const wanted of [`${path}?resourceVersion=999999999999`, `${path}/kube-root-ca.crt?resourceVersion=999999999999`]) {
    const { code, body } = await ask("GET", wanted);
    assert.equal(code, 504);
    assert.equal(body.reason, "Timeout");
    assert.match(body.message, /Too large resource version: 999999999999, current: \d+/);
    assert.deepEqual(body.details.causes, [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }]);
    assert.equal(body.details.retryAfterSeconds, 1);
  }
});

test("Tables and metadata alone, for one object and for lists", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "tables")}/configmaps`;
  await must("POST", path, aConfigMap("a", { x: "1" }));
  const as = (kind: string) => ({ accept: `application/json;as=${kind};g=meta.k8s.io;v=v1` });
  const table = await must("GET", `${path}?labelSelector=app%3Dlists`, undefined, as("Table"));
  assert.equal(`${table.apiVersion} ${table.kind}`, "meta.k8s.io/v1 Table");
  assert.deepEqual(
    table.columnDefinitions.map((column: { name: string; type: string }) => `${column.name} ${column.type}`),
    ["Name string", "Data string", "Age string"],
  );
  assert.deepEqual(table.rows[0].cells.slice(0, 2), ["a", 1]);
  assert.equal(table.rows[0].object.kind, "PartialObjectMetadata");
  assert.equal((await must("GET", `${path}/a?includeObject=None`, undefined, as("Table"))).rows[0].object, null);
  assert.equal((await must("GET", `${path}/a?includeObject=Object`, undefined, as("Table"))).rows[0].object.data.x, "1");
  assert.equal((await ask("GET", `${path}/a?includeObject=All`, undefined, as("Table"))).code, 400);
  const partial = await must("GET", `${path}/a`, undefined, as("PartialObjectMetadata"));
  assert.deepEqual(Object.keys(partial).sort(), ["apiVersion", "kind", "metadata"]);
  assert.equal(`${partial.apiVersion} ${partial.kind}`, "meta.k8s.io/v1 PartialObjectMetadata");
  const list = await must("GET", `${path}?labelSelector=app%3Dlists`, undefined, as("PartialObjectMetadataList"));
  assert.equal(list.kind, "PartialObjectMetadataList");
  assert.equal(list.items[0].data, undefined);
  const fallback = { accept: `${as("Table").accept},application/json` };
  assert.equal((await must("GET", path, undefined, fallback)).kind, "Table");
  assert.equal((await ask("GET", path, undefined, as("Other"))).code, 406);
});
