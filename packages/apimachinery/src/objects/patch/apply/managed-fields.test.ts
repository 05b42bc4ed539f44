import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "../../meta/types.ts";
import { emptySet, paths } from "./field-set.ts";
import { capUpdateManagers, decodeManaged, encodeManaged, isReset, withSet } from "./managed-fields.ts";
import { displayPath } from "./path-element.ts";

const entry = (manager: string, field: string, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  manager,
  operation: "Update",
  apiVersion: "v1",
  time: "2026-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1: { [`f:${field}`]: {} },
  ...more,
});
const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;

for (const [broken, message] of [
  [{ operation: "Merge" }, "operation must be `Apply` or `Update`"],
  [{ apiVersion: "" }, "apiVersion must not be empty"],
  [{ fieldsType: "" }, "missing fieldsType in managed fields entry 1"],
  [{ fieldsType: "FieldsV2" }, 'invalid fieldsType "FieldsV2" in managed fields entry 1'],
] as [Partial<ManagedFieldsEntry>, string][]) {
  test(`an entry is refused: ${message}`, () => {
    assert.throws(() => decodeManaged([entry("a", "x"), entry("b", "x", broken)]), { message });
  });
}

test("entries are those of a manager, an operation and a subresource, and updates also of a version", () => {
  const managed = decodeManaged([
    entry("a", "one"),
    entry("a", "two", { apiVersion: "v2" }),
    entry("a", "three", { subresource: "status" }),
    entry("a", "four", { operation: "Apply" }),
    entry("a", "five", { operation: "Apply", apiVersion: "v2" }),
  ]);
  const fields = [...managed.values()].map(({ set }) => paths(set).map(displayPath).join());
  assert.deepEqual(fields, [".one", ".two", ".three", ".five"]);
});

test("entries are written as they were read, applies before updates, the oldest first, then by name, version and subresource", () => {
  const sorted = [
    entry("z", "x", { operation: "Apply", time: at(9) }),
    { operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: { "f:x": {} } } as ManagedFieldsEntry,
    entry("z", "x", { time: at(1) }),
    entry("a", "x", { time: at(2) }),
    entry("b", "x", { time: at(2) }),
    entry("b", "x", { time: at(2), apiVersion: "v2" }),
    entry("b", "x", { time: at(2), apiVersion: "v2", subresource: "status" }),
  ];
  assert.deepEqual(encodeManaged(decodeManaged(sorted.toReversed())), sorted);
  const anew = new Map([...decodeManaged(sorted)].map(([id, one]) => [id, withSet(one, one.set)]));
  assert.deepEqual(encodeManaged(anew), sorted);
  assert.equal(encodeManaged(new Map()), undefined);
});

test("an entry without fields has an empty set", () => {
  const [one] = decodeManaged([entry("a", "x", { fieldsV1: null as never })]).values();
  assert.deepEqual(one?.set, emptySet);
});

/** Names and fields of entries after the oldest were merged. */
function capped(entries: readonly ManagedFieldsEntry[]): string[] {
  const managed = decodeManaged(entries);
  capUpdateManagers(managed);
  return (encodeManaged(managed) ?? []).map(({ manager, apiVersion, time, fieldsV1 }) => {
    const fields = Object.keys(fieldsV1 ?? {}).map((key) => key.slice(2));
    return `${manager} ${apiVersion} ${time?.slice(17, 19)} ${fields.join()}`;
  });
}

const ten = Array.from({ length: 10 }, (_, i) => entry(`m${i}`, `f${i}`, { time: at(i + 1) }));
const nine = ten.slice(1).map((_, i) => `m${i + 1} v1 ${String(i + 2).padStart(2, "0")} f${i + 1}`);

test("ten updates stay as they are, beside any number of applies", () => {
  const applies = Array.from({ length: 5 }, (_, i) => entry(`a${i}`, "x", { operation: "Apply" }));
  assert.equal(capped([...ten, ...applies]).length, 15);
});

test("of eleven the two oldest become one, with the time of the later one", () => {
  assert.deepEqual(capped([...ten, entry("late", "x", { time: at(11) })]), [
    "ancient-changes v1 02 f0,f1",
    ...nine.slice(1),
    "late v1 11 x",
  ]);
});

test("what was merged before takes the next oldest in", () => {
  assert.deepEqual(capped([entry("ancient-changes", "old", { time: at(0) }), ...ten]), ["ancient-changes v1 01 f0,old", ...nine]);
});

test("what was merged before takes the next oldest in also when it is younger than they are", () => {
  const merged = capped([...ten, entry("ancient-changes", "old", { time: at(20) })]);
  assert.deepEqual(merged, ["m0 v1 01 f0", "ancient-changes v1 02 f1,old", ...nine.slice(1)]);
});

test("only updates of the same version are merged, and updates without a time are the oldest", () => {
  const others = [entry("x", "x", { apiVersion: "v2", time: at(0) }), entry("y", "y", { time: undefined as never })];
  assert.deepEqual(capped([...others, ...ten]), ["x v2 00 x", "ancient-changes v1 02 f0,f1,y", ...nine.slice(1)]);
});

for (const [name, entries, want] of [
  ["no list", undefined, false],
  ["null", null, false],
  ["an empty list", [], true],
  ["one empty entry", [{}], true],
  ["one entry of empty fields", [{ manager: "", time: null, fieldsV1: undefined }], true],
  ["one entry with a field", [{ manager: "a" }], false],
  ["two empty entries", [{}, {}], false],
] as [string, ManagedFieldsEntry[] | null | undefined, boolean][]) {
  test(`${name} ${want ? "removes" : "does not remove"} all entries`, () => assert.equal(isReset(entries), want));
}
