import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { decodeProtobuf, encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { WatchEventDecoder } from "@coxswain/apimachinery/objects/codec/stream";
import type { KubeList, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { aConfigMap, startShared, type TestServer } from "./testing.ts";

const maps = "/api/v1/namespaces/protobuf/configmaps";
const protobuf = "application/vnd.kubernetes.protobuf";
const kind = { group: "", version: "v1", kind: "ConfigMap" };

let server: TestServer;
before(async () => {
  server = await startShared();
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "protobuf" } });
});
after(() => server.stop());

test("POST takes protobuf and answers in JSON, in protobuf on request", async () => {
  const body = (name: string): Buffer => encodeProtobuf(aConfigMap(name, { a: "1" }), kind);
  const json = await server.request("POST", maps, body("one"), { "content-type": protobuf, accept: "application/json" });
  assert.equal(json.code, 201);
  assert.partialDeepStrictEqual(json.body, { kind: "ConfigMap", metadata: { name: "one" }, data: { a: "1" } });
  const binary = await server.request("POST", maps, body("two"), { "content-type": protobuf, accept: protobuf });
  assert.equal(binary.code, 201);
  assert.equal(binary.headers["content-type"], protobuf);
  assert.partialDeepStrictEqual(decodeProtobuf(binary.raw), { kind: "ConfigMap", metadata: { name: "two" }, data: { a: "1" } });
});

test("JSON in, protobuf out; PUT too", async () => {
  const created = await server.request("POST", maps, aConfigMap("three", { a: "1" }), { accept: protobuf });
  assert.equal(created.code, 201);
  const object = decodeProtobuf(created.raw) as KubeObject & { data: object };
  const bytes = encodeProtobuf({ ...object, data: { a: "2" } }, kind);
  const { code, body } = await server.request("PUT", `${maps}/three`, bytes, { "content-type": protobuf });
  assert.equal(code, 200);
  assert.deepEqual(body.data, { a: "2" });
});

test("a list in protobuf has the items of the list in JSON", async () => {
  const { raw } = await server.request("GET", maps, undefined, { accept: protobuf });
  const list = decodeProtobuf(raw) as unknown as KubeList<KubeObject>;
  const { body } = await server.request("GET", maps);
  const seen = (items: readonly KubeObject[]): unknown => items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]);
  assert.deepEqual(seen(list.items), seen(body.items));
  assert.ok(list.items.length > 0);
});

test("a watch in protobuf sends events in protobuf", async () => {
  const before = await server.request("GET", maps);
  await server.request("POST", maps, aConfigMap("watched", { a: "1" }));
  await server.request("PUT", `${maps}/watched`, aConfigMap("watched", { a: "2" }));
  await server.request("DELETE", `${maps}/watched`);
  const since = before.body.metadata.resourceVersion;
  const answer = await server.request("GET", `${maps}?watch=1&timeoutSeconds=1&resourceVersion=${since}`, undefined, {
    accept: `${protobuf};stream=watch`,
  });
  assert.equal(answer.code, 200);
  assert.equal(answer.headers["content-type"], `${protobuf};stream=watch`);
  const events = new WatchEventDecoder(protobuf).push(answer.raw);
  assert.deepEqual(
    events.map(({ type, object }) => [type, object.metadata.name, (object as { data?: { a: string } }).data?.a]),
    [
      ["ADDED", "watched", "1"],
      ["MODIFIED", "watched", "2"],
      ["DELETED", "watched", "2"],
    ],
  );
});

for (const { path, kind, spec } of [
  { path: "/api/v1/namespaces/protobuf/services", kind: "Service", spec: { ports: [{ port: 80 }] } },
  ...["v1", "v2"].map((version) => ({
    path: `/apis/autoscaling/${version}/namespaces/protobuf/horizontalpodautoscalers`,
    kind: "HorizontalPodAutoscaler",
    spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" } },
  })),
])
  test(`a watch of ${path} in protobuf shows what one in JSON shows, of written, updated and deleted objects`, async () => {
    const before = await server.request("GET", path);
    const name = "both";
    assert.equal((await server.request("POST", path, { metadata: { name }, spec })).code, 201);
    const patch = { metadata: { labels: { a: "b" } } };
    const type = { "content-type": "application/merge-patch+json" };
    assert.equal((await server.request("PATCH", `${path}/${name}`, patch, type)).code, 200);
    assert.equal((await server.request("DELETE", `${path}/${name}`)).code, 200);
    const since = before.body.metadata.resourceVersion;
    const events = async (mediaType: string) => {
      const accept = { accept: `${mediaType};stream=watch` };
      const url = `${path}?watch=1&timeoutSeconds=1&resourceVersion=${since}`;
      return new WatchEventDecoder(mediaType).push((await server.request("GET", url, undefined, accept)).raw);
    };
    const [binary, json] = [await events(protobuf), await events("application/json")];
    assert.deepEqual(binary, json);
    assert.deepEqual(
      binary.map((event) => [event.type, event.object.kind]),
      ["ADDED", "MODIFIED", "DELETED"].map((type) => [type, kind]),
    );
    assert.equal(new Set(binary.map(({ object }) => object.metadata.resourceVersion)).size, 3);
  });
