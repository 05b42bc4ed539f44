import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { Compiler } from "./compiler.ts";
import { type Mutant, mutantsOf, mutatedText } from "./mutants.ts";

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "cox-mutate-test-"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** @returns the mutants of one kind (or all) of a program, and whether each compiles */
function faultsIn(
  text: string,
  kind?: string,
  file = "a.ts",
): { readonly mutants: Mutant[]; readonly texts: string[]; readonly compiling: string[] } {
  const path = join(folder, file);
  const config = join(folder, "tsconfig.json");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  writeFileSync(
    config,
    JSON.stringify({ compilerOptions: { strict: true, target: "esnext", noImplicitReturns: true, types: [] }, files: [file] }),
  );
  const compiler = new Compiler(folder, config);
  try {
    const mutants = mutantsOf(file, compiler.sourceFile(path)).filter((mutant) => kind === undefined || mutant.kind === kind);
    const texts = mutants.map((mutant) => mutatedText(text, mutant));
    return { mutants, texts, compiling: texts.filter((each) => compiler.faultsOf(path, each).length === 0) };
  } finally {
    compiler.close();
  }
}

const squeezed = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
const f = (body: string, result = "void"): string =>
  `declare const xs: number[]; function f(a: number, b: number): ${result} { ${body} }`;

for (const { kind, body, result, want } of [
  { kind: "negate-condition", body: "if (a > b) g();", want: ["if (!(a > b)) g();"] },
  { kind: "negate-condition", body: "return a > b ? a : b;", result: "number", want: ["return !(a > b) ? a : b;"] },
  { kind: "drop-guard", body: "if (a > b) return; g();", want: ["g();"] },
  { kind: "drop-guard", body: "if (a > b) g(); g();", want: [] },
  { kind: "drop-guard", body: "for (;;) { if (a > b) { g(); break; } }", want: ["for (;;) { }"] },
  { kind: "drop-operand", body: "if (a > b && a > 1) g();", want: ["if ((a > b)) g();", "if ((a > 1)) g();"] },
  { kind: "swap-logic", body: "if (a > b || a > 1) g();", want: ["if (((a > b) && (a > 1))) g();"] },
  { kind: "boundary", body: "if (a < b) g();", want: ["if (((a) <= (b))) g();"] },
  { kind: "boundary", body: "if (a >= b) g();", want: ["if (((a) > (b))) g();"] },
  { kind: "drop-statement", body: "g(); a = b;", want: ["a = b;"] },
  { kind: "drop-cleanup", body: "clearTimeout(a); void xs.splice(a);", want: ["void xs.splice(a);", "clearTimeout(a);"] },
  { kind: "drop-assignment", body: "a = b; a++; g();", want: ["a++; g();", "a = b; g();"] },
  { kind: "drop-finally", body: "try { g(); } finally { g(); }", want: ["try { g(); } finally {}"] },
  { kind: "drop-catch", body: "try { g(); } catch { g(); }", want: ["try { g(); } catch {}"] },
  { kind: "drop-catch", body: "try { return a; } catch { return undefined; }", result: "number | undefined", want: [] },
  { kind: "drop-catch", body: "try { g(); } catch { return; } g();", want: ["try { g(); } catch {} g();"] },
  { kind: "return-early", body: "if (a > b) g(); return undefined;", result: "undefined", want: [] },
  { kind: "return-early", body: "g(); a = b;", want: ["g(); return; a = b;"] },
  { kind: "return-early", body: "g(); return a;", result: "number", want: [] },
  {
    kind: "continue-break",
    body: "for (const x of xs) { if (x > a) continue; g(); }",
    want: ["for (const x of xs) { if (x > a) break; g(); }"],
  },
  { kind: "continue-break", body: "switch (a) { case b: break; }", want: [] },
  { kind: "first-only", body: "for (const x of xs) g(x);", want: ["for (const x of [...(xs)].slice(0, 1)) g(x);"] },
  {
    kind: "first-only",
    body: "return xs.every((x) => x > a);",
    result: "boolean",
    want: ["return xs.slice(0, 1).every((x) => x > a);"],
  },
  { kind: "drop-element", body: "return [a, b, 3];", result: "number[]", want: ["return [b, 3];", "return [a, b];"] },
  { kind: "drop-property", body: "return { a, b };", result: "{ a: number; b?: number }", want: ["return { a };"] },
  { kind: "off-by-one", body: "return xs.slice(a);", result: "number[]", want: ["return xs.slice((a) + 1);"] },
  { kind: "off-by-one", body: "return xs.slice(a, b);", result: "number[]", want: ["return xs.slice(a, (b) + 1);"] },
  { kind: "off-by-one", body: "return a - 1;", result: "number", want: ["return (a);"] },
  { kind: "wrong-default", body: "return xs[a] ?? 1;", result: "number", want: ["return xs[a] ?? (1 + 1);"] },
  { kind: "wrong-default", body: "const { length = 2 } = xs; g(length);", want: ["const { length = (2 + 1) } = xs; g(length);"] },
  { kind: "wrong-default", body: "const [x = 2] = xs; g(x);", want: [] },
  { kind: "drop-default", body: "return xs.at(a) ?? 1;", result: "number | undefined", want: ["return (xs.at(a));"] },
  { kind: "swap-arguments", body: "f(a, b);", want: ["f(b, a);"] },
  { kind: "swap-arguments", body: "f(a, a);", want: [] },
  { kind: "drop-call", body: "return xs.filter((x) => x > a);", result: "number[]", want: ["return xs;"] },
] as { kind: string; body: string; result?: string; want: string[] }[]) {
  test(`${kind}: ${body} becomes ${want.join(" or ") || "nothing that compiles"}`, () => {
    const head = `declare function g(...args: unknown[]): void; declare function clearTimeout(x: number): void; `;
    const whole = (inner: string): string => squeezed(head + f(inner, result));
    assert.deepEqual(faultsIn(head + f(body, result), kind).compiling.map(squeezed), want.map(whole));
  });
}

test("an await is removed where the types still fit", () => {
  const text = "declare function g(): Promise<number>; async function f() { await g(); const n: number = await g(); return n; }";
  assert.deepEqual(faultsIn(text, "drop-await").compiling, [text.replace("await g();", "g();")]);
});

for (const { call, want } of [
  { call: "log.info", want: [] },
  { call: "log.fatal", want: ["drop-statement"] }, // it ends the process
])
  test(`a statement of ${call} has the faults [${want}]`, () => {
    const text = `declare const log: Record<"info" | "fatal", (text: string, fields: object) => void>; export function f(a = {}) { ${call}("x", { a, b: [1, 2] }); return a; }`;
    assert.deepEqual(
      faultsIn(text)
        .mutants.filter(({ edit }) => text.slice(edit.start, edit.end).includes(call))
        .map(({ kind }) => kind),
      want,
    );
    assert.deepEqual(faultsIn(text, "drop-property").mutants, []);
  });

test("a condition or a catch that only logs is not mutated", () => {
  const head = "declare const log: Record<'error', (text: string) => void>; declare function g(): boolean; export function f() {";
  assert.deepEqual(faultsIn(`${head} if (g() && g()) log.error("x"); }`).mutants, []);
  assert.deepEqual(
    faultsIn(`${head} try { g(); } catch { if (g()) { log.error("x"); } }; return 1; }`, "drop-catch").mutants,
    [],
  );
  assert.equal(faultsIn(`${head} if (g()) { log.error("x"); g(); } }`, "negate-condition").mutants.length, 1);
});

for (const { file, default: value, want } of [
  { file: "packages/scheduler/src/a.ts", default: 'metadata.name ?? ""', want: 0 },
  { file: "packages/scheduler/src/a.ts", default: 'metadata.namespace ?? ""', want: 2 },
  { file: "packages/scheduler/src/a.ts", default: 'metadata.name ?? "unknown"', want: 2 },
  { file: "packages/apiserver/src/a.ts", default: 'metadata.name ?? ""', want: 2 },
  { file: "packages/scheduler/src/a.ts", default: '{ name = "" }', want: 0 },
  { file: "packages/scheduler/src/a.ts", default: '{ namespace = "" }', want: 1 },
  { file: "packages/apiserver/src/a.ts", default: '{ name = "" }', want: 1 },
])
  test(`${file}: ${value} has ${want} faults, because ${want === 0 ? "a stored object has" : "there may be no"} such field`, () => {
    const head = "export const f = (metadata: { name?: string; namespace?: string }) => {";
    const text = value.startsWith("{") ? `${head} const ${value} = metadata; };` : `${head} const x = ${value}; };`;
    const found = faultsIn(text, undefined, file).mutants.filter(({ kind }) => kind.endsWith("-default"));
    assert.equal(found.length, want);
  });

test("a mutation that leaves an unused name is still tried", () => {
  const text = "declare function g(x: number): void; export function f() { const x = 1; g(x); }";
  assert.equal(faultsIn(text, "drop-statement").compiling.length, 1);
});

test("a fault keeps its id when code moves, and equal code has distinct ids", () => {
  const text = "declare function g(): void; export function f() { g(); g(); }";
  const ids = faultsIn(text, "drop-statement").mutants.map(({ id }) => id);
  assert.equal(new Set(ids).size, 2);
  const moved = text.replace("export", "\n\n/** Moved. */\nexport").replace("{ g();", "{\n    g();");
  assert.deepEqual(
    faultsIn(moved, "drop-statement").mutants.map(({ id }) => id),
    ids,
  );
  assert.notDeepEqual(
    faultsIn(text.replace("f()", "h()"), "drop-statement").mutants.map(({ id }) => id),
    ids,
  );
});
