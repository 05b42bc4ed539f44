import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:https";
import { after, before, describe, test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";
import { aConfigMap, startShared, type TestServer } from "./testing.ts";

/** Rules that hold for all resources: the supported requests, their content and encodings. */

const maps = "/api/v1/namespaces/default/configmaps";

describe("the resource model", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
    await server.request("POST", maps, aConfigMap("present"));
    await server.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
    await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
    const containers = [{ name: "main", image: "busybox" }];
    await server.request("POST", "/api/v1/namespaces/default/pods", { metadata: { name: "p1" }, spec: { containers } });
  });
  after(() => server.stop());

  const resourceAttributes = { verb: "get", resource: "pods", namespace: "default" };
  const reviews = "/apis/authorization.k8s.io/v1";
  for (const { path, body } of [
    { path: `${reviews}/subjectaccessreviews`, body: { spec: { user: "jane", resourceAttributes } } },
    { path: `${reviews}/selfsubjectaccessreviews`, body: { spec: { resourceAttributes } } },
    { path: `${reviews}/selfsubjectrulesreviews`, body: { spec: { namespace: "default" } } },
    { path: `${reviews}/namespaces/default/localsubjectaccessreviews`, body: { spec: { user: "jane", resourceAttributes } } },
    { path: "/apis/authentication.k8s.io/v1/tokenreviews", body: { spec: { token: "none" } } },
  ]) {
    test(`${path} answers a nameless POST, and nothing of it can be read, changed or deleted`, async () => {
      const { code, body: answer } = await server.request("POST", path, body);
      assert.equal(code, 201, JSON.stringify(answer));
      assert.ok(answer.status !== undefined);
      assert.equal(answer.metadata.uid, undefined);
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        const again = await server.request(method, path, method === "GET" ? undefined : body);
        assert.equal(again.code, 405, `${method} ${path}`);
        assert.equal((await server.request(method, `${path}/x`, method === "GET" ? undefined : body)).code, 404, method);
      }
    });
  }

  for (const { what, method, path, body } of [
    { what: "a creation", method: "POST", path: maps, body: { kind: "List", apiVersion: "v1", items: [aConfigMap("a")] } },
    {
      what: "a creation",
      method: "POST",
      path: maps,
      body: { kind: "ConfigMapList", apiVersion: "v1", items: [aConfigMap("a")] },
    },
    { what: "an update", method: "PUT", path: `${maps}/present`, body: { kind: "ConfigMapList", apiVersion: "v1", items: [] } },
    { what: "a creation", method: "POST", path: maps, body: [aConfigMap("a"), aConfigMap("b")] },
    {
      what: "a creation",
      method: "POST",
      path: maps,
      body: `${JSON.stringify(aConfigMap("a"))}${JSON.stringify(aConfigMap("b"))}`,
    },
  ]) {
    const shown = typeof body === "string" ? "two objects" : Array.isArray(body) ? "an array" : body.kind;
    test(`${what} carries one object: ${shown} is refused and makes nothing`, async () => {
      assert.equal((await server.request(method, path, body)).code, 400);
      assert.equal((await server.request("GET", `${maps}/a`)).code, 404);
    });
  }

  for (const { path, kind } of [
    { path: "/api/v1/nodes/n1/status", kind: "Node" },
    { path: "/api/v1/namespaces/default/status", kind: "Namespace" },
    { path: "/api/v1/namespaces/default/pods/p1/status", kind: "Pod" },
    { path: "/api/v1/namespaces/default/pods/p1/ephemeralcontainers", kind: "Pod" },
  ]) {
    test(`GET ${path} reads a subresource`, async () => {
      const { code, body } = await server.request("GET", path);
      assert.deepEqual([code, body.kind, body.metadata.name], [200, kind, path.split("/").at(-2)]);
    });
  }

  test("?pretty=true indents the answer of every method, of errors, lists and discovery; ?pretty=false none", async () => {
    const patch = { "content-type": "application/merge-patch+json" };
    for (const [pretty, indented] of [
      ["true", true],
      ["false", false],
    ] as const) {
      const query = `?pretty=${pretty}`;
      const answers = [
        await server.request("POST", `${maps}${query}`, aConfigMap("pretty")),
        await server.request("PUT", `${maps}/pretty${query}`, aConfigMap("pretty", { a: "b" })),
        await server.request("PATCH", `${maps}/pretty${query}`, { data: { a: "c" } }, patch),
        await server.request("GET", `${maps}/pretty${query}`),
        await server.request("GET", `${maps}${query}`),
        await server.request("DELETE", `${maps}/pretty${query}`),
        await server.request("GET", `${maps}/pretty${query}`),
        await server.request("GET", `/apis${query}`),
        await server.request("GET", `/apis/apps/v1${query}`),
      ];
      assert.deepEqual(
        answers.map(({ code }) => code),
        [201, 200, 200, 200, 200, 200, 404, 200, 200],
      );
      for (const { raw } of answers) assert.equal(raw.toString().startsWith("{\n  "), indented, raw.toString("utf8", 0, 80));
    }
  });

  for (const { method, path, body, headers, code, refused } of [
    {
      method: "POST",
      path: maps,
      body: aConfigMap("dry"),
      headers: {},
      code: 201,
      refused: { metadata: { name: "Not A Name" } },
    },
    {
      method: "PUT",
      path: `${maps}/present`,
      body: aConfigMap("present", { new: "1" }),
      headers: {},
      code: 200,
      refused: { metadata: { name: "present" }, data: { "not a key": "" } },
    },
    {
      method: "PATCH",
      path: `${maps}/present`,
      body: { data: { new: "1" } },
      headers: { "content-type": "application/merge-patch+json" },
      code: 200,
      refused: { data: { "not a key": "" } },
    },
    {
      method: "PATCH",
      path: `${maps}/dry`,
      body: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "dry" }, data: { new: "1" } },
      headers: { "content-type": "application/apply-patch+yaml" },
      code: 201,
      refused: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "dry" }, data: { "not a key": "" } },
    },
  ] as { method: string; path: string; body: object; headers: Record<string, string>; code: number; refused: object }[]) {
    test(`a dry ${method} (${headers["content-type"] ?? "JSON"}) answers as the real one would, and writes nothing`, async () => {
      const before = (await server.request("GET", maps)).body;
      const query = method === "PATCH" && headers["content-type"]?.startsWith("application/apply") ? "&fieldManager=me" : "";
      const done = await server.request(method, `${path}?dryRun=All${query}`, body, headers);
      assert.equal(done.code, code, done.raw.toString());
      assert.ok(done.body.metadata.uid !== undefined);
      const wrong = await server.request(method, `${path}?dryRun=All${query}`, refused, headers);
      assert.equal(wrong.code, 422, wrong.raw.toString());
      assert.deepEqual((await server.request("GET", maps)).body.items, before.items);
    });
  }
});

test("over HTTP/1.1 a watch is chunks of JSON documents with a type and an object each", async (t) => {
  const server = await startTestServer(t);
  const sent = request({
    host: "127.0.0.1",
    port: server.port,
    ca: server.ca,
    path: `${maps}?watch=1&fieldSelector=metadata.name=seen`,
    headers: { authorization: `Bearer ${server.adminToken}` },
  });
  sent.end();
  const [response] = await once(sent, "response");
  t.after(() => sent.destroy());
  assert.equal(response.headers["transfer-encoding"], "chunked");
  assert.equal(response.headers["content-length"], undefined);
  await server.request("POST", maps, aConfigMap("seen"));
  await server.request("PUT", `${maps}/seen`, aConfigMap("seen", { a: "b" }));
  await server.request("DELETE", `${maps}/seen`);
  let text = "";
  for await (const chunk of response) {
    text += chunk;
    if (text.split("\n").length > 3) break;
  }
  const events = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    events.map(({ type, object }) => [type, object.kind, object.metadata.name]),
    [
      ["ADDED", "ConfigMap", "seen"],
      ["MODIFIED", "ConfigMap", "seen"],
      ["DELETED", "ConfigMap", "seen"],
    ],
  );
  for (const event of events) assert.deepEqual(Object.keys(event), ["type", "object"]);
});
