import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
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

test("all lines go to stderr as well with alsologtostderr", (t) => {
  const { stderr, write } = setUp(t, { alsologtostderr: true, stderrthreshold: "FATAL" });
  for (const severity of ["I", "W", "E", "F"] as const) write(`${severity}\n`, severity);
  assert.deepEqual(stderr, ["I\n", "W\n", "E\n", "F\n"]);
});

test("a threshold has up to two digits", (t) => {
  const { stderr, write } = setUp(t, { stderrthreshold: "10" });
  write("F\n", "F");
  assert.deepEqual(stderr, []);
  for (const stderrthreshold of ["100", "-1", "1x", ""]) assert.throws(() => setUp(t, { stderrthreshold }), /invalid severity/);
});

test("a file is replaced by the line that makes it reach its limit, counting what was in it before", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const logFile = join(directory, "all.log");
  writeFileSync(logFile, "x".repeat(2 ** 20 - 10));
  const { write } = setUp(t, { logFile });
  write("first\n", "I");
  write("22\n", "I");
  assert.equal(statSync(logFile).size, 2 ** 20 - 1);
  write("3", "I");
  assert.equal(readFileSync(logFile, "utf8"), "3");
});

test("the name of a file tells program, host, user, severity, second and process; the short name is a link to it", (t) => {
  const { directory, write } = setUp(t, { oneOutput: true });
  write("bad\n", "W");
  const file = readlinkSync(join(directory, "kube-x.WARNING"));
  assert.match(file, new RegExp(`^kube-x\\.[^.]+\\..+\\.log\\.WARNING\\.\\d{8}-\\d{6}\\.${process.pid}$`));
  assert.deepEqual(readdirSync(directory).sort(), ["kube-x.WARNING", file].sort());
});
