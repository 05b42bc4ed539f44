/** Integers beyond 2^53 in the schema, the columns and the values of custom resources: none of them is lost or ends in an error. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const large = "9007199254740993";
const group = "large.example.com";
const path = `/apis/${group}/v1/namespaces/default/widgets`;

let server: TestServer;
const stops: (() => void | Promise<void>)[] = [];
before(async () => {
  server = await startTestServer({ after: (stop) => stops.push(stop) }, ["--feature-gates=OpenAPIV3=true"]);
  const integer = { type: "integer", format: "int64" };
  const schema = specOf({
    filled: { ...integer, default: "LARGE" },
    chosen: { ...integer, enum: ["LARGE", 1] },
    least: { ...integer, minimum: 1 },
  });
  const additionalPrinterColumns = [{ name: "Filled", type: "integer", jsonPath: ".spec.filled" }];
  const definition = widgets(group, [{ name: "v1", schema, additionalPrinterColumns }]);
  const body = Buffer.from(JSON.stringify(definition).replaceAll('"LARGE"', large));
  const { code, text } = await server.request("POST", definitionsPath, body, { "content-type": "application/json" });
  assert.equal(code, 201, text);
  await waitFor(async () => (await server.request("GET", path)).code === 200);
});
after(async () => {
  for (const stop of stops.reverse()) await stop();
});

const post = (name: string, spec: string) => {
  const body = `{"apiVersion":"${group}/v1","kind":"Widget","metadata":{"name":"${name}"},"spec":${spec}}`;
  return server.request("POST", path, Buffer.from(body), { "content-type": "application/json" });
};

test("a default is filled in exactly", async () => {
  const { code, text } = await post("filled", "{}");
  assert.equal(code, 201, text);
  assert.match(text, new RegExp(`"filled":${large}[,}]`));
});

test("a value outside of the enumeration is refused with the allowed ones, one in it is accepted", async () => {
  const refused = await post("refused", '{"chosen":2}');
  assert.equal(refused.code, 422, refused.text);
  assert.match(refused.body.message, new RegExp(`spec.chosen: Unsupported value: 2: supported values: "${large}", "1"`));
  const taken = await post("taken", `{"chosen":${large}}`);
  assert.equal(taken.code, 201, taken.text);
});

test("several faults of large values are all shown", async () => {
  const { code, body } = await post("two", `{"chosen":${large}0,"least":-${large}}`);
  assert.equal(code, 422);
  assert.equal(body.details.causes.length, 2, body.message);
});

test("a column shows it, in tables of one object and of lists, again and again", async () => {
  const accept = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  for (const url of [`${path}/filled`, path, path]) {
    const { code, text } = await server.request("GET", url, undefined, accept);
    assert.equal(code, 200, text);
    assert.match(text, new RegExp(`"cells":\\["filled",${large}\\]`));
  }
});

for (const [url, accept] of [
  ["/openapi/v2", "application/json"],
  ["/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"],
  [`/openapi/v3/apis/${group}/v1`, "application/json"],
  [`/openapi/v3/apis/${group}/v1`, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"],
] as const) {
  test(`${url} has the schema as ${accept}`, async () => {
    const { code, text } = await waitFor(async () => {
      const answer = await server.request("GET", url, undefined, { accept });
      return answer.text.includes(large) && answer;
    });
    assert.equal(code, 200, text);
  });
}
