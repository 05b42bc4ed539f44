import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

const json = { "content-type": "application/json-patch+json" };
const merge = { "content-type": "application/merge-patch+json" };
const strategic = { "content-type": "application/strategic-merge-patch+json" };

describe("update, patch and delete", () => {
  let server: TestServer;
  let count = 0;
  let path = "";
  let name = "";
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());
  beforeEach(async () => {
    name = `written-${count++}`;
    path = `${configMaps}/${name}`;
    await server.request("POST", configMaps, aConfigMap(name, { a: "1", b: "2" }));
  });

  test("PUT replaces, and refuses an old resourceVersion", async () => {
    const { body: before } = await server.request("GET", path);
    const { code, body } = await server.request("PUT", path, { ...before, data: { c: "3" } });
    assert.equal(code, 200);
    assert.deepEqual(body.data, { c: "3" });
    assert.equal(body.metadata.uid, before.metadata.uid);
    const late = await server.request("PUT", path, { ...before, data: { d: "4" } });
    assert.equal(late.code, 409);
    assert.equal(late.body.reason, "Conflict");
  });

  for (const { what, body, code, text } of [
    {
      what: "another name",
      body: aConfigMap("other"),
      code: 400,
      text: "the name of the object (other) does not match the name on the URL",
    },
    {
      what: "no name",
      body: { kind: "ConfigMap", apiVersion: "v1" },
      code: 400,
      text: "was undeterminable: name must be provided",
    },
    { what: "another namespace", body: { metadata: { name: "", namespace: "other" } }, code: 400, text: "" },
    { what: "another uid", body: undefined, code: 409, text: "uid" },
  ]) {
    test(`PUT with ${what} is ${code}`, async () => {
      const object = body ?? { metadata: { name, uid: "8c1f2a3e-0000-4000-8000-000000000000" } };
      const answer = await server.request("PUT", path, object);
      assert.equal(answer.code, code, answer.raw.toString());
      assert.ok(answer.body.message.toLowerCase().includes(text.toLowerCase()), answer.body.message);
    });
  }

  test("PUT on a missing name is 404", async () => {
    assert.equal((await server.request("PUT", `${configMaps}/absent`, aConfigMap("absent"))).code, 404);
  });

  test("each patch type changes what it names", async () => {
    const patched = await server.request("PATCH", path, [{ op: "replace", path: "/data/a", value: "json" }], json);
    assert.equal(patched.code, 200, patched.raw.toString());
    assert.deepEqual(patched.body.data, { a: "json", b: "2" });
    const merged = await server.request("PATCH", path, { data: { a: null, c: "merge" } }, merge);
    assert.deepEqual(merged.body.data, { b: "2", c: "merge" });
    const strategically = await server.request("PATCH", path, { data: { $patch: "replace", d: "strategic" } }, strategic);
    assert.equal(strategically.code, 200, strategically.raw.toString());
    assert.deepEqual(strategically.body.data, { d: "strategic" });
  });

  for (const { what, patch, headers, code } of [
    { what: "a failing test", patch: [{ op: "test", path: "/data/a", value: "9" }], headers: json, code: 422 },
    { what: "a path that is not there", patch: [{ op: "remove", path: "/data/z" }], headers: json, code: 422 },
    { what: "an unknown operation", patch: [{ op: "turn", path: "/data/a" }], headers: json, code: 422 },
    { what: "no list", patch: {}, headers: json, code: 400 },
    { what: "malformed JSON", patch: "{", headers: merge, code: 400 },
    { what: "a list for a merge", patch: [], headers: merge, code: 422 },
    { what: "a wrong type", patch: { data: 7 }, headers: merge, code: 422 },
    { what: "a wrong type behind a right one", patch: { metadata: { labels: { a: "b" } }, data: 7 }, headers: merge, code: 422 },
    { what: "another kind", patch: { kind: "Secret" }, headers: merge, code: 422 },
    { what: "another version of its kind", patch: { apiVersion: "v2" }, headers: merge, code: 422 },
    { what: "a changed name", patch: { metadata: { name: "renamed" } }, headers: merge, code: 400 },
    {
      what: "an old resourceVersion",
      patch: { metadata: { resourceVersion: "1" }, data: { a: "x" } },
      headers: merge,
      code: 409,
    },
    {
      what: "an unknown media type",
      patch: {},
      headers: { "content-type": "application/json", "content-length": "2" },
      code: 415,
    },
    { what: "an apply without its manager", patch: {}, headers: { "content-type": "application/apply-patch+yaml" }, code: 422 },
  ]) {
    test(`a patch with ${what} is ${code}`, async () => {
      const answer = await server.request("PATCH", path, patch, headers);
      assert.equal(answer.code, code, answer.raw.toString());
      assert.equal(answer.body.kind, "Status");
    });
  }

  test("concurrent patches all succeed", async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => server.request("PATCH", path, { data: { [`k${i}`]: "v" } }, merge)),
    );
    assert.deepEqual(
      answers.map((answer) => answer.code),
      new Array(12).fill(200),
    );
    assert.equal(Object.keys((await server.request("GET", path)).body.data).length, 14);
  });

  test("concurrent PUTs without a resourceVersion all succeed", async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => server.request("PUT", path, aConfigMap(name, { [`k${i}`]: "v" }))),
    );
    assert.deepEqual(
      answers.map((answer) => [answer.code, answer.body.data]),
      answers.map((_, i) => [200, { [`k${i}`]: "v" }]),
    );
  });

  test("the kind in a strategic merge patch is not looked at", async () => {
    const { code, body } = await server.request("PATCH", path, { kind: "Secret", data: { c: "3" } }, strategic);
    assert.deepEqual([code, body.kind, body.data.c], [200, "ConfigMap", "3"]);
  });

  for (const missing of [`${configMaps}/absent`, "/apis/coordination.k8s.io/v1/namespaces/default/leases/absent"]) {
    test(`a patch of what is not there is 404 (${missing.split("/").at(-2)})`, async () => {
      for (const headers of [merge, strategic]) {
        const { code, body } = await server.request("PATCH", missing, { metadata: { labels: { a: "b" } } }, headers);
        assert.deepEqual([code, body.reason], [404, "NotFound"]);
      }
    });
  }

  test("a patch that changes nothing keeps the resourceVersion", async () => {
    const { body: before } = await server.request("GET", path);
    const { body: after } = await server.request("PATCH", path, { data: { a: "1" } }, merge);
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
  });

  test("DELETE answers with a Status that names what is gone", async () => {
    const { code, body } = await server.request("DELETE", path);
    assert.equal(code, 200);
    assert.partialDeepStrictEqual(body, { kind: "Status", status: "Success", details: { name, kind: "configmaps" } });
    assert.match(body.details.uid, /^[0-9a-f-]{36}$/);
    assert.equal((await server.request("DELETE", path)).code, 404);
  });

  test("DELETE keeps an object with finalizers and shows it", async () => {
    await server.request("PATCH", path, { metadata: { finalizers: ["example.com/wait"] } }, merge);
    const { code, body } = await server.request("DELETE", path);
    assert.equal(code, 200);
    assert.equal(body.kind, "ConfigMap");
    assert.ok(body.metadata.deletionTimestamp);
    await server.request("PATCH", path, { metadata: { finalizers: null } }, merge);
    assert.equal((await server.request("GET", path)).code, 404);
  });

  for (const { what, body, query = "", code } of [
    { what: "a wrong uid", body: { preconditions: { uid: "8c1f2a3e-0000-4000-8000-000000000000" } }, code: 409 },
    { what: "a wrong resourceVersion", body: { preconditions: { resourceVersion: "1" } }, code: 409 },
    { what: "an unknown policy", body: { propagationPolicy: "Perhaps" }, code: 422 },
    { what: "both ways to ask for dependents", body: { propagationPolicy: "Orphan", orphanDependents: true }, code: 422 },
    { what: "malformed JSON", body: "{", code: 500 },
    { what: "another kind", body: { kind: "Pod", apiVersion: "v1" }, code: 500 },
    { what: "a wrong grace period", body: undefined, query: "?gracePeriodSeconds=soon", code: 400 },
  ]) {
    test(`DELETE with ${what} is ${code}`, async () => {
      const answer = await server.request("DELETE", path + query, body);
      assert.equal(answer.code, code, answer.raw.toString());
      assert.equal((await server.request("GET", path)).code, 200);
    });
  }

  test("DELETE in dry-run leaves the object", async () => {
    assert.equal((await server.request("DELETE", `${path}?dryRun=All`)).code, 200);
    assert.equal((await server.request("GET", path)).code, 200);
  });

  for (const { method, type, body } of [
    { method: "PUT", type: "application/json", body: () => aConfigMap(name, { dry: "run" }) },
    { method: "PATCH", type: "application/merge-patch+json", body: () => ({ data: { dry: "run" } }) },
    { method: "PATCH", type: "application/strategic-merge-patch+json", body: () => ({ data: { dry: "run" } }) },
    { method: "PATCH", type: "application/json-patch+json", body: () => [{ op: "add", path: "/data", value: { dry: "run" } }] },
    { method: "PATCH", type: "application/apply-patch+yaml", body: () => aConfigMap(name, { dry: "run" }) },
  ]) {
    test(`${method} with ${type} in dry-run answers with the change and makes none`, async () => {
      const before = await server.request("GET", path);
      const query = `?dryRun=All&fieldManager=dry${type.includes("apply") ? "&force=true" : ""}`;
      const { code, body: answer } = await server.request(method, path + query, body(), { "content-type": type });
      assert.deepEqual([code, answer.data.dry], [200, "run"]);
      assert.deepEqual((await server.request("GET", path)).body, before.body);
    });
  }

  test("a collection is deleted by selector and answered as a list", async () => {
    await server.request("POST", configMaps, aConfigMap(`${name}-x`, {}, { sweep: name }));
    await server.request("POST", configMaps, aConfigMap(`${name}-y`, {}, { sweep: name }));
    const { code, body } = await server.request("DELETE", `${configMaps}?labelSelector=sweep%3D${name}`);
    assert.equal(code, 200);
    assert.equal(body.kind, "ConfigMapList");
    assert.equal(body.items.length, 2);
    assert.equal((await server.request("GET", path)).code, 200);
    assert.equal((await server.request("GET", `${path}-x`)).code, 404);
  });
});
