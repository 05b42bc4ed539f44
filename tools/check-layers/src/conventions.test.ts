import assert from "node:assert/strict";
import { test } from "node:test";
import { conventionProblems, mostFileLines } from "./conventions.ts";

const ignore = "biome-ignore";

for (const { name, path = "packages/a/src/a.ts", text, want } of [
  { name: "is… with a list", text: "export function isLabel(value: string): string[] {\n", want: [/isLabel returns string\[\]/] },
  { name: "is… with a boolean", text: "export const isA = (value: string): boolean => true;\n", want: [] },
  { name: "a type guard", text: "function isB(value: unknown): value is string {\n", want: [] },
  { name: "a suppression without a reason", text: `// ${ignore} lint/x/y:\n`, want: [/has no reason/] },
  { name: "a suppression with one", text: `// ${ignore} lint/x/y: the table holds every type\n`, want: [] },
  { name: "a suppression with a word of two letters", text: `// ${ignore} lint/x/y: ok\n`, want: [/has no reason/] },
  { name: "a file at the limit", text: "x\n".repeat(mostFileLines), want: [] },
  { name: "a file beyond it", text: "x\n".repeat(mostFileLines + 1), want: [/has 601 lines/] },
  { name: "a promise of a boolean", text: "async function isC(): Promise<boolean> {\n", want: [] },
  { name: "a long test", path: "packages/a/src/a.test.ts", text: "x\n".repeat(700), want: [] },
  ...[
    'import http from "node:http";\n',
    'import { type Server, createServer } from "node:http";\n',
    'import * as http from "node:http";\n',
  ].map((text) => ({
    ...{ name: text.trim(), path: "packages/apiserver/src/a.ts", text, want: [/imports node:http/] },
  })),
  ...[
    'import type { Server } from "node:http";\n',
    'import { type Server } from "node:http";\n',
    'import type http from "node:http";\n',
  ].map((text) => ({
    ...{ name: text.trim(), path: "packages/apiserver/src/a.ts", text, want: [] },
  })),
  ...[
    { name: "a program's parts for tests", path: "packages/apimachinery/src/testing/a.ts", want: [] },
    { name: "clusters in a test's process", path: "packages/testing/src/a.ts", want: [/imports node:http/] },
    { name: "their parts for tests", path: "packages/testing/src/testing/a.ts", want: [] },
  ].map((row) => ({ ...row, text: 'import http from "node:http";\n' })),
  ...[
    { name: "a yield of its own", path: "packages/apiserver/src/a.ts", want: [/yields by setImmediate/] },
    { name: "the event loop's own", path: "packages/apimachinery/src/process/event-loop/a.ts", want: [] },
  ].map((row) => ({ ...row, text: "await new Promise((resolve) => void setImmediate(resolve));\n" })),
  { name: "a table", path: "packages/apimachinery/src/objects/schema/kinds/x.ts", text: "x\n".repeat(700), want: [] },
]) {
  test(`conventions: ${name}`, () => {
    const found = conventionProblems([{ path, text }]);
    assert.equal(found.length, want.length, found.join("\n"));
    for (const [i, pattern] of want.entries()) assert.match(found[i] ?? "", pattern);
  });
}
