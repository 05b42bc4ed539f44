import assert from "node:assert/strict";
import { test } from "node:test";
import { describeCycle, importCycles } from "./cycles.ts";

const file = (path: string, ...imports: string[]) => ({ path, imports });

test("finds cycles of any length, without files that only lead into one", () => {
  const files = [
    file("a/one.ts", "./two.ts"),
    file("a/two.ts", "../b/three.ts", "node:fs", "@coxswain/apimachinery/objects/meta/types"),
    file("b/three.ts", "../a/one.ts", "./four.ts"),
    file("b/four.ts"),
    file("b/five.ts", "./three.ts"),
    file("c/six.ts", "./seven.ts"),
    file("c/seven.ts", "./six.ts"),
  ];
  assert.deepEqual(importCycles(files), [
    ["a/one.ts", "a/two.ts", "b/three.ts"],
    ["c/seven.ts", "c/six.ts"],
  ]);
  assert.deepEqual(describeCycle(["c/seven.ts", "c/six.ts"], files).split("\n"), [
    "2 files import each other in a cycle:",
    "  c/six.ts imports c/seven.ts",
    "  c/seven.ts imports c/six.ts",
  ]);
});

test("two paths to one file are no cycle", () => {
  const files = [file("a.ts", "./b.ts", "./c.ts"), file("b.ts", "./d.ts"), file("c.ts", "./d.ts"), file("d.ts")];
  assert.deepEqual(importCycles(files), []);
});

test("a cycle that leads to a file which was seen before is found", () => {
  const files = [file("a.ts"), file("b.ts", "./a.ts", "./c.ts"), file("c.ts", "./a.ts", "./b.ts")];
  assert.deepEqual(importCycles(files), [["b.ts", "c.ts"]]);
});
