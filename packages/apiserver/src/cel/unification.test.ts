import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bool,
  dyn,
  errorType,
  formatType,
  int,
  listOf,
  mapOf,
  nullType,
  parameter,
  string,
  type Type,
  timestamp,
  typeType,
  uint,
  unknown,
} from "./types.ts";
import { mostGeneral, renamed, Substitutions } from "./unification.ts";

const [a, b] = [parameter("A"), parameter("B")];

for (const { name, from, to, want } of [
  { name: "nothing to nothing", from: [], to: [], want: true },
  { name: "more types than parameters", from: [int, int], to: [int], want: false },
  { name: "fewer types than parameters", from: [int], to: [int, int], want: false },
  { name: "the same types", from: [int, string], to: [int, string], want: true },
  { name: "another second type", from: [int, string], to: [int, bool], want: false },
  { name: "null to a well-known type", from: [nullType], to: [timestamp], want: true },
  { name: "null to null", from: [nullType], to: [nullType], want: true },
  { name: "null to a primitive", from: [nullType], to: [int], want: false },
  { name: "anything to dyn", from: [listOf(int)], to: [dyn], want: true },
  { name: "dyn to anything", from: [dyn], to: [mapOf(int, int)], want: true },
  { name: "an error to anything", from: [errorType], to: [int], want: true },
  { name: "an unknown type to itself", from: [unknown], to: [unknown], want: false },
  { name: "lists of different items", from: [listOf(int)], to: [listOf(uint)], want: false },
  { name: "maps of different keys", from: [mapOf(int, bool)], to: [mapOf(string, bool)], want: false },
  { name: "maps of different values", from: [mapOf(int, bool)], to: [mapOf(int, string)], want: false },
  { name: "a list to a map", from: [listOf(int)], to: [mapOf(int, int)], want: false },
  { name: "types of different types", from: [typeType(int)], to: [typeType(string)], want: true },
  { name: "a type to what is none", from: [typeType(int)], to: [int], want: false },
  { name: "a parameter to one of its own lists", from: [listOf(a)], to: [a], want: false },
  { name: "a parameter to a map with it as value", from: [mapOf(int, a)], to: [a], want: false },
  { name: "a parameter to a map with it as key", from: [mapOf(a, int)], to: [a], want: false },
  { name: "two values of one parameter", from: [int, int], to: [a, a], want: true },
  { name: "different values of one parameter", from: [int, string], to: [a, a], want: false },
] as { name: string; from: Type[]; to: Type[]; want: boolean }[]) {
  test(`assigns ${name}: ${want}`, () => assert.equal(new Substitutions().areAssignable(from, to), want));
}

test("an attempt that fails restores what was bound before, and removes what was not", () => {
  const bound = new Substitutions();
  assert.ok(bound.isAssignable(listOf(int), a));
  assert.ok(!bound.areAssignable([listOf(dyn), string, int], [a, b, string]));
  assert.deepEqual(
    [a, b].map((type) => formatType(bound.apply(type, dyn))),
    ["list(int)", "dyn"],
  );
});

test("an attempt that fails keeps the bindings of those before it", () => {
  const bound = new Substitutions();
  assert.ok(bound.areAssignable([int, string], [a, b]));
  assert.ok(!bound.areAssignable([bool], [a]));
  assert.deepEqual(
    [mapOf(a, b), listOf(a), typeType(b)].map((type) => formatType(bound.apply(type))),
    ["map(int, string)", "list(int)", "type(string)"],
  );
});

test("of two compatible types the less specific one is bound", () => {
  for (const [one, other] of [
    [listOf(dyn), listOf(int)],
    [mapOf(dyn, int), mapOf(int, int)],
    [mapOf(int, dyn), mapOf(int, string)],
  ] as const) {
    assert.deepEqual([mostGeneral(one, other), mostGeneral(other, one)], [one, one]);
    const bound = new Substitutions();
    assert.ok(bound.areAssignable([other, one], [a, a]));
    assert.deepEqual(bound.apply(a), one);
  }
});

test("renames parameters at any depth", () => {
  const names = new Map([["A", parameter("A1")]]);
  for (const [type, want] of [
    [a, parameter("A1")],
    [b, b],
    [listOf(a), listOf(parameter("A1"))],
    [mapOf(a, b), mapOf(parameter("A1"), b)],
    [mapOf(b, a), mapOf(b, parameter("A1"))],
    [typeType(a), typeType(parameter("A1"))],
    [typeType(), typeType()],
    [int, int],
  ] as const) {
    assert.deepEqual(renamed(type, names), want);
  }
});
