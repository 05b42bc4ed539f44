import assert from "node:assert/strict";
import { test } from "node:test";
import { parseVmodule } from "./vmodule.ts";

for (const { rules, name, want } of [
  { rules: "reflector=5", name: "reflector", want: 5 },
  { rules: "reflector=5", name: "reflectors", want: undefined },
  { rules: "watch*=3,watcher=7", name: "watcher", want: 3 },
  { rules: "watcher=7, watch*=3", name: "watcher", want: 7 },
  { rules: "watch*=3", name: "watch", want: 3 },
  { rules: "?c=2", name: "gc", want: 2 },
  { rules: "?c=2", name: "c", want: undefined },
  { rules: "*ab=1", name: "aab", want: 1 },
  { rules: "*abc*=1", name: "ababcd", want: 1 },
  { rules: "a*b*c=1", name: "abbbd", want: undefined },
  { rules: ",gc=0,", name: "gc", want: 0 },
  { rules: "reflector=5,gc=1,,watch*=3", name: "gc", want: 1 },
  { rules: "reflector=5,gc=1,,watch*=3", name: "watcher", want: 3 },
])
  test(`--vmodule=${rules} is ${want} for ${name}`, () => assert.equal(parseVmodule(rules)?.(name), want));

test("an empty list is none, and a level has to be a number", () => {
  assert.equal(parseVmodule(" "), undefined);
  for (const text of ["gc", "gc=", "=4", "gc=-1", "gc=x", "gc=1234567", "gc=1,watch"])
    assert.throws(() => parseVmodule(text), /^Error: syntax error/, text);
});

test("a pattern of many stars is matched in linear time", () => {
  assert.equal(parseVmodule(`${"a*".repeat(50)}b=1`)?.("a".repeat(100_000)), undefined);
});
