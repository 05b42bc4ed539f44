import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { keepPaths, mergeSpecs as mergeSteps } from "./merge.ts";
import { readSpec, type SpecDocument } from "./spec-document.ts";

const mergeSpecs = (into: SpecDocument, other: SpecDocument): SpecDocument => atOnce(mergeSteps(into, other));

const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const kindsOf = (...kinds: string[]) => ({
  "x-kubernetes-group-version-kind": kinds.map((kind) => ({ group: "g", version: "v1", kind })),
});

/** A path whose response refers to the definition of that name. */
const path = (name: string) => ({ get: { responses: { "200": { description: "OK", schema: ref(name) } } } });

const spec = (paths: object, definitions: object): SpecDocument => atOnce(readSpec({ paths, definitions }));

function plain({ paths, definitions }: SpecDocument) {
  return JSON.parse(JSON.stringify({ paths: Object.fromEntries(paths), definitions: Object.fromEntries(definitions) }));
}

const own = spec({ "/a": path("A") }, { A: { type: "object", properties: { m: ref("Meta") } }, Meta: { type: "object" } });

for (const { name, into = own, other, want } of [
  {
    name: "new paths and definitions are added",
    other: spec({ "/b": path("B") }, { B: { type: "string" } }),
    want: { paths: ["/a", "/b"], definitions: ["A", "B", "Meta"], answer: "B" },
  },
  {
    name: "the same definition is there once",
    other: spec({ "/b": path("A") }, { A: { type: "object", properties: { m: ref("Meta") } }, Meta: { type: "object" } }),
    want: { paths: ["/a", "/b"], definitions: ["A", "Meta"], answer: "A" },
  },
  {
    name: "another definition of the same name gets a new name",
    other: spec({ "/b": path("A") }, { A: { type: "string" } }),
    want: { paths: ["/a", "/b"], definitions: ["A", "A_v2", "Meta"], answer: "A_v2" },
  },
  {
    name: "a name that was given before is used again for the same",
    into: mergeSpecs(own, spec({ "/c": path("A") }, { A: { type: "string" } })),
    other: spec({ "/b": path("A") }, { A: { type: "string" } }),
    want: { paths: ["/a", "/b", "/c"], definitions: ["A", "A_v2", "Meta"], answer: "A_v2" },
  },
  {
    name: "and not for something else",
    into: mergeSpecs(own, spec({ "/c": path("A") }, { A: { type: "string" } })),
    other: spec({ "/b": path("A") }, { A: { type: "number" } }),
    want: { paths: ["/a", "/b", "/c"], definitions: ["A", "A_v2", "A_v3", "Meta"], answer: "A_v3" },
  },
  {
    name: "nor is a name taken that the other has for itself",
    other: spec({ "/b": path("A") }, { A: { type: "string" }, A_v2: { type: "number" } }),
    want: { paths: ["/a", "/b"], definitions: ["A", "A_v2", "A_v3", "Meta"], answer: "A_v3" },
  },
  {
    name: "a path that is there stays, and definitions that only the other's was for stay away",
    other: spec({ "/a": path("B"), "/b": path("C") }, { B: { type: "string" }, C: { type: "string" } }),
    want: { paths: ["/a", "/b"], definitions: ["A", "C", "Meta"], answer: "C" },
  },
]) {
  test(name, () => {
    const { paths, definitions } = plain(mergeSpecs(into, other));
    assert.deepEqual(Object.keys(paths).sort(), want.paths);
    assert.deepEqual(Object.keys(definitions).sort(), want.definitions);
    assert.deepEqual(paths["/b"].get.responses["200"].schema, ref(want.answer));
    assert.deepEqual(paths["/a"], path("A"));
  });
}

test("nothing is added by a document whose paths are all there", () => {
  const other = spec({ "/a": path("A") }, { A: { type: "string" } });
  assert.equal(mergeSpecs(own, other), own);
});

test("a type of several servers is of the kinds of all of them", () => {
  const into = spec({ "/a": path("Options") }, { Options: { type: "object", ...kindsOf("B", "D") } });
  const other = spec({ "/b": path("Options") }, { Options: { type: "object", ...kindsOf("C", "B") } });
  assert.deepEqual(plain(mergeSpecs(into, other)).definitions.Options, { type: "object", ...kindsOf("B", "C", "D") });
  assert.deepEqual(plain(into).definitions.Options, { type: "object", ...kindsOf("B", "D") }, "what was there is not changed");
});

test("references follow a new name wherever they are, and properties may be called as members are", () => {
  const other = spec(
    { "/b": path("B") },
    {
      B: {
        type: "object",
        properties: { default: ref("Meta"), properties: { type: "object", properties: { enum: ref("Meta") } } },
        additionalProperties: ref("Meta"),
        allOf: [ref("Meta")],
        enum: [ref("Meta")],
      },
      Meta: { type: "string" },
    },
  );
  assert.deepEqual(plain(mergeSpecs(own, other)).definitions.B, {
    type: "object",
    properties: { default: ref("Meta_v2"), properties: { type: "object", properties: { enum: ref("Meta_v2") } } },
    additionalProperties: ref("Meta_v2"),
    allOf: [ref("Meta_v2")],
    enum: [ref("Meta")],
  });
});

test("definitions that no path ever used stay when paths go", () => {
  const all = spec({ "/a": path("A"), "/b": path("B") }, { A: ref("C"), B: ref("C"), C: { type: "string" }, Free: {} });
  const { paths, definitions } = plain(atOnce(keepPaths(all, (one) => one === "/a")));
  assert.deepEqual([Object.keys(paths), Object.keys(definitions)], [["/a"], ["A", "C", "Free"]]);
});

test("names such as __proto__ are names", () => {
  const text = '{"paths": {"/b": {}}, "definitions": {"__proto__": {"properties": {"__proto__": {"type": "string"}}}}}';
  const merged = mergeSpecs(own, atOnce(readSpec(JSON.parse(text))));
  assert.equal(({} as Record<string, unknown>)["type"], undefined);
  assert.deepEqual(Object.keys(merged.definitions.get("__proto__")?.properties ?? {}), ["__proto__"]);
});

test("members of a definition are read by their rules: a single type is no list, items and combined schemas may be several", () => {
  const { definitions } = plain(
    spec(
      {},
      {
        A: {
          ...{ required: ["a", "b"], enum: [1, "a"], additionalProperties: false, "x-own": { default: 1 } },
          allOf: [{ default: 1, type: ["string"] }, { title: "t" }],
          items: [{ type: "string", default: "x" }, { type: ["string", "null"] }],
        },
        B: { additionalProperties: { default: 1, type: "string" }, items: { default: 1 } },
      },
    ),
  );
  assert.deepEqual(definitions, {
    A: {
      ...{ required: ["a", "b"], enum: [1, "a"], additionalProperties: false, "x-own": { default: 1 } },
      allOf: [{ type: "string" }, { title: "t" }],
      items: [{ type: "string" }, { type: ["string", "null"] }],
    },
    B: { additionalProperties: { type: "string" }, items: {} },
  });
});

test("default values are left out of definitions, a property of that name is not", () => {
  const { definitions } = plain(spec({}, { A: { default: {}, properties: { default: { type: "string", default: "x" } } } }));
  assert.deepEqual(definitions.A, { properties: { default: { type: "string" } } });
});

for (const { name, document, message } of [
  { name: "no document", document: [], message: "the document is not an object" },
  { name: "paths that are none", document: { paths: [] }, message: "paths is not an object" },
  { name: "an operation that is none", document: { paths: { "/a": { get: 1 } } }, message: "paths./a.get is not an object" },
  {
    name: "a parameter without a name",
    document: { paths: { "/a": { get: { parameters: [{ name: 5 }] } } } },
    message: "paths./a.get.parameters[0].name is not a string",
  },
  {
    name: "a parameter of items that are unique in a way",
    document: { paths: { "/a": { get: { parameters: [{ name: "a" }, { name: "b", uniqueItems: "yes" }] } } } },
    message: "paths./a.get.parameters[1].uniqueItems is not a boolean",
  },
  {
    name: "a type that is none",
    document: { definitions: { A: { properties: { b: { type: 3 } } } } },
    message: "definitions.A.properties.b.type is not a list",
  },
  {
    name: "a second required member that is none",
    document: { definitions: { A: { required: ["a", 1] } } },
    message: "definitions.A.required[1] is not a string",
  },
  {
    name: "a second type that is none",
    document: { definitions: { A: { type: ["string", 1] } } },
    message: "definitions.A.type[1] is not a string",
  },
  {
    name: "a second schema of several that is none",
    document: { definitions: { A: { allOf: [{}, 1] } } },
    message: "definitions.A.allOf[1] is not an object",
  },
  {
    name: "a second item that is none",
    document: { definitions: { A: { items: [{}, 1] } } },
    message: "definitions.A.items[1] is not an object",
  },
  {
    name: "enumerated values that are none",
    document: { definitions: { A: { enum: {} } } },
    message: "definitions.A.enum is not a list",
  },
  {
    name: "additional properties that are none",
    document: { definitions: { A: { additionalProperties: "no" } } },
    message: "definitions.A.additionalProperties is not an object",
  },
  {
    name: "a second tag that is none",
    document: { paths: { "/a": { get: { tags: ["a", 1] } } } },
    message: "paths./a.get.tags[1] is not a string",
  },
  {
    name: "a number that is none",
    document: { definitions: { A: { items: { maximum: "3" } } } },
    message: "definitions.A.items.maximum is not a number",
  },
]) {
  test(`${name} is refused`, () => {
    assert.throws(() => atOnce(readSpec(document)), { message });
  });
}

test("a definition that is nested without end is refused", () => {
  let schema: object = {};
  for (let i = 0; i < 200; i++) schema = { items: schema };
  assert.throws(() => atOnce(readSpec({ definitions: { A: schema } })), /is nested too deep$/);
});

test("a definition of too many values is refused, many definitions are not", () => {
  const properties = Object.fromEntries(Array.from({ length: 17_000 }, (_, at) => [`p${at}`, { type: "string", title: "x" }]));
  assert.throws(
    () => atOnce(readSpec({ definitions: { A: { properties } } })),
    /^Error: definitions.A has more than 50000 values$/,
  );
  const half = Object.fromEntries(Object.entries(properties).slice(0, 10_000));
  const { definitions } = atOnce(readSpec({ definitions: { A: { properties: half }, B: { properties: half } } }));
  assert.equal(definitions.size, 2);
});
