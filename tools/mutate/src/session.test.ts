import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Mutant } from "./mutants.ts";
import type { Outcome } from "./report.ts";
import { Session } from "./session.ts";
import { dependentsOf, importGraph } from "./tests-of.ts";

const source = "export const sum = (a: number, b: number): number => a + b;\n";
const imports = 'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { sum } from "./sum.ts";\n';
const texts = {
  "never.test.ts": `${imports}test("fails always", () => assert.equal(sum(1, 1), 3));\n`,
  "weak.test.ts": `${imports}test("notices nothing", () => assert.equal(sum(2, 2), 4));\n`,
  "good.test.ts": `${imports}test("notices", () => assert.equal(sum(2, 3), 5));\n`,
  "child.test.ts": `import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
test("the test notices the fault in a program that it starts", () => {
  const program = 'import { sum } from "./sum.ts"; console.log(sum(2, 3));';
  const env = { ...process.env };
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: import.meta.dirname, env, encoding: "utf8" }).trim(), "5");
});\n`,
  "hangs.test.ts": `${imports}test("hangs with the fault", async () => { while (sum(2, 3) !== 5) await new Promise((resolve) => setTimeout(resolve, 10)); });\n`,
  "subtest.test.ts": `import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { sum } from "./sum.ts";
describe("a suite", () => {
  let a = 0;
  before(() => { a = 2; });
  test("has a test", async (t) => { await t.test("whose second part notices", () => assert.equal(sum(a, 3), 5)); });
});\n`,
  "callback.test.ts": `${imports}test("notices what is thrown later", (_t, done) => { setImmediate(() => { assert.equal(sum(2, 3), 5); done(); }); });\n`,
  "slow.test.ts": `${imports}test("takes a while", async () => { await new Promise((resolve) => setTimeout(resolve, 50)); assert.equal(sum(2, 2), 4); });\n`,
  "own-process.test.ts": `${imports}test("passes only where the file is loaded once", () => { assert.ok(!import.meta.url.includes("?")); assert.equal(sum(2, 3), 5); });\n`,
  "leaves.test.ts": `${imports}test("leaves an error for later", () => { if (sum(2, 3) !== 5) setTimeout(() => { throw new Error("late"); }, 1); });\n`,
} as const;

const graph = importGraph(new Map(Object.entries({ "sum.ts": source, ...texts })));
const dependents = (file: string): string[] => dependentsOf(file, graph);

/**
 * Mutates a + b to a * b in a temporary repository.
 * @param tests in the order in which they are run
 */
async function tried(t: TestContext, tests: readonly (keyof typeof texts)[]): Promise<Outcome & { readonly warnings: string[] }> {
  const root = mkdtempSync(join(tmpdir(), "cox-mutate-session-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries({ "sum.ts": source, ...texts })) writeFileSync(join(root, name), text);
  const warnings: string[] = [];
  const session = new Session({
    root,
    timeoutMs: 5000,
    testsOf: () => tests,
    dependentsOf: dependents,
    warn: (text) => warnings.push(text),
  });
  const start = source.indexOf("+");
  const mutant: Mutant = { id: "x", kind: "k", file: "sum.ts", line: 1, edit: { start, end: start + 1, text: "*" } };
  try {
    return { ...(await session.try(mutant, source)), warnings };
  } finally {
    session.close();
    assert.equal(readFileSync(join(root, "sum.ts"), "utf8"), source);
  }
}

test("a fault is caught by the first test that fails with it", async (t) => {
  const outcome = await tried(t, ["weak.test.ts", "good.test.ts", "child.test.ts"]);
  assert.deepEqual([outcome.result, outcome.by, outcome.tests], ["caught", "good.test.ts", 2]);
  assert.match(outcome.diff, /^-export const sum.*a \+ b;\n\+export const sum.*a \* b;$/m);
});

test("a fault that no test notices survives", async (t) => {
  const outcome = await tried(t, ["weak.test.ts"]);
  assert.deepEqual([outcome.result, outcome.by, outcome.tests], ["survived", undefined, 1]);
});

test("programs that a test starts run with the fault", async (t) => {
  assert.equal((await tried(t, ["child.test.ts"])).result, "caught");
});

test("a test that hangs with the fault counts as having caught it", async (t) => {
  const outcome = await tried(t, ["hangs.test.ts"]);
  assert.deepEqual([outcome.result, outcome.by], ["timed out", "hangs.test.ts"]);
});

test("a test that fails without the fault too is reported, and notices nothing", async (t) => {
  const outcome = await tried(t, ["never.test.ts", "weak.test.ts"]);
  assert.equal(outcome.result, "survived");
  assert.match(outcome.warnings.join(), /^never\.test\.ts failed without any fault and is left out/);
});

for (const name of ["subtest.test.ts", "callback.test.ts", "own-process.test.ts"] as const)
  test(`a fault is noticed by ${name}`, async (t) => {
    assert.equal((await tried(t, [name])).result, "caught");
  });

test("what a run with a fault leaves behind is not counted against the next test", async (t) => {
  assert.equal((await tried(t, ["leaves.test.ts", "slow.test.ts"])).result, "survived");
});

test("a file that no test reaches is reported", async (t) => {
  assert.equal((await tried(t, [])).result, "no tests");
});

test("two faults of one file that are tried at the same time are run separately, and a test is run once without a fault", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "cox-mutate-session-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries({ "sum.ts": source, ...texts })) writeFileSync(join(root, name), text);
  const warnings: string[] = [];
  const testsOf = (): string[] => ["never.test.ts", "good.test.ts"];
  const session = new Session({
    root,
    timeoutMs: 20_000,
    testsOf,
    dependentsOf: dependents,
    warn: (text) => warnings.push(text),
  });
  t.after(() => session.close());
  const start = source.indexOf("+");
  const edited = (id: string, text: string): Mutant => ({
    ...{ id, kind: "k", file: "sum.ts", line: 1 },
    edit: { start, end: start + 1, text },
  });
  const outcomes = await Promise.all([edited("x", "*"), edited("y", " + 0 +")].map((mutant) => session.try(mutant, source)));
  assert.deepEqual(
    outcomes.map(({ result }) => result),
    ["caught", "survived"],
  );
  assert.equal(warnings.length, 1);
});
