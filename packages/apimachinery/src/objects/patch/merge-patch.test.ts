import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../testing/fast-check.ts";
import { applyMergePatch, createMergePatch } from "./merge-patch.ts";

// The table of RFC 7386, appendix A.
for (const [original, patch, want] of [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
] as const) {
  test(`merges ${JSON.stringify(patch)} into ${JSON.stringify(original)}`, () => {
    assert.deepEqual(applyMergePatch(original, patch), want);
  });
}

test("treats __proto__ as an ordinary key", () => {
  const merged = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}')) as object;
  assert.equal(JSON.stringify(merged), '{"__proto__":{"polluted":true}}');
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("makes patches that lead from one document to the other", () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean());
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(leaf, { maxLength: 3 }),
      fc.dictionary(fc.string(), tie("node"), { maxKeys: 4 }),
    ),
  })).node;
  const document = fc.dictionary(fc.string(), tree, { maxKeys: 5 }).map((value) => JSON.parse(JSON.stringify(value)) as object);
  fc.assert(
    fc.property(document, document, (before, after) => {
      assert.deepEqual(applyMergePatch(before, createMergePatch(before, after) ?? {}), after);
    }),
    { numRuns: 300 },
  );
});

test("makes the smallest patch, also when the first fields are equal", () => {
  assert.deepEqual(createMergePatch({ a: 1, b: 2, c: 3 }, { a: 1, b: 3 }), { b: 3, c: null });
  assert.equal(createMergePatch({ a: { b: 1 } }, { a: { b: 1 } }), undefined);
  assert.deepEqual(createMergePatch({ a: 1 }, { none: undefined, a: 2 }), { a: 2 }, "what is undefined is not there");
  assert.deepEqual(createMergePatch({ none: undefined, a: 1, b: 1 }, { a: undefined, b: 2 }), { b: 2, a: null });
  assert.deepEqual(createMergePatch({ none: undefined, a: 1 }, {}), { a: null });
});
