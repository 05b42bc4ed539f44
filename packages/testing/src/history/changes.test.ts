import assert from "node:assert/strict";
import { test } from "node:test";
import { changesBetween } from "./changes.ts";

for (const { name, before, after, want } of [
  {
    name: "a field that changed, one that came, one that went",
    before: { spec: { replicas: 1, paused: true } },
    after: { spec: { replicas: 2, minReadySeconds: 5 } },
    want: ["spec.replicas: 1 → 2", "spec.paused: true → absent", "spec.minReadySeconds: absent → 5"],
  },
  {
    name: "items of lists by what names them, wherever they stand",
    before: {
      c: [
        { type: "Ready", status: "False" },
        { type: "Other", status: "x" },
      ],
    },
    after: {
      c: [
        { type: "Other", status: "x" },
        { type: "Ready", status: "True" },
      ],
    },
    want: ['c[Ready].status: "False" → "True"'],
  },
  { name: "items without a name by their place", before: { a: [1, 2] }, after: { a: [1, 3] }, want: ["a[1]: 2 → 3"] },
  {
    name: "fields that every write changes are omitted",
    before: { metadata: { resourceVersion: "1", managedFields: [], name: "a" } },
    after: { metadata: { resourceVersion: "2", managedFields: [{}], name: "b" } },
    want: ['metadata.name: "a" → "b"'],
  },
]) {
  test(name, () => assert.deepEqual(changesBetween(before, after), want));
}

for (const field of ["type", "name", "uid", "key", "ip"]) {
  test(`items of lists are told apart by their ${field}`, () => {
    const [a, b] = [
      { [field]: "a", x: 1 },
      { [field]: "b", x: 1 },
    ];
    assert.deepEqual(changesBetween({ l: [a, b] }, { l: [{ ...b, x: 2 }] }), [
      `l[a]: ${JSON.stringify(a)} → absent`,
      "l[b].x: 1 → 2",
    ]);
  });
}

test("items are told apart by their place when one of them lacks the name, and a list is no object", () => {
  assert.deepEqual(changesBetween({ l: [{ name: "a" }, { x: 1 }] }, { l: [{ name: "b" }, { x: 1 }] }), ['l[0].name: "a" → "b"']);
  assert.deepEqual(changesBetween({ l: [] }, { l: {} }), ["l: [] → {}"]);
  assert.deepEqual(changesBetween({ l: null }, { l: {} }), ["l: null → {}"]);
  assert.deepEqual(changesBetween({ metadata: { generation: 1 } }, { metadata: { generation: 2 } }), []);
});

test("twelve changes are all told", () => {
  const twelve = changesBetween({}, Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`f${i}`, i])));
  assert.deepEqual([twelve.length, twelve.at(-1)], [12, "f11: absent → 11"]);
});

test("long lists of changes and long values are cut", () => {
  const many = changesBetween({}, Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, i])));
  assert.deepEqual([many.length, many.at(-1)], [13, "… and 8 more"]);
  const [long = ""] = changesBetween({ a: "" }, { a: "x".repeat(1000) });
  assert.ok(long.length < 150, long);
});
