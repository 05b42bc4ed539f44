import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileReport } from "../report.ts";
import { type FileRun, type RunOptions, runFile } from "../run-file.ts";
import { runTogether } from "./run-batch.ts";

const root = mkdtempSync(join(tmpdir(), "cox-batches-"));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
/** Runs files with these sources. @returns the files' names, their runs, and why they ran one by one */
async function run(texts: readonly string[], options: Partial<RunOptions> = {}) {
  const names = texts.map((text) => {
    const name = `fixture-${count++}.test.ts`;
    writeFileSync(join(root, name), `import { after, afterEach, before, describe, test } from "node:test";\n${text}\n`);
    return name;
  });
  const limits = { testMs: 60_000, idleMs: 60_000, graceMs: 60_000 };
  const all = { root, namePatterns: [], env: {}, limits, signal: new AbortController().signal, ...options };
  const why: string[] = [];
  const alone: string[] = [];
  const runAlone = (file: string): Promise<FileRun> => {
    alone.push(file);
    return runFile(file, all);
  };
  const runs: FileRun[] = [];
  for await (const each of runTogether(names, { ...all, runAlone, onSeparated: (reason) => why.push(reason) })) runs.push(each);
  return { names, runs, why, alone };
}

const passes = 'test("passes", () => {});';

test("files that pass run in one process and have the results that they have alone", async () => {
  const texts = [
    'globalThis.first = process.pid; test("same name", (t) => t.diagnostic("3 ms")); test("later", { todo: "not written" }, () => { throw new Error("no"); });',
    `test("same name", async (t) => { if (globalThis.first !== process.pid) throw new Error("another process"); await t.test("inner", () => {}); });
     describe("suite", { skip: "no disk" }, () => { test("unseen", () => {}); });
     describe("other", () => { test("one", () => {}); test("two", () => {}); });`,
    'test("found out late", (t) => { t.diagnostic("4 MB"); t.skip("no curl"); });',
  ];
  const { names, runs, why } = await run(texts);
  assert.deepEqual(why, []);
  assert.deepEqual(
    runs.map(({ file, passed }) => ({ file, passed })),
    [1, 4, 0].map((passed, at) => ({ file: names[at], passed })),
  );
  const signal = new AbortController().signal;
  const limits = { testMs: 60_000, idleMs: 60_000, graceMs: 60_000 };
  for (const [at, together] of runs.entries()) {
    // The second file asks for the process of the first.
    const env: Record<string, string> =
      at === 1 ? { NODE_OPTIONS: `--import=data:text/javascript,globalThis.first=process.pid` } : {};
    const alone = await runFile(names[at] as string, { root, namePatterns: [], env, limits, signal });
    assert.deepEqual({ ...together, durationMs: 0 }, { ...alone, durationMs: 0 });
  }
});

test("a file begins when the tests and hooks of the one before have ended, and its tests when it is loaded", async () => {
  const note = (text: string): string => `(globalThis.notes ??= []).push(${JSON.stringify(text)});`;
  const later = "await new Promise((r) => setTimeout(r, 5));";
  const { why, runs } = await run([
    `${note("load 1")} before(() => { ${note("before 1")} }); afterEach(() => { ${note("each 1")} });
     after(async () => { ${later} ${note("after 1")} });
     test("a", async () => { ${later} ${note("a")} }); ${note("loaded 1")}`,
    `${note("load 2")} test("b", () => { ${note("b")} if (late === 1) ${note("late")} }); const late = 1;`,
    'test("c", (t) => t.diagnostic(globalThis.notes.join()));',
  ]);
  assert.deepEqual(why, []);
  assert.deepEqual(
    runs[2]?.figures.map(({ text }) => text),
    ["load 1,loaded 1,before 1,a,each 1,after 1,load 2,b,late"],
  );
});

const afterwards = "new Promise((r) => setTimeout(r, 50))";
for (const { name, text, want, error, limits } of [
  {
    name: "fails",
    text: 'console.log("printed"); test("a", () => { throw new Error("wrong"); });',
    want: /test\.ts fails: a: Error: wrong/,
    error: /wrong/,
  },
  { name: "cannot be loaded", text: 'import "./absent.ts";', want: /test\.ts fails$/, error: /before its tests ran/ },
  { name: "has no tests", text: "", want: /test\.ts has no tests$/, error: /without running a test/ },
  {
    name: "calls process.exit",
    text: `test("a", async () => { await ${afterwards}; process.exit(0); });`,
    want: /exit code 0 during "a", in fixture/,
    error: /exit code 0 during "a"/,
  },
  {
    name: "fails after its tests have ended",
    text: 'test("a", () => { setTimeout(() => { void Promise.reject(new Error("late")); }, 5); });',
    want: /though no test failed\n.*late/s,
    error: /though no test failed\n.*late/s,
  },
  {
    name: "has a hook that fails when its tests have ended",
    text: 'after(() => { throw new Error("left over"); }); test("a", () => {});',
    want: /test\.ts fails$/,
    error: /left over/,
  },
  {
    name: "waits for something that does not happen",
    text: 'test("a", () => new Promise(() => {}));',
    limits: { testMs: 300, idleMs: 60_000, graceMs: 60_000 },
    want: /test\.ts fails: a: test timed out/,
    error: /timed out after 300ms/,
  },
  {
    name: "blocks the event loop",
    text: `test("a", async () => { await ${afterwards}; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); });`,
    limits: { testMs: 1_500, idleMs: 60_000, graceMs: 2_500 },
    want: /stopped after .* during a: nothing ended.*, in fixture/,
    error: /stopped after .* during a: nothing ended/,
  },
  {
    name: "leaves a timer",
    text: 'setInterval(() => {}, 1000); test("a", () => {});',
    limits: { testMs: 60_000, idleMs: 3_000, graceMs: 60_000 },
    want: /the process does not end/,
    error: /the process does not end/,
  },
])
  test(`when a file ${name}, all run alone, and only it has failed`, async () => {
    const { names, runs, why, alone } = await run([passes, text, passes], limits === undefined ? {} : { limits });
    assert.match(why.join(), want);
    assert.deepEqual(alone, names);
    assert.deepEqual(
      runs.map(({ file, failed }) => [file, failed.length]),
      names.map((file, at) => [file, at === 1 ? 1 : 0]),
    );
    assert.match(runs[1]?.failed[0]?.error ?? "", error);
    if (name === "fails") assert.match(fileReport(runs[1] as FileRun), /what it printed:\n {4}\| printed/);
  });

test("a hook may take longer than a process that has ended its tests", async () => {
  const slow = `before(() => new Promise((r) => setTimeout(r, 4000))); ${passes}`;
  const { why, runs } = await run([passes, slow], { limits: { testMs: 60_000, idleMs: 2_000, graceMs: 60_000 } });
  assert.deepEqual([why, runs.length], [[], 2]);
});

test("an interrupted batch runs nothing more", async () => {
  const interrupt = new AbortController();
  const running = run([passes, 'test("a", () => new Promise(() => { setInterval(() => {}, 1000); }));'], {
    signal: interrupt.signal,
  });
  interrupt.abort();
  const { runs, why, alone } = await running;
  assert.deepEqual([runs, why, alone], [[], [], []]);
});

test("one file alone is not a batch", async () => {
  const { names, alone } = await run([passes]);
  assert.deepEqual(alone, names);
});
