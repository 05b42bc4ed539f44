import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

const deployments = "/apis/apps/v1/namespaces/default/deployments";
const odd = (name: string) =>
  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"${name}"},"spec":{"foo":1,"paused":true,"paused":true,"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","bar":2}]}}}}`;
const complaints = [
  'unknown field "spec.foo"',
  'duplicate field "spec.paused"',
  'unknown field "spec.template.spec.containers[0].bar"',
];
const warningsOf = (headers: Record<string, string | string[] | undefined>): string => [headers.warning ?? []].flat().join(", ");

describe("with ServerSideFieldValidation", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared(["--feature-gates=ServerSideFieldValidation=true"]);
  });
  after(() => server.stop());

  test("Strict refuses unknown and repeated fields and names them all", async () => {
    const { code, body } = await server.request("POST", `${deployments}?fieldValidation=Strict`, odd("strict"));
    assert.equal(code, 400);
    assert.equal(
      body.message,
      `Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ${complaints.join(", ")}`,
    );
  });

  for (const query of ["", "?fieldValidation=Warn"]) {
    test(`${query === "" ? "no parameter" : "Warn"} warns of each and writes the object`, async () => {
      const { code, headers } = await server.request("POST", deployments + query, odd(`warn${query.length}`));
      assert.equal(code, 201);
      for (const complaint of complaints) {
        assert.ok(warningsOf(headers).includes(`299 - ${JSON.stringify(complaint)}`), warningsOf(headers));
      }
    });
  }

  test("Ignore says nothing", async () => {
    const { code, headers } = await server.request("POST", `${deployments}?fieldValidation=Ignore`, odd("ignore"));
    assert.equal(code, 201);
    assert.equal(headers.warning, undefined);
  });

  test("other values are refused", async () => {
    const { code } = await server.request("POST", `${deployments}?fieldValidation=Loose`, odd("loose"));
    assert.equal(code, 422);
  });

  test("keys that YAML repeats are named with their lines, and unknown fields in the order of their names", async () => {
    const yaml = (name: string): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  name: ${name}\nzoo: 1\nbar: 2\ndata:\n  a: b\n  a: c\n`;
    const headers = { "content-type": "application/yaml" };
    const repeated = ['line 5: key "name" already set in map', 'line 10: key "a" already set in map'];
    const strict = await server.request("POST", `${configMaps}?fieldValidation=Strict`, yaml("yaml"), headers);
    assert.equal(strict.code, 400);
    assert.equal(
      strict.body.message,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n' +
        `  ${repeated.join("\n  ")}, unknown field "bar", unknown field "zoo"`,
    );
    const warned = await server.request("POST", configMaps, yaml("yaml"), headers);
    assert.equal(warned.code, 201);
    assert.deepEqual(warned.body.data, { a: "c" });
    for (const complaint of [...repeated, 'unknown field "bar"'])
      assert.ok(warningsOf(warned.headers).includes(`299 - ${JSON.stringify(complaint)}`), warningsOf(warned.headers));
  });

  test("fields that a JSON patch repeats are named", async () => {
    await server.request("POST", configMaps, aConfigMap("repeated-json"));
    const headers = { "content-type": "application/json-patch+json" };
    const patch = '[{"op":"add","path":"/data","value":{"a":"b","a":"b","a":"c"}}]';
    const at = (mode: string) => server.request("PATCH", `${configMaps}/repeated-json?fieldValidation=${mode}`, patch, headers);
    const strict = await at("Strict");
    assert.equal(strict.code, 422);
    assert.match(
      strict.body.message,
      /strict decoding error: duplicate field "\[0\]\.value\.a"$/,
      "once, though given three times",
    );
    const warned = await at("Warn");
    assert.equal(warned.body.data.a, "c");
    assert.equal(warningsOf(warned.headers), `299 - ${JSON.stringify('duplicate field "[0].value.a"')}`);
    assert.equal((await at("Ignore")).headers.warning, undefined);
  });

  for (const [form, config, line] of [
    ["YAML", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata:\n  a: b\n  a: c\n", 6],
    ["JSON", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"a":"b","a":"c"}}', 1],
  ] as const) {
    test(`keys that an applied configuration repeats are named, in ${form}`, async () => {
      const headers = { "content-type": "application/apply-patch+yaml" };
      const at = (mode: string) =>
        server.request("PATCH", `${configMaps}/applied?fieldManager=m&fieldValidation=${mode}`, config, headers);
      const complaint = `line ${line}: key "a" already set in map`;
      const strict = await at("Strict");
      assert.equal(strict.code, 400);
      assert.equal(
        strict.body.message,
        `error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ${complaint}`,
      );
      const warned = await at("Warn");
      assert.equal(warned.body.data.a, "c");
      assert.equal(warningsOf(warned.headers), `299 - ${JSON.stringify(complaint)}`);
      assert.equal((await at("Ignore")).headers.warning, undefined);
    });
  }

  test("patches in a race with others warn once each", async () => {
    await server.request("POST", configMaps, aConfigMap("raced"));
    const headers = { "content-type": "application/merge-patch+json" };
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        server.request("PATCH", `${configMaps}/raced`, `{"foo":1,"data":{"k${i}":"a","k${i}":"b","k${i}":"c"}}`, headers),
      ),
    );
    for (const [i, answer] of answers.entries()) {
      assert.equal(answer.code, 200);
      const wanted = [`duplicate field "data.k${i}"`, 'unknown field "foo"'];
      assert.equal(warningsOf(answer.headers), wanted.map((text) => `299 - ${JSON.stringify(text)}`).join(", "));
    }
  });

  for (const type of ["merge", "strategic-merge"]) {
    test(`fields that a ${type} patch repeats are named`, async () => {
      const name = `repeated-${type}`;
      await server.request("POST", configMaps, aConfigMap(name));
      const headers = { "content-type": `application/${type}-patch+json` };
      const patch = '{"data":{"a":"b","a":"c"}}';
      const strict = await server.request("PATCH", `${configMaps}/${name}?fieldValidation=Strict`, patch, headers);
      assert.equal(strict.code, 422);
      assert.match(strict.body.message, /strict decoding error: duplicate field "data.a"/);
      const ignored = await server.request("PATCH", `${configMaps}/${name}?fieldValidation=Ignore`, patch, headers);
      assert.equal(ignored.body.data.a, "c");
      assert.equal(ignored.headers.warning, undefined);
    });

    test(`a ${type} patch is checked after it was applied`, async () => {
      const name = `patched-${type}`;
      await server.request("POST", configMaps, aConfigMap(name));
      const headers = { "content-type": `application/${type}-patch+json` };
      const strict = await server.request("PATCH", `${configMaps}/${name}?fieldValidation=Strict`, { foo: 1 }, headers);
      assert.equal(strict.code, 422);
      assert.match(strict.body.message, /strict decoding error: unknown field "foo"/);
      const warned = await server.request("PATCH", `${configMaps}/${name}`, { foo: 1, data: { a: "b" } }, headers);
      assert.equal(warned.code, 200);
      assert.deepEqual(warned.body.data, { a: "b" });
      assert.match(warningsOf(warned.headers), /unknown field/);
    });
  }
});

describe("without the gate", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());

  test("the parameter is ignored", async () => {
    const { code, headers } = await server.request("POST", `${deployments}?fieldValidation=Strict`, odd("off"));
    assert.equal(code, 201);
    assert.equal(headers.warning, undefined);
  });

  test("an integer must be written as one", async () => {
    const { code, body } = await server.request("POST", deployments, odd("float").replace('"replicas":0', '"replicas":1.0'));
    assert.equal(code, 400);
    assert.match(body.message, /cannot unmarshal number 1\.0 into Go struct field DeploymentSpec\.spec\.replicas of type int32/);
  });
});
