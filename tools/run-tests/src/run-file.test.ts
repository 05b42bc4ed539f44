import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { fileReport } from "./report.ts";
import { type FileRun, type RunOptions, runFile } from "./run-file.ts";

const root = mkdtempSync(join(tmpdir(), "cox-fixtures-"));
after(() => rmSync(root, { recursive: true, force: true }));
const patient = { testMs: 60_000, idleMs: 60_000, graceMs: 60_000 };

let count = 0;
/** Runs a test file with this source. */
function run(text: string, options: Partial<RunOptions> = {}): Promise<FileRun> {
  const file = `fixture-${count++}.test.ts`;
  writeFileSync(join(root, file), `import { after, before, describe, test } from "node:test";\n${text}\n`);
  const signal = new AbortController().signal;
  return runFile(file, { root, namePatterns: [], env: {}, limits: patient, signal, ...options });
}
const errors = (result: FileRun): string[] => result.failed.map(({ name, error }) => `${name}: ${error.split("\n", 1)[0]}`);

test("counts passed, failed, skipped and to-do tests, with the reasons", async () => {
  const result = await run(`
    test("passes", () => {});
    test("fails", () => { throw new Error("wrong"); });
    test("without root", { skip: "needs root" }, () => {});
    test("for no reason", { skip: true }, () => {});
    test("found out late", (t) => t.skip("no curl"));
    test("later", { todo: "not written" }, () => { throw new Error("not yet"); });
    test("table", async (t) => { await t.test("one", () => {}); await t.test("two", () => { throw new Error("two is wrong"); }); });
    describe("a suite", () => { test("inside", () => {}); });
    describe("no docker", { skip: "needs docker" }, () => { test("never seen", () => {}); });
  `);
  assert.equal(result.passed, 3);
  assert.deepEqual(errors(result), ["fails: Error: wrong", "two: Error: two is wrong", "table: 1 subtest failed"]);
  assert.deepEqual(result.skipped, [
    { name: "without root", reason: "needs root" },
    { name: "for no reason", reason: "no reason given" },
    { name: "found out late", reason: "no curl" },
    { name: "no docker", reason: "needs docker" },
  ]);
  assert.deepEqual(result.todo, [{ name: "later", reason: "not written" }]);
});

test("keeps what tests report as figures, with the names of the tests, and not Node's own totals", async () => {
  const result = await run(`
    test("outer", async (t) => {
      t.diagnostic("p99 3 ms");
      await t.test("inner", (inner) => inner.diagnostic("4 MB"));
    });
    test("fails", (t) => { t.diagnostic("5 lost"); throw new Error("wrong"); });
  `);
  assert.deepEqual(
    result.figures.map(({ name, text }) => `${name}: ${text}`),
    ["inner: 4 MB", "outer: p99 3 ms", "fails: 5 lost"],
  );
});

test("a file in a separate network sees nothing but loopback, and can listen there", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async () => {
  const result = await run(
    `import { networkInterfaces } from "node:os";
    import { createServer } from "node:http";
    test("alone", async (t) => {
      t.diagnostic(Object.keys(networkInterfaces()).join());
      const server = createServer((_, res) => res.end("here")).listen(0, "127.0.0.1");
      await new Promise((done) => server.once("listening", done));
      t.diagnostic(await (await fetch("http://127.0.0.1:" + server.address().port)).text());
      server.closeAllConnections();
      server.close();
    });`,
    { networkOfItsOwn: true },
  );
  assert.deepEqual([errors(result), result.passed], [[], 1]);
  assert.deepEqual(
    result.figures.map(({ text }) => text),
    ["lo", "here"],
  );
});

test("a file's process has its flags of Node besides the usual ones", async () => {
  const text = 'test("flags", (t) => t.diagnostic(process.execArgv.filter((flag) => /semi|^-C/.test(flag)).join()));';
  const result = await run(text, { nodeFlags: ["--max-semi-space-size=4"] });
  assert.deepEqual(
    result.figures.map(({ text }) => text),
    ["-C,--max-semi-space-size=4"],
  );
});

test("a file that cannot be loaded fails and says why", async () => {
  const result = await run('import { nothing } from "./missing.ts";\nnothing();');
  assert.match(errors(result).join(), /the process ended with exit code 1 before its tests ran/);
  assert.match(fileReport(result), /Cannot find module .*missing\.ts/);
  const syntax = await run("const x: = 1;");
  assert.match(fileReport(syntax), /FAIL.*SyntaxError/s);
});

test("a before hook that fails shows its error, of a file and of a suite", async () => {
  const ofFile = await run('before(() => { throw new Error("no etcd"); }); test("a", () => {});');
  assert.deepEqual(errors(ofFile), ["a: failed running before hook: Error: no etcd"]);
  const ofSuite = await run(
    'describe("s", () => { before(() => { throw new Error("no disk"); }); test("a", () => {}); test("b", () => {}); });',
  );
  assert.deepEqual(errors(ofSuite), [
    "a: not run to its end: what it is part of failed or ended first",
    "b: not run to its end: what it is part of failed or ended first",
    "s: failed running before hook: Error: no disk",
  ]);
});

test("an after hook that fails, and the body of a suite that does, are failures", async () => {
  const hook = await run('after(() => { throw new Error("left over"); }); test("a", () => {});');
  assert.match(errors(hook).join(), /left over/);
  const body = await run('describe("s", () => { throw new Error("no fixture"); }); test("a", () => {});');
  assert.deepEqual([body.passed, errors(body)], [1, ["s: Error: no fixture"]]);
});

test("process.exit in a test is a failure, also with code 0", async () => {
  const zero = await run('test("a", () => {}); test("b", () => process.exit(0)); test("c", () => {});');
  assert.equal(zero.failed.length, 1);
  assert.match(errors(zero).join(), /process\.exit|with exit code 0 during "b"/);
  const late = await run(
    'test("a", () => {}); test("b", async () => { await new Promise((r) => setTimeout(r, 200)); process.exit(0); });',
  );
  assert.match(errors(late).join(), /the process ended with exit code 0 during "b"/);
});

test("a process that is killed, and a file without tests, are failures", async () => {
  const killed = await run(
    'test("a", async () => { await new Promise((r) => setTimeout(r, 200)); process.kill(process.pid, "SIGKILL"); });',
  );
  assert.match(errors(killed).join(), /the process was ended by SIGKILL during "a"/);
  const empty = await run('console.log("nothing here", typeof test);');
  assert.match(errors(empty).join(), /without running a test: the file has none/);
});

test("an error after the tests have ended is a failure that names the test", async () => {
  const result = await run('test("forgets", () => { setTimeout(() => { void Promise.reject(new Error("late")); }, 5); });');
  assert.match(result.failed[0]?.error ?? "", /^the process ended with exit code 1 though no test failed\n.*"forgets".*late/s);
});

test("a test that hangs is ended at its limit, whether or not something keeps the process alive", async () => {
  const limits = { testMs: 300, idleMs: 300, graceMs: 60_000 };
  const idle = await run('test("a", () => new Promise(() => {})); test("b", () => {});', { limits });
  assert.deepEqual([idle.passed, errors(idle)], [1, ["a: test timed out after 300ms"]]);
  const kept = await run('test("a", () => new Promise(() => { setInterval(() => {}, 1000); }));', { limits });
  assert.match(errors(kept).join(), /a: test timed out after 300ms,.*after its last test: the process does not end/);
});

test("a process that does not exit after its tests is stopped with its child processes", async () => {
  const pidFile = join(root, "pid");
  const result = await run(
    `import { spawn } from "node:child_process"; import { writeFileSync } from "node:fs";
     test("a", () => { const child = spawn("sleep", ["1000"]); writeFileSync(${JSON.stringify(pidFile)}, String(child.pid)); });`,
    { limits: { ...patient, idleMs: 300 } },
  );
  assert.equal(result.passed, 1);
  assert.match(errors(result).join(), /after its last test: the process does not end/);
  const pid = readFileSync(pidFile, "utf8");
  await waitFor(() => !existsSync(`/proc/${pid}`) || /^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8")), {
    what: "its child to end",
  });
});

test("a test that blocks the event loop is stopped", async () => {
  const result = await run('test("spins", () => { for (;;); });', { limits: { testMs: 100, idleMs: 60_000, graceMs: 300 } });
  assert.match(errors(result).join(), /stopped after .* s during its start or first test/);
});

test("name patterns choose tests; a file without a match is no failure", async () => {
  const text = 'test("one", () => {}); test("two", () => { throw new Error("two"); });';
  assert.deepEqual(
    [(await run(text, { namePatterns: ["one"] })).passed, (await run(text, { namePatterns: ["^three$"] })).failed],
    [1, []],
  );
  assert.equal((await run(text, { namePatterns: ["/TWO/i", "three"] })).failed.length, 1);
});

test("the end of a file's output is shown when it fails, and not when it passes", async () => {
  const print = 'for (let i = 0; i < 5000; i++) console.log("line", i, "x".repeat(50)); console.error("to stderr");';
  const passing = await run(`test("a", () => { ${print} });`);
  assert.match(fileReport(passing), /^ok {3}fixture-\d+\.test\.ts \(1 passed, 0 failed, \d+\.\d s\)\n$/);
  const failing = fileReport(await run(`test("a", () => { ${print} throw new Error("wrong"); });`));
  assert.match(failing, /^FAIL .*\n {2}FAIL a \(.*\)\n {4}Error: wrong\n/);
  assert.match(failing, /line 4999 x+\n +\| to stderr\n/);
  assert.doesNotMatch(failing, /line 4000/);
});

test("an interrupted run ends the process at once", async () => {
  const interrupt = new AbortController();
  const started = join(root, "started");
  const running = run(
    `import { writeFileSync } from "node:fs"; test("a", async () => { writeFileSync(${JSON.stringify(started)}, ""); setInterval(() => {}, 1000); await new Promise(() => {}); });`,
    { signal: interrupt.signal },
  );
  await waitFor(() => existsSync(started), { what: "the test to begin" });
  interrupt.abort();
  assert.match(errors(await running).join(), /the run was interrupted/);
});
