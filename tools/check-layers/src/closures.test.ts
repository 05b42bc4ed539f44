import assert from "node:assert/strict";
import { test } from "node:test";
import { closureProblems, largeClosures, mostLines } from "./closures.ts";

const filler = (lines: number): string => "    calls++;\n".repeat(lines);
const named = (before: string, rest: string): string =>
  `${before} {\n  let calls = 0;\n  function add(): void {\n${filler(mostLines)}  }\n${rest}\n}\n`;

const sources = [
  { path: "literal.ts", text: named("export function newA()", "  return { add };") },
  {
    path: "method.ts",
    text: named("export async function newB(): Promise<object>", "  return {\n    run() {\n      add();\n    },\n  };"),
  },
  {
    path: "variable.ts",
    text: named("export const newC = (): object =>", "  const made = { run: () => add() };\n  return made;"),
  },
  { path: "data.ts", text: named("export function readD()", "  add();\n  return { calls };") },
  { path: "none.ts", text: named("export function runE()", "  add();") },
  { path: "short.ts", text: "export function newF() {\n  let calls = 0;\n  return { add: () => void calls++ };\n}\n" },
  {
    path: "parameters.ts",
    text: `export function newH(\n  calls: number,\n): object {\n${"  calls++;\n".repeat(mostLines - 4)}  return { add: () => calls };\n}\n`,
  },
  { path: "class.ts", text: `class G {\n  calls = 0;\n  add(): void {\n    let calls = 0;\n${filler(mostLines)}  }\n}\n` },
];

test("finds only long functions that return an object with methods", () => {
  const found = largeClosures(sources).map(({ path, name, line, lines }) => `${path} ${name} ${line} ${lines}`);
  assert.deepEqual(found, ["literal.ts newA 1 86", "method.ts newB 1 90", "variable.ts newC 1 87", "parameters.ts newH 1 81"]);
});

test("each long function is a problem with its position and length", () => {
  const problems = closureProblems(largeClosures(sources));
  assert.equal(problems.length, 4);
  assert.match(problems[1] ?? "", /^method\.ts:1: newB is a closure of 90 lines/);
});
