import assert from "node:assert/strict";
import { test } from "node:test";
import { importGraph, testsOf } from "./tests-of.ts";

const at = (path: string): string => `packages/apiserver/src/${path}`;
const graph = importGraph(
  new Map([
    [at("cel/parser.ts"), 'import { a } from "./lexer.ts";'],
    [at("cel/lexer.ts"), ""],
    [at("cel/lexer.test.ts"), 'import { a } from "./lexer.ts";'],
    [at("cel/lexer-faults.test.ts"), 'import { a } from "./lexer.ts";'],
    [at("cel/all.test.ts"), 'import {\n  a,\n} from "./parser.ts";'],
    [at("cel/other.test.ts"), 'import { b } from "./other.ts";'],
    [at("registry/rules.ts"), 'export * from "../cel/parser.ts";'],
    [at("registry/rules.test.ts"), 'const { a } = await import("./rules.ts");'],
    [at("main.ts"), 'import "./registry/rules.ts";'],
    [at("main.test.ts"), 'spawn(new URL("./main.ts", import.meta.url));'],
    ["tools/simulate/src/simulate.ts", 'import { a } from "@coxswain/apiserver/cel/lexer";'],
    ["tools/simulate/src/simulate.test.ts", 'import { simulate } from "./simulate.ts";'],
    [at("registry/events/table.ts"), ""],
    [at("registry/events/strategy.test.ts"), 'import { a } from "./table.ts";'],
    [at("registry/pods/table.test.ts"), 'import { a } from "../events/table.ts";'],
    [at("registry/kind-tables.test.ts"), 'import { a } from "./far.ts";'],
    [at("registry/conversion.test.ts"), 'import { a } from "./far.ts";'],
    [at("registry/far.ts"), 'import { a } from "./events/table.ts";'],
    [at("thread.ts"), ""],
    [at("thread-starter.ts"), "new URL(`./thread${extname(import.meta.url)}`, import.meta.url);"],
    [at("thread.test.ts"), 'const program = join(import.meta.dirname, "thread-starter.ts");'],
    ["packages/testing/src/index.test.ts", 'import { start } from "@coxswain/testing";'],
    ["packages/testing/src/index.ts", 'export * from "./start.ts";'],
    ["packages/scheduler/src/a.test.ts", 'import { a } from "@coxswain/apiserver/cel/lexer";'],
  ]),
);

test("tests that reach a file are ordered by how likely they test it", () => {
  assert.deepEqual(testsOf(at("cel/lexer.ts"), graph, []), [
    at("cel/lexer.test.ts"),
    at("cel/lexer-faults.test.ts"),
    at("cel/all.test.ts"),
    "packages/scheduler/src/a.test.ts",
    at("registry/rules.test.ts"),
    at("main.test.ts"),
  ]);
});

test("tests of folders above precede nearer ones of others, those with the file's name first", () => {
  assert.deepEqual(
    testsOf(at("registry/events/table.ts"), graph, []),
    ["events/strategy", "kind-tables", "conversion", "pods/table"].map((name) => at(`registry/${name}.test.ts`)),
  );
});

test("tests of the requested folders precede others, also nearer ones", () => {
  assert.deepEqual(testsOf(at("cel/lexer.ts"), graph, [at("registry")]).slice(3), [
    at("registry/rules.test.ts"),
    "packages/scheduler/src/a.test.ts",
    at("main.test.ts"),
  ]);
});

test("tests that run whole clusters are used only for the code that does so", () => {
  assert.deepEqual(testsOf("tools/simulate/src/simulate.ts", graph, []), ["tools/simulate/src/simulate.test.ts"]);
});

test("what a test runs by its path is reached, and what that loads by a URL", () => {
  assert.deepEqual(testsOf(at("thread.ts"), graph, []), [at("thread.test.ts")]);
});

test("the name of a package is its index", () => {
  assert.deepEqual(testsOf("packages/testing/src/index.ts", graph, []), ["packages/testing/src/index.test.ts"]);
});

test("a file that nothing imports has no tests", () => {
  assert.deepEqual(testsOf(at("unknown.ts"), graph, []), []);
});
