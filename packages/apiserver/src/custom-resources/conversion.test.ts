import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { SchemaApplication } from "../structural-schema/apply.ts";
import { type Convert, newTranslation, renameOnly } from "./conversion.ts";

const text = (more: object = {}): object => ({ type: "string", ...more });
/** v1 has the fields a and b, of which b has a default; v2, the storage version, has a and c. */
const schemas = new Map(
  Object.entries({
    v1: { type: "object", properties: { a: text(), b: text({ default: "of v1" }) } },
    v2: { type: "object", properties: { a: text(), c: text({ default: "of v2" }) } },
  }).map(([version, schema]) => [version, { schema, prunes: true } as unknown as SchemaApplication]),
);
const translating = (convert: Convert = renameOnly) =>
  newTranslation({ group: "x.example", schemas, version: "v1", storageVersion: "v2", convert, turns: new Turns() });
const anObject = (version: string, fields: object) => ({
  ...{ apiVersion: `x.example/${version}`, kind: "X", metadata: { name: "a", generation: 1 }, ...fields },
});

test("a stored object gets the defaults of the version that it has before it is converted, and is pruned to the other", async () => {
  const seen: unknown[] = [];
  const translation = translating((objects, apiVersion) => {
    seen.push(...structuredClone(objects));
    return renameOnly(objects, apiVersion);
  });
  const [shown] = await translation.show([anObject("v2", { a: "x" })]);
  assert.deepEqual(seen, [anObject("v2", { a: "x", c: "of v2" })]);
  assert.deepEqual(shown, anObject("v1", { a: "x" }));
});

test("an object that is shown as it is stored is that object; others are copies", async () => {
  const stored = [anObject("v1", { b: "x" }), anObject("v1", {}), anObject("v2", { b: "x" })];
  const before = structuredClone(stored);
  const shown = await translating().show(stored);
  assert.deepEqual(
    shown.map((object, i) => object === stored[i]),
    [true, false, false],
  );
  assert.deepEqual(stored, before);
});

test("an object is stored with the fields of the storage version alone", async () => {
  const object = anObject("v1", { a: "x", b: "y", c: "z", d: "unknown" });
  assert.deepEqual(await translating().store(object), anObject("v2", { a: "x", c: "z" }));
  assert.equal(object.apiVersion, "x.example/v1");
});

test("the conversion of a large object ends with its request", async () => {
  let now = 0;
  let asked = 0;
  const translation = newTranslation({
    group: "x.example",
    schemas: new Map(),
    version: "v1",
    storageVersion: "v1",
    convert: (objects) => [...objects],
    turns: new Turns(() => (now += 10)), // each step takes a whole turn
  });
  const object = { metadata: { name: "a" }, spec: { list: Array.from({ length: 50_000 }, (_, i) => `v${i}`) } };
  const gone = {
    throwIfAborted() {
      if (++asked === 3) throw new Error("the client has gone");
    },
  };
  await assert.rejects(async () => translation.store(object, gone), /gone/);
  assert.equal(asked, 3);
  asked = 0;
  await assert.rejects(async () => translation.show([object], gone), /gone/);
  assert.equal(asked, 3);
});
