import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { decodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { aConfigMap, startShared, type TestServer } from "./testing.ts";

const namespace = "read";
const maps = `/api/v1/namespaces/${namespace}/configmaps`;

describe("get and list", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
    await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    for (let i = 0; i < 7; i++) {
      await server.request("POST", maps, aConfigMap(`map-${i}`, { i: String(i) }, { parity: i % 2 === 0 ? "even" : "odd" }));
    }
  });
  after(() => server.stop());

  test("an object names its kind, items of a list do not", async () => {
    const one = await server.request("GET", `${maps}/map-0`);
    assert.equal(one.code, 200);
    assert.match(one.raw.toString(), /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"map-0"/);
    assert.equal(one.raw.at(-1), 0x0a);
    const list = await server.request("GET", maps);
    assert.match(
      list.raw.toString(),
      /^\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\{"metadata":/,
    );
    assert.ok(list.body.items.length >= 7);
    assert.equal(list.body.items[0].kind, undefined);
  });

  test("pages through a list at one resourceVersion", async () => {
    const names: string[] = [];
    const versions = new Set<string>();
    let token = "";
    const left: number[] = [];
    do {
      const { code, body } = await server.request("GET", `${maps}?limit=3&continue=${encodeURIComponent(token)}&fieldSelector=`);
      assert.equal(code, 200);
      names.push(...body.items.map((item: { metadata: { name: string } }) => item.metadata.name));
      versions.add(body.metadata.resourceVersion);
      token = body.metadata.continue ?? "";
      if (token !== "") left.push(body.metadata.remainingItemCount);
      await server.request("POST", maps, aConfigMap(`between-${names.length}`));
    } while (token !== "");
    assert.equal(versions.size, 1);
    assert.equal(names.filter((name) => name.startsWith("map-")).length, 7);
    assert.ok(!names.includes("between-3"));
    assert.ok((left[0] as number) > (left[1] as number));
  });

  test("a table of flow schemas has them in the order in which they are tried", async () => {
    const path = "/apis/flowcontrol.apiserver.k8s.io/v1beta2/flowschemas";
    const table = await server.request("GET", path, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
    const rows: { cells: unknown[] }[] = table.body.rows;
    const precedences = rows.map(({ cells }) => Number(cells[2]));
    assert.ok(rows.length > 5, table.raw.toString());
    assert.deepEqual(
      precedences,
      precedences.toSorted((a, b) => a - b),
    );
    assert.deepEqual([rows[0]?.cells[0], rows.at(-1)?.cells[0]], ["exempt", "catch-all"]);
  });

  test("selects by labels and by fields", async () => {
    const even = await server.request("GET", `${maps}?labelSelector=parity%3Deven`);
    assert.equal(even.body.items.length, 4);
    const one = await server.request("GET", `${maps}?fieldSelector=metadata.name%3Dmap-3`);
    assert.deepEqual(
      one.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
      ["map-3"],
    );
  });

  for (const { query, code, text } of [
    { query: "fieldSelector=spec.nothing%3D1", code: 400, text: "field" },
    { query: "labelSelector=a%3D%3D%3Db", code: 400, text: "" },
    { query: "limit=many", code: 400, text: "invalid syntax" },
    { query: "resourceVersion=old", code: 500, text: 'resourceVersion: Invalid value: "old"' },
    { query: "continue=garbage", code: 400, text: "continue" },
    { query: "resourceVersionMatch=Exact", code: 422, text: 'ListOptions.meta.k8s.io "" is invalid' },
    { query: "resourceVersion=999999999999", code: 504, text: "Too large resource version" },
  ]) {
    test(`refuses a list with ${query} with ${code}`, async () => {
      const answer = await server.request("GET", `${maps}?${query}`);
      assert.equal(answer.code, code, answer.raw.toString());
      assert.ok(answer.body.message.includes(text), answer.body.message);
    });
  }

  test("a Table has the columns and a row for each object", async () => {
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    const { body } = await server.request("GET", `${maps}?labelSelector=parity%3Dodd`, undefined, { accept });
    assert.equal(body.kind, "Table");
    assert.equal(body.apiVersion, "meta.k8s.io/v1");
    assert.deepEqual(
      body.columnDefinitions.map((column: { name: string }) => column.name),
      ["Name", "Data", "Age"],
    );
    assert.equal(body.rows.length, 3);
    assert.deepEqual(body.rows[0].cells.slice(0, 2), ["map-1", 1]);
    assert.equal(body.rows[0].object.kind, "PartialObjectMetadata");
    const whole = await server.request("GET", `${maps}/map-1?includeObject=Object`, undefined, { accept });
    assert.equal(whole.body.rows[0].object.kind, "ConfigMap");
    const none = await server.request("GET", `${maps}/map-1?includeObject=None`, undefined, { accept });
    assert.equal(none.body.rows[0].object ?? undefined, undefined);
    assert.equal((await server.request("GET", `${maps}?includeObject=Some`, undefined, { accept })).code, 400);
  });

  test("metadata alone, of one and of many", async () => {
    const one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    const many = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    const object = await server.request("GET", `${maps}/map-2`, undefined, { accept: one });
    assert.equal(object.body.kind, "PartialObjectMetadata");
    assert.equal(object.body.data, undefined);
    const list = await server.request("GET", maps, undefined, { accept: many });
    assert.equal(list.body.kind, "PartialObjectMetadataList");
    const [item] = list.body.items;
    assert.deepEqual([item.kind, item.apiVersion, item.data], ["PartialObjectMetadata", "meta.k8s.io/v1", undefined]);
    assert.equal((await server.request("GET", maps, undefined, { accept: one })).code, 406);
  });

  test("protobuf has its envelope, for one and for a list", async () => {
    const accept = "application/vnd.kubernetes.protobuf";
    for (const path of [maps, `${maps}/map-0`]) {
      const { raw, headers } = await server.request("GET", path, undefined, { accept });
      assert.equal(headers["content-type"], accept);
      assert.equal(raw.subarray(0, 4).toString("latin1"), "k8s\0");
    }
  });

  test("a protobuf list says what the JSON list says", async () => {
    const path = `${maps}?labelSelector=parity&limit=3`;
    const json = await server.request("GET", path);
    const protobuf = await server.request("GET", path, undefined, { accept: "application/vnd.kubernetes.protobuf" });
    const list = decodeProtobuf(protobuf.raw);
    assert.equal(list.kind, "ConfigMapList");
    assert.deepEqual(JSON.parse(encodeJson(list).toString()), json.body);
    const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    const partial = await server.request("GET", path, undefined, { accept });
    const decoded = decodeProtobuf(partial.raw) as unknown as { kind: string; items: { metadata: { name: string } }[] };
    assert.equal(decoded.kind, "PartialObjectMetadataList");
    assert.deepEqual(
      decoded.items.map((item) => item.metadata.name),
      json.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    );
  });

  test("an Accept that cannot be satisfied is 406", async () => {
    const { code, body } = await server.request("GET", maps, undefined, { accept: "text/html" });
    assert.equal(code, 406);
    assert.equal(body.reason, "NotAcceptable");
  });

  test("pretty indents", async () => {
    const { raw } = await server.request("GET", `${maps}/map-0?pretty=true`);
    assert.match(raw.toString(), /^\{\n {2}"kind": "ConfigMap",\n/);
    const list = await server.request("GET", `${maps}?pretty=true`);
    assert.match(list.raw.toString(), /^\{\n {2}"kind": "ConfigMapList",\n/);
  });

  test("compresses responses above 128 KiB for clients that accept gzip", async () => {
    await server.request("POST", maps, aConfigMap("long", { text: "abcdefgh".repeat(20_000) }));
    for (const path of [`${maps}/long`, maps]) {
      const packed = await server.request("GET", path, undefined, { "accept-encoding": "gzip" });
      assert.equal(packed.headers["content-encoding"], "gzip");
      const refused = await server.request("GET", path, undefined, { "accept-encoding": "gzip;q=0" });
      assert.equal(refused.headers["content-encoding"], undefined);
      assert.ok(gunzipSync(packed.raw).includes("abcdefghabcdefgh"));
      const plain = await server.request("GET", path);
      assert.equal(plain.headers["content-encoding"], undefined);
      assert.ok(plain.raw.length > 160_000);
    }
  });

  for (const { method, path, code } of [
    { method: "GET", path: "/api/v1/namespaces/default/nothings", code: 404 },
    { method: "GET", path: "/api/v1/namespaces/default/configmaps/none", code: 404 },
    { method: "GET", path: "/apis/nothing.example.com/v1/things", code: 404 },
    { method: "GET", path: "/api/v1/namespaces/default/nodes", code: 404 },
    { method: "GET", path: "/api/v1/configmaps/named", code: 404 },
    { method: "PUT", path: "/api/v1/namespaces/default/configmaps", code: 405 },
    { method: "POST", path: "/api/v1/namespaces/default/configmaps/named", code: 405 },
    { method: "DELETE", path: "/api/v1/namespaces", code: 405 },
    { method: "GET", path: "/api/v1/namespaces/default/configmaps/named/nothing", code: 404 },
  ]) {
    test(`${method} ${path} is ${code}`, async () => {
      const answer = await server.request(method, path, method === "PUT" || method === "POST" ? aConfigMap("named") : undefined);
      assert.equal(answer.code, code, answer.raw.toString());
    });
  }
});
