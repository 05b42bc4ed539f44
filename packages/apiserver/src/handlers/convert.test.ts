import assert from "node:assert/strict";
import { test } from "node:test";
import { newEntry } from "../storage/entry.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { jsonInSteps, jsonOf, objectOf } from "./convert.ts";
import type { ServedResource } from "./served-resources.ts";

const codec = {
  toJson: (object: object) => JSON.stringify(object),
  fromStored: (bytes: Buffer) => JSON.parse(bytes.toString()),
  fieldsOf: () => ({}),
  memory: unlimitedEntries(),
};
const servedAs = (version: string, isHub: boolean) => {
  const kind = { group: "g.io", version, kind: "Thing" };
  return { isHub, kind, version: { groupVersion: kind, ...kind } } as unknown as ServedResource; // cast: no other part is used
};

test("an entry's JSON in another version is made once, and none for its own version", () => {
  const entry = newEntry(codec as never, "x", 7, { metadata: { name: "a" } } as never);
  const made = (served: ServedResource): number => [...jsonInSteps(entry, served)].length;
  made(servedAs("v1", true));
  assert.equal(entry.hasMemo("json:g.io/v1"), false);
  made(servedAs("v2", false));
  assert.equal(entry.hasMemo("json:g.io/v2"), true);
  const json = jsonOf(entry, servedAs("v2", false));
  made(servedAs("v2", false));
  assert.equal(jsonOf(entry, servedAs("v2", false)), json);
});

test("an entry's object in another version is made once, with its kind, and its own is the stored one", () => {
  const entry = newEntry(codec as never, "x", 7, { metadata: { name: "a" }, spec: { b: 1 } } as never);
  assert.equal(objectOf(entry, servedAs("v1", true)), entry.object());
  const other = objectOf(entry, servedAs("v2", false));
  assert.partialDeepStrictEqual(other, { apiVersion: "g.io/v2", kind: "Thing", metadata: { name: "a" }, spec: { b: 1 } });
  assert.equal(objectOf(entry, servedAs("v2", false)), other);
  assert.notEqual(objectOf(entry, servedAs("v3", false)), other);
  assert.ok(!Object.hasOwn(entry.object(), "apiVersion"), "the stored one is left as it is");
});
