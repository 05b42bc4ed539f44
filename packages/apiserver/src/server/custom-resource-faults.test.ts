/** Malicious CustomResourceDefinitions and custom resources. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { aWidget, define, definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const group = "example.com";
const path = `/apis/${group}/v1/namespaces/default/widgets`;
/** Limit of the event-loop time of a request, with threefold slack. */
const longestStallMs = 300;

test("patterns that take others exponential time take this one none", async (t) => {
  const server = await startTestServer(t);
  const schema = specOf({ text: { type: "string", pattern: "^(a+)+$" }, other: { type: "string", pattern: "(x+x+)+y" } });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const spec = { text: `${"a".repeat(50_000)}!`, other: "x".repeat(50_000) };
  const stall = await longestTurnOf(longestStallMs, async () => {
    const refused = await server.request("POST", path, aWidget(group, "a", { spec }));
    assert.equal(refused.code, 422);
  });
  assert.ok(stall < longestStallMs, `one turn of the loop took ${stall} ms of CPU`);
});

test("patterns that are small in text and large as programs are refused with their definition", async (t) => {
  const server = await startTestServer(t);
  for (const pattern of [`${"(a?){1000}".repeat(10)}a{1000}`, "a?".repeat(50_000)]) {
    const schema = specOf({ text: { type: "string", pattern } });
    const stall = await longestTurnOf(longestStallMs, async () => {
      const { code, body } = await server.request("POST", definitionsPath, widgets(group, [{ name: "v1", schema }]));
      assert.equal(code, 422);
      assert.match(
        body.message,
        /properties\[text\]\.pattern: Invalid value: .*the expression is too large: at most 10000 instructions/,
      );
    });
    assert.ok(stall < longestStallMs, `one turn of the loop took ${stall} ms of CPU`);
  }
});

test("very many values that each have a pattern or alternatives let others have their turns", async (t) => {
  const server = await startTestServer(t);
  const item = { type: "string", pattern: "^(?:[a-z]{1,60}\\.){1,4}[a-z]{1,60}$", anyOf: [{ maxLength: 3 }, { maxLength: 60 }] };
  await define(server, widgets(group, [{ name: "v1", schema: specOf({ list: { type: "array", items: item } }) }]));
  const spec = { list: Array.from({ length: 5_000 }, (_, i) => `abc.abc.abc${"d".repeat(i % 9)}`) };
  let round = 0;
  const stall = await longestTurnOf(longestStallMs, async () => {
    const { code, text } = await server.request("POST", path, aWidget(group, `a${round++}`, { spec }));
    assert.equal(code, 201, text.slice(0, 200));
  });
  assert.ok(stall < longestStallMs, `one turn of the loop took ${stall} ms of CPU`);
});

test("defaults that would make an object very large are refused with it", async (t) => {
  const server = await startTestServer(t);
  const items = { type: "object", properties: { a: { type: "string", default: "x".repeat(10_000) } } };
  await define(server, widgets(group, [{ name: "v1", schema: specOf({ list: { type: "array", items } }) }]));
  const withItems = (count: number): object => aWidget(group, "a", { spec: { list: Array.from({ length: count }, () => ({})) } });
  const refused = await server.request("POST", path, withItems(50_000));
  assert.equal(refused.code, 413, refused.text.slice(0, 200));
  assert.match(refused.body.message, /the defaults of the schema would add more than 3145728 bytes to the object/);
  assert.equal((await server.request("POST", path, withItems(10))).code, 201);
});

test("patterns that no linear engine has are refused with their definition", async (t) => {
  const server = await startTestServer(t);
  const schema = specOf({ text: { type: "string", pattern: "(a)\\1" } });
  const { code, body } = await server.request("POST", definitionsPath, widgets(group, [{ name: "v1", schema }]));
  assert.equal(code, 422);
  assert.match(body.message, /pattern: Invalid value: .*must be a valid regular expression, but isn't/);
});

test("a schema that is deep is served, one that is too deep is refused", async (t) => {
  const server = await startTestServer(t);
  const nested = (levels: number): object =>
    levels === 0 ? { type: "string" } : { type: "object", properties: { next: nested(levels - 1) } };
  const value = (levels: number): unknown => (levels === 0 ? "end" : { next: value(levels - 1) });
  const refused = await server.request("POST", definitionsPath, widgets(group, [{ name: "v1", schema: nested(1_000) }]));
  assert.ok(refused.code >= 400 && refused.code < 500, refused.text.slice(0, 200));
  await define(server, widgets(group, [{ name: "v1", schema: nested(100) }]));
  const made = await server.request("POST", path, { ...aWidget(group, "a"), ...(value(100) as object) });
  assert.equal(made.code, 201, made.text.slice(0, 200));
});

test("alternatives within alternatives are looked at once each", async (t) => {
  const server = await startTestServer(t);
  const nested = (levels: number): object =>
    levels === 0 ? { minimum: 5 } : { anyOf: [nested(levels - 1), nested(levels - 1)] };
  const schema = specOf({ size: { type: "integer", ...nested(8) } });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const stall = await longestTurnOf(longestStallMs, async () => {
    assert.equal((await server.request("POST", path, aWidget(group, "a", { spec: { size: 1 } }))).code, 422);
  });
  assert.ok(stall < longestStallMs, `one turn of the loop took ${stall} ms of CPU`);
});

test("names such as __proto__ are fields like others, in schemas, defaults and objects", async (t) => {
  const server = await startTestServer(t);
  const schema = JSON.parse(
    '{"type":"object","properties":{"spec":{"type":"object","properties":{"__proto__":{"type":"object","properties":{"polluted":{"type":"boolean","default":true}},"default":{}},"constructor":{"type":"string"}}}}}',
  ) as object;
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const spec = JSON.parse('{"__proto__":{"other":1},"constructor":"x","toString":"y"}') as object;
  const made = await server.request("POST", path, aWidget(group, "a", { spec }));
  assert.equal(made.code, 201, made.text);
  assert.match(made.text, /"spec":\{"__proto__":\{"polluted":true\},"constructor":"x"\}/);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  assert.equal((await server.request("GET", `${path}/a`)).text, made.text);
});

test("columns by paths that lead nowhere are empty", async (t) => {
  const server = await startTestServer(t);
  const paths = [".spec.list[5]", ".spec.__proto__.x", '.spec.list[?(@.a=="b")].c', "..x", ".spec.list[0:1]"];
  const additionalPrinterColumns = paths.map((jsonPath, i) => ({ name: `C${i}`, type: "string", jsonPath }));
  await define(server, widgets(group, [{ name: "v1", additionalPrinterColumns }]));
  await server.request("POST", path, aWidget(group, "a", { spec: { list: [1] } }));
  const table = await server.request("GET", path, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
  assert.deepEqual(table.body.rows[0].cells, ["a", null, null, null, null, "1"]);
});

test("of half a million wrong items some are reported, and the others are not waited for", async (t) => {
  const server = await startTestServer(t);
  const strings = { type: "array", items: { type: "string" } };
  const either = { type: "object", anyOf: [{ properties: { list: { items: { maxLength: 1 } } } }, { required: ["list"] }] };
  const schema = specOf({ list: strings, either: { ...either, properties: { list: strings } } });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const wrong = Buffer.from(JSON.stringify(aWidget(group, "a", { spec: { list: new Array(500_000).fill(1) } })));
  const stall = await longestTurnOf(longestStallMs, async () => {
    const { code, body } = await server.request("POST", path, wrong);
    assert.equal(code, 422);
    assert.equal(body.details?.causes?.length, 1000);
    assert.equal(body.details?.causes?.[999]?.field, "spec.list[999]");
  });
  assert.ok(stall < longestStallMs, `one turn of the loop took ${stall} ms of CPU`);
  // An error in one alternative only does not make the object invalid.
  const right = aWidget(group, "b", { spec: { either: { list: new Array(2000).fill("long") } } });
  assert.equal((await server.request("POST", path, right)).code, 201);
});

test("half a megabyte of rules is compiled piece by piece, for the definition and for its first object", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=CustomResourceValidationExpressions=true"]);
  const rules = Array.from({ length: 5_000 }, (_, i) => ({
    rule: `self.a > ${i} && self.s.startsWith('x${i}') || [1, 2, 3].all(x, x > ${i}) || self.a + 1 < 5`,
  }));
  const schema = specOf({ a: { type: "integer" }, s: { type: "string" } }, { "x-kubernetes-validations": rules });
  // The parts that do not yield add up here: text, schema, managed fields.
  const mostMs = 3 * longestStallMs;
  const stall = await longestTurnOf(mostMs, async (round) => {
    const own = `round-${round}.${group}`;
    await define(server, widgets(own, [{ name: "v1", schema }]));
    const made = await server.request("POST", path.replace(group, own), aWidget(own, "a", { spec: { a: 1, s: "y" } }));
    assert.equal(made.code, 201, made.text.slice(0, 300));
  });
  assert.ok(stall < mostMs, `one turn of the loop took ${stall} ms of CPU`);
});
