import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type LogFileOptions, newFileWriter } from "./log-files.ts";

function setUp(t: TestContext, more: Partial<LogFileOptions>) {
  const directory = mkdtempSync(join(tmpdir(), "cox-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const stderr: string[] = [];
  const options: LogFileOptions = {
    program: "kube-x",
    logtostderr: false,
    alsologtostderr: false,
    stderrthreshold: "ERROR",
    logFile: "",
    logFileMaxSizeMb: 1,
    logDir: directory,
    oneOutput: false,
    skipLogHeaders: true,
    ...more,
  };
  const write = newFileWriter(options, (line) => stderr.push(line));
  const read = (name: string): string => readFileSync(join(directory, name), "utf8");
  return { directory, stderr, write, read };
}

test("writes nothing but stderr by default", (t) => {
  const { directory, stderr, write } = setUp(t, { logtostderr: true });
  write("a\n", "I");
  assert.deepEqual([stderr, readdirSync(directory)], [["a\n"], []]);
});

test("writes a file for each severity, which includes higher ones, and high ones to stderr", (t) => {
  const { stderr, write, read } = setUp(t, {});
  write("info\n", "I");
  write("bad\n", "E");
  assert.equal(read("kube-x.INFO"), "info\nbad\n");
  assert.equal(read("kube-x.WARNING"), "bad\n");
  assert.equal(read("kube-x.ERROR"), "bad\n");
  assert.deepEqual(stderr, ["bad\n"]);
});

test("writes each line once with oneOutput", (t) => {
  const { directory, write, read } = setUp(t, { oneOutput: true });
  write("bad\n", "E");
  assert.equal(read("kube-x.ERROR"), "bad\n");
  assert.ok(!readdirSync(directory).includes("kube-x.INFO"));
});

test("truncates its log file when it is full", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const logFile = join(directory, "all.log");
  const { write } = setUp(t, { logFile, skipLogHeaders: false, alsologtostderr: true });
  write("x".repeat(600 * 1024), "I");
  write("y".repeat(600 * 1024), "I");
  const content = readFileSync(logFile, "utf8");
  assert.match(content, /^Log file created at: /);
  assert.ok(!content.includes("xxx"));
  write("z\n", "I");
  assert.ok(readFileSync(logFile, "utf8").endsWith("yyyz\n"), "the replaced file's size does not count");
});

test("refuses a threshold that is not a severity", (t) => {
  assert.throws(() => setUp(t, { stderrthreshold: "loud" }), /invalid severity/);
});

test("a threshold is a severity's name in any case, or its number", (t) => {
  for (const stderrthreshold of ["warning", "1"]) {
    const { stderr, write } = setUp(t, { stderrthreshold });
    for (const severity of ["I", "W", "E"] as const) write(`${severity}\n`, severity);
    assert.deepEqual(stderr, ["W\n", "E\n"], stderrthreshold);
  }
  const { stderr, write } = setUp(t, { stderrthreshold: "4" });
  write("F\n", "F");
  assert.deepEqual(stderr, [], "beyond all of them");
});

test("a log file that is there is continued, and one without a limit is never replaced", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const logFile = join(directory, "all.log");
  writeFileSync(logFile, "earlier\n");
  const { write } = setUp(t, { logFile, logFileMaxSizeMb: 0 });
  for (let i = 0; i < 3; i++) write(`${i}\n`, "I");
  assert.equal(readFileSync(logFile, "utf8"), "earlier\n0\n1\n2\n");
});
