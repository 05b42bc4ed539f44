import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

describe("create", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());

  test("answers 201 with what the server adds", async () => {
    const { code, body } = await server.request("POST", configMaps, aConfigMap("created", { a: "1" }));
    assert.equal(code, 201);
    assert.equal(body.kind, "ConfigMap");
    assert.match(body.metadata.uid, /^[0-9a-f-]{36}$/);
    assert.match(body.metadata.resourceVersion, /^\d+$/);
    assert.match(body.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(body.metadata.namespace, "default");
    assert.deepEqual(body.data, { a: "1" });
  });

  test("makes a name from generateName", async () => {
    const { code, body } = await server.request("POST", configMaps, { metadata: { generateName: "made-" } });
    assert.equal(code, 201);
    assert.match(body.metadata.name, /^made-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  test("a second object of the name is refused", async () => {
    await server.request("POST", configMaps, aConfigMap("twice"));
    const { code, body } = await server.request("POST", configMaps, aConfigMap("twice"));
    assert.equal(code, 409);
    assert.partialDeepStrictEqual(body, {
      kind: "Status",
      reason: "AlreadyExists",
      message: 'configmaps "twice" already exists',
    });
  });

  test("dry-run answers 201 and stores nothing", async () => {
    const { code, body } = await server.request("POST", `${configMaps}?dryRun=All`, aConfigMap("dry"));
    assert.equal(code, 201);
    assert.equal(body.metadata.name, "dry");
    assert.equal((await server.request("GET", `${configMaps}/dry`)).code, 404);
  });

  test("__proto__ and constructor are stored like any other key", async () => {
    const text = '{"metadata":{"name":"keys","labels":{"constructor":"c"}},"data":{"__proto__":"a","constructor":"b"}}';
    const { code, raw } = await server.request("POST", configMaps, text);
    assert.equal(code, 201, raw.toString());
    assert.match(raw.toString(), /"labels":\{"constructor":"c"\}/);
    assert.match(raw.toString(), /"data":\{"__proto__":"a","constructor":"b"\}/);
    assert.equal(({} as Record<string, unknown>)["a"], undefined);
  });

  for (const { name, body, type = "application/json", query = "", code, text } of [
    {
      name: "malformed JSON",
      body: '{"metadata":{',
      code: 400,
      text: "the object provided is unrecognized (must be of type ConfigMap)",
    },
    { name: "an empty body", body: "", code: 400, text: "" },
    { name: "a list", body: "[]", code: 400, text: "" },
    { name: "a number", body: "7", code: 400, text: "" },
    {
      name: "an unknown kind",
      body: '{"kind":"Nothing","apiVersion":"v1"}',
      code: 400,
      text: 'no kind "Nothing" is registered for version "v1"',
    },
    {
      name: "an unknown version",
      body: '{"kind":"ConfigMap","apiVersion":"v7"}',
      code: 400,
      text: 'no kind "ConfigMap" is registered for version "v7"',
    },
    {
      name: "another kind",
      body: '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}',
      code: 400,
      text: "cannot be handled as a ConfigMap",
    },
    { name: "a wrong type", body: '{"metadata":{"name":7}}', code: 400, text: "cannot unmarshal number into Go struct field" },
    {
      name: "data that is a list",
      body: '{"metadata":{"name":"a"},"data":[]}',
      code: 400,
      text: "cannot be handled as a ConfigMap",
    },
    {
      name: "another namespace",
      body: '{"metadata":{"name":"a","namespace":"other"}}',
      code: 400,
      text: "the namespace of the provided object does not match the namespace sent on the request",
    },
    { name: "no name", body: "{}", code: 422, text: "name or generateName is required" },
    { name: "a name that is none", body: '{"metadata":{"name":"A_b"}}', code: 422, text: "metadata.name" },
    { name: "malformed YAML", body: "a: [", type: "application/yaml", code: 400, text: "" },
    {
      name: "malformed protobuf",
      body: "k8s\0\u0001\u0002\u0003",
      type: "application/vnd.kubernetes.protobuf",
      code: 400,
      text: "",
    },
    {
      name: "an unknown media type",
      body: "{}",
      type: "text/html",
      code: 415,
      text: "the body of the request was in an unknown format - accepted media types include:",
    },
    { name: "a wrong dryRun", body: "{}", query: "?dryRun=yes", code: 422, text: "dryRun" },
    { name: "a bare dryRun", body: "{}", query: "?dryRun", code: 422, text: "dryRun" },
  ]) {
    test(`refuses ${name} with ${code}`, async () => {
      const answer = await server.request("POST", configMaps + query, body, { "content-type": type });
      assert.equal(answer.code, code, answer.raw.toString());
      assert.equal(answer.body.kind, "Status");
      assert.equal(answer.body.code, code);
      assert.ok(answer.body.message.includes(text), answer.body.message);
    });
  }

  test("refuses a body beyond 3 MiB with 413", async () => {
    const { code } = await server.request("POST", configMaps, aConfigMap("huge", { a: "x".repeat(3 * 1024 * 1024) }));
    assert.equal(code, 413);
  });

  test("refuses 20,000 levels of nesting at once", async () => {
    const longestMs = await longestTurnOf(150, async () => {
      const { code } = await server.request("POST", configMaps, `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`);
      assert.equal(code, 400);
    });
    assert.ok(longestMs < 150, `one turn of the loop took ${longestMs} ms of CPU`);
  });

  test("takes the last of two equal keys, as Go does", async () => {
    const { code, body } = await server.request("POST", configMaps, '{"metadata":{"name":"first","name":"duplicate-keys"}}');
    assert.equal(code, 201);
    assert.equal(body.metadata.name, "duplicate-keys");
  });

  test("a namespaced object cannot be created without its namespace", async () => {
    assert.equal((await server.request("POST", "/api/v1/configmaps", aConfigMap("nowhere"))).code, 405);
  });
});
