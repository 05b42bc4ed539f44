import assert from "node:assert/strict";
import { test } from "node:test";
import { aWidget, define, definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const group = "rules.example.com";
const path = `/apis/${group}/v1/namespaces/default/widgets`;
const gate = "--feature-gates=CustomResourceValidationExpressions=true";

test("a custom resource is held against the rules of its schema, where it is made, changed and where its status is", async (t) => {
  const server = await startTestServer(t, [gate]);
  const schema = {
    type: "object",
    "x-kubernetes-validations": [{ rule: "self.metadata.name.startsWith(self.spec.kind)", message: "names tell the kind" }],
    properties: {
      spec: {
        type: "object",
        required: ["kind"],
        properties: {
          kind: { type: "string" },
          min: { type: "integer" },
          max: { type: "integer" },
          "rolling-update": { type: "string" },
          labels: {
            type: "object",
            additionalProperties: { type: "string", "x-kubernetes-validations": [{ rule: "self != ''" }] },
          },
        },
        "x-kubernetes-validations": [
          { rule: "!has(self.min) || !has(self.max) || self.min <= self.max" },
          { rule: "!has(self.rolling__dash__update) || self.rolling__dash__update in ['on', 'off']", message: "on or off" },
        ],
      },
      status: {
        type: "object",
        properties: { used: { type: "integer", "x-kubernetes-validations": [{ rule: "100 / self > 1" }] } },
      },
    },
  };
  await define(server, widgets(group, [{ name: "v1", schema, subresources: { status: {} } }]));
  const refusal = async (fields: object, name = "box-a") => {
    const { code, body } = await server.request("POST", path, aWidget(group, name, fields));
    return code === 201 ? code : body.message;
  };
  assert.equal(
    await refusal({ spec: { kind: "box", min: 3, max: 2 } }),
    `Widget.${group} "box-a" is invalid: spec: Invalid value: map[string]interface {}{"kind":"box", "max":2, "min":3}: failed rule: !has(self.min) || !has(self.max) || self.min <= self.max`,
  );
  assert.equal(
    await refusal({ spec: { kind: "box", "rolling-update": "maybe", labels: { a: "", b: "x" } } }),
    `Widget.${group} "box-a" is invalid: [spec: Invalid value: map[string]interface {}{"kind":"box", "labels":map[string]interface {}{"a":"", "b":"x"}, "rolling-update":"maybe"}: on or off, spec.labels[a]: Invalid value: "": failed rule: self != '']`,
  );
  assert.match(
    await refusal({ spec: { kind: "can" } }),
    /is invalid: <nil>: Invalid value: map\[string\]interface \{\}\{.*: names tell the kind$/,
  );
  assert.equal(await refusal({ spec: { kind: "box", min: 1, max: 2 } }), 201);

  const { body: made } = await server.request("GET", `${path}/box-a`);
  const put = await server.request("PUT", `${path}/box-a`, { ...made, spec: { kind: "box", min: 9, max: 2 } });
  assert.equal(put.code, 422);
  assert.match(put.body.message, /failed rule: !has\(self.min\)/);
  const status = await server.request("PUT", `${path}/box-a/status`, { ...made, status: { used: 0 } });
  assert.equal(
    status.body.message,
    `Widget.${group} "box-a" is invalid: status.used: Invalid value: 0: division by zero evaluating rule: 100 / self > 1`,
  );
});

test("a definition with a rule that cannot be compiled is refused with the position of the error", async (t) => {
  const server = await startTestServer(t, [gate]);
  const faultOf = async (validations: unknown, properties: object = { size: { type: "integer" } }) => {
    const schema = specOf(properties, { "x-kubernetes-validations": validations });
    const { code, body } = await server.request(
      "POST",
      `${definitionsPath}?dryRun=All`,
      widgets(group, [{ name: "v1", schema }]),
    );
    return code === 201
      ? code
      : body.details.causes.map((cause: { field: string; message: string }) => `${cause.field}: ${cause.message}`);
  };
  const at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
  assert.equal(await faultOf([{ rule: "self.size > 1" }]), 201);
  assert.deepEqual(await faultOf([{ rule: "self.size > 1 &&" }]), [
    `${at}.rule: Invalid value: apiextensions.ValidationRule{Rule:"self.size > 1 &&", Message:""}: compilation failed: ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.size > 1 &&\n | ................^`,
  ]);
  assert.deepEqual(await faultOf([{ rule: "self.sise > 1", message: "big" }]), [
    `${at}.rule: Invalid value: apiextensions.ValidationRule{Rule:"self.sise > 1", Message:"big"}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'\n | self.sise > 1\n | ....^`,
  ]);
  assert.deepEqual(await faultOf([{ rule: "self.size + 1" }]), [
    `${at}.rule: Invalid value: apiextensions.ValidationRule{Rule:"self.size + 1", Message:""}: cel expression must evaluate to a bool`,
  ]);
  assert.deepEqual(await faultOf([{ rule: "  " }]), [`${at}.rule: Required value: rule is not specified`]);
  assert.deepEqual(await faultOf([{ rule: "true", message: " " }]), [
    `${at}.message: Invalid value: " ": message must be non-empty if specified`,
  ]);
  assert.deepEqual(await faultOf([{ rule: "true", message: "a\nb" }]), [
    `${at}.message: Invalid value: "a\\nb": message must not contain line breaks`,
  ]);
  assert.deepEqual(await faultOf([{ rule: "true &&\ntrue" }]), [
    `${at}.message: Required value: message must be specified if rule contains line breaks`,
  ]);
  const unseen = { "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{ rule: "not read" }] };
  assert.equal(await faultOf(undefined, { unseen }), 201);
});

test("without the gate the rules of a definition are taken out, and objects are held against none", async (t) => {
  const server = await startTestServer(t);
  const schema = specOf({ size: { type: "integer", "x-kubernetes-validations": [{ rule: "self > 1" }] } });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const { body } = await server.request("GET", `${definitionsPath}/widgets.${group}`);
  assert.deepEqual(body.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size, { type: "integer" });
  assert.equal((await server.request("POST", path, aWidget(group, "a", { spec: { size: 0 } }))).code, 201);
});

test("no rule holds the server: what takes too long is refused", async (t) => {
  const server = await startTestServer(t, [gate]);
  const list = { type: "array", items: { type: "integer" } };
  const rule = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
  const schema = specOf({ list: { ...list, "x-kubernetes-validations": [{ rule }] } });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const many = Array.from({ length: 5000 }, (_, i) => i);
  const { body } = await server.request("POST", path, aWidget(group, "a", { spec: { list: many } }));
  assert.match(
    body.message,
    /: 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self\.all/,
  );
  assert.equal((await server.request("POST", path, aWidget(group, "b", { spec: { list: [1, 2, 3] } }))).code, 201);
});
