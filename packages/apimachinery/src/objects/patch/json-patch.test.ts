import assert from "node:assert/strict";
import { test } from "node:test";
import jsonpatch from "fast-json-patch";
import fc from "../../testing/fast-check.ts";
import { StatusError } from "../errors/status-error.ts";
import { applyJsonPatch } from "./json-patch.ts";

const patch = (operations: unknown): string => JSON.stringify(operations);

for (const { name, document, operations, want } of [
  { name: "adds a member", document: { a: 1 }, operations: [{ op: "add", path: "/b", value: [2] }], want: { a: 1, b: [2] } },
  {
    name: "ignores what stands before the path",
    document: { a: 1 },
    operations: [{ op: "add", path: "x/b", value: 2 }],
    want: { a: 1, b: 2 },
  },
  { name: "adds before an element", document: [1, 3], operations: [{ op: "add", path: "/1", value: 2 }], want: [1, 2, 3] },
  { name: "appends with a dash", document: [1], operations: [{ op: "add", path: "/-", value: 2 }], want: [1, 2] },
  {
    name: "counts a negative index from the end",
    document: [1, 2, 3],
    operations: [{ op: "remove", path: "/-1" }],
    want: [1, 2],
  },
  {
    name: "counts a negative index within a path from the end",
    document: { a: [{ x: 1 }, { x: 2 }] },
    operations: [{ op: "replace", path: "/a/-1/x", value: 3 }],
    want: { a: [{ x: 1 }, { x: 3 }] },
  },
  {
    name: "unescapes steps",
    document: { "a/b": { "~": 1 } },
    operations: [{ op: "remove", path: "/a~1b/~0" }],
    want: { "a/b": {} },
  },
  { name: "moves", document: { a: { x: 1 } }, operations: [{ op: "move", from: "/a/x", path: "/y" }], want: { a: {}, y: 1 } },
  { name: "copies", document: { a: [1] }, operations: [{ op: "copy", from: "/a", path: "/b" }], want: { a: [1], b: [1] } },
  { name: "tests a missing member as null", document: {}, operations: [{ op: "test", path: "/a", value: null }], want: {} },
  {
    name: "adds a document in place of another",
    document: { a: 1 },
    operations: [{ op: "add", path: "", value: { b: 2 } }],
    want: { b: 2 },
  },
  {
    name: "tests the whole document",
    document: { a: [1, null] },
    operations: [{ op: "test", path: "", value: { a: [1, null] } }],
    want: { a: [1, null] },
  },
  { name: "adds null when there is no value", document: {}, operations: [{ op: "add", path: "/a" }], want: { a: null } },
  { name: "adds at the end", document: [1, 2], operations: [{ op: "add", path: "/2", value: 3 }], want: [1, 2, 3] },
  {
    name: "adds at the end, counted from it",
    document: [1, 2],
    operations: [{ op: "add", path: "/-1", value: 3 }],
    want: [1, 2, 3],
  },
  {
    name: "adds at the start, counted from the end",
    document: [1, 2],
    operations: [{ op: "add", path: "/-3", value: 0 }],
    want: [0, 1, 2],
  },
  { name: "removes the first, counted from the end", document: [1, 2], operations: [{ op: "remove", path: "/-2" }], want: [2] },
  { name: "replaces an element", document: [1, 2], operations: [{ op: "replace", path: "/1", value: 3 }], want: [1, 3] },
  {
    name: "moves beside a value of a longer name",
    document: { a: 1 },
    operations: [{ op: "move", from: "/a", path: "/ab" }],
    want: { ab: 1 },
  },
  {
    name: "copies large integers",
    document: { a: 1 },
    operations: [
      { op: "copy", from: "/a", path: "/b" },
      { op: "copy", from: "", path: "/c" },
    ],
    want: { a: 1, b: 1, c: { a: 1, b: 1 } },
  },
  {
    name: "replaces the document",
    document: { a: 1 },
    operations: [{ op: "replace", path: "", value: { b: 2 } }],
    want: { b: 2 },
  },
]) {
  test(name, () => assert.deepEqual(applyJsonPatch(document, patch(operations)), want));
}

for (const { name, operations, code } of [
  { name: "refuses what is no list", operations: { op: "add" }, code: 400 },
  { name: "refuses an operation that is no object", operations: ["add"], code: 400 },
  { name: "refuses an unknown operation", operations: [{ op: "insert", path: "/a", value: 1 }], code: 422 },
  { name: "refuses to remove what is not there", operations: [{ op: "remove", path: "/x" }], code: 422 },
  { name: "refuses a path without a slash", operations: [{ op: "remove", path: "a" }], code: 422 },
  { name: "refuses to replace what is not there", operations: [{ op: "replace", path: "/x", value: 1 }], code: 422 },
  { name: "refuses to add below what is not there", operations: [{ op: "add", path: "/x/y", value: 1 }], code: 422 },
  { name: "refuses a failed test", operations: [{ op: "test", path: "/a", value: 2 }], code: 422 },
  ...[
    { op: "add", path: "/list/2" },
    { op: "add", path: "/list/-3" },
    { op: "add", path: "/list/x" },
    { op: "add", path: "/list/0.5" },
    { op: "remove", path: "/list/1" },
    { op: "remove", path: "/list/-2" },
    { op: "remove", path: "/list/-" },
    { op: "replace", path: "/list/1" },
    { op: "replace", path: "/list/-" },
    { op: "replace", path: "/a/b" },
    { op: "add", path: "/a/b" },
    { op: "copy", from: "/x", path: "/y" },
    { op: "move", from: "/x", path: "/y" },
    { op: "copy", path: "/y" },
    { op: "move", from: 1, path: "/y" },
    { op: "add" },
    { path: "/a" },
  ].map((operation) => ({ name: `refuses ${JSON.stringify(operation)}`, operations: [operation], code: 422 })),
  { name: "refuses to move a value into itself", operations: [{ op: "move", from: "/list", path: "/list/0" }], code: 422 },
  { name: "refuses too many operations", operations: Array(10_001).fill({ op: "test", path: "/a", value: 1 }), code: 413 },
]) {
  test(name, () => {
    assert.throws(
      () => applyJsonPatch({ a: 1, list: [1] }, patch(operations)),
      (err: unknown) => err instanceof StatusError && err.code === code,
    );
  });
}

test("refuses a patch that is no JSON", () =>
  assert.throws(
    () => applyJsonPatch({}, "[{"),
    (err: unknown) => err instanceof StatusError && err.code === 400,
  ));

test("takes 10,000 operations, and copies of 3 MiB", () => {
  applyJsonPatch({ a: 1 }, patch(Array(10_000).fill({ op: "test", path: "/a", value: 1 })));
  const copied = (bytes: number): unknown =>
    applyJsonPatch({ a: "x".repeat(bytes - 2) }, patch([{ op: "copy", from: "/a", path: "/b" }]));
  copied(3 * 1024 * 1024);
  assert.throws(() => copied(3 * 1024 * 1024 + 1), { code: 422 });
});

test("refuses to copy more than 3 MiB, however it is doubled", () => {
  const document = { a: ["x".repeat(64 * 1024)] };
  const operations = Array.from({ length: 20 }, () => ({ op: "copy", from: "/a", path: "/a/-" }));
  assert.throws(() => applyJsonPatch(document, patch(operations)), { code: 422 });
});

test("leaves the document as it was", () => {
  const document = { a: { b: [1] } };
  applyJsonPatch(document, patch([{ op: "add", path: "/a/b/-", value: 2 }]));
  assert.deepEqual(document, { a: { b: [1] } });
});

test("treats __proto__ as an ordinary key", () => {
  const patched = applyJsonPatch({}, '[{"op":"add","path":"/__proto__","value":{"polluted":true}}]') as object;
  assert.equal(JSON.stringify(patched), '{"__proto__":{"polluted":true}}');
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("finds the empty structs of a built-in object, as they stand on the wire", () => {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ name: "c" }] } };
  const operations = [{ op: "add", path: "/spec/containers/0/resources/limits", value: { cpu: "1" } }];
  const patched = applyJsonPatch(pod, patch(operations)) as { spec: { containers: { resources: unknown }[] } };
  assert.deepEqual(patched.spec.containers[0]?.resources, { limits: { cpu: "1" } });
});

test("agrees with fast-json-patch on random documents and their differences", () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null));
  const key = fc.string({ minLength: 1, maxLength: 4 }).filter((text) => text !== "__proto__" && text !== "constructor");
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("node"), { maxLength: 4 }),
      fc.dictionary(key, tie("node"), { maxKeys: 4 }),
    ),
  })).node;
  const document = fc.dictionary(key, tree, { maxKeys: 5 });
  fc.assert(
    fc.property(document, document, (before, after) => {
      const from = JSON.parse(JSON.stringify(before)) as object;
      const to = JSON.parse(JSON.stringify(after)) as object;
      const difference = jsonpatch.compare(from, to);
      assert.deepEqual(
        applyJsonPatch(from, patch(difference)),
        jsonpatch.applyPatch(structuredClone(from), difference).newDocument,
      );
    }),
    { numRuns: 300 },
  );
});

test("a patch has 10,000 operations at most", () => {
  const operations = Array.from({ length: 10_000 }, () => ({ op: "test", path: "/a", value: 1 }));
  assert.deepEqual(applyJsonPatch({ a: 1 }, patch(operations)), { a: 1 });
  assert.throws(
    () => applyJsonPatch({ a: 1 }, patch([...operations, operations[0]])),
    (err) => err instanceof StatusError && err.code === 413 && /operations in a JSON patch is 10000, got 10001/.test(err.message),
  );
});

test("copies may have 3 MiB together", () => {
  const document = { a: "x".repeat(3 * 1024 * 1024 - 2) };
  const copy = { op: "copy", from: "/a", path: "/b" };
  assert.equal(Object.keys(applyJsonPatch(document, patch([copy])) as object).length, 2);
  const isOver = (err: unknown): boolean => /exceeding the limit 3145728/.test(String((err as Error).cause));
  assert.throws(() => applyJsonPatch({ a: `${document.a}x` }, patch([copy])), isOver);
});

test("copies count together towards their limit", () => {
  const document = { a: "x".repeat(2 * 1024 * 1024) };
  const copy = (path: string) => ({ op: "copy", from: "/a", path });
  applyJsonPatch(document, patch([copy("/b")]));
  const isOver = (err: unknown): boolean =>
    /the accumulated size increase of copy is 4194308,/.test(String((err as Error).cause));
  assert.throws(() => applyJsonPatch(document, patch([copy("/b"), copy("/c")])), isOver);
});
