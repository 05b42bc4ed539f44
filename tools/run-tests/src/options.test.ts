import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions, selectTests, UsageError } from "./options.ts";

test("flags and paths come in any order", () => {
  assert.deepEqual(parseOptions(["a", "--long", "--test-name-pattern", "x y", "b", "--test-name-pattern=/z/i"]), {
    long: true,
    paths: ["a", "b"],
    namePatterns: ["x y", "/z/i"],
  });
  for (const args of [["--hours", "1.5"], ["--hours=1.5"]])
    assert.deepEqual(parseOptions([...args, "--long"]), { long: true, hours: 1.5, paths: [], namePatterns: [] });
  assert.equal(parseOptions(["a", "--help", "--unknown"]), "help");
  for (const hours of [0.1, 48])
    assert.deepEqual(parseOptions(["--long", `--hours=${hours}`]), { long: true, hours, paths: [], namePatterns: [] });
  assert.equal(parseOptions(["-h"]), "help");
});

for (const { args, message } of [
  { args: ["--lnog"], message: "unknown flag --lnog" },
  { args: ["--hours", "2"], message: "--hours needs --long" },
  { args: ["--long", "--hours"], message: /^--hours needs a number/ },
  { args: ["--long", "--hours=0"], message: /^--hours needs a number/ },
  { args: ["--long", "--hours=48.1"], message: /^--hours needs a number/ },
  { args: ["--long", "--hours=-1"], message: /^--hours needs a number/ },
  { args: ["--test-name-pattern="], message: "--test-name-pattern needs a regular expression" },
  { args: ["--test-name-pattern", "/a/xyz"], message: /^--test-name-pattern: Invalid/ },
  { args: ["--long", "--hours", "two"], message: /^--hours needs a number/ },
  { args: ["-x", "a"], message: "unknown flag -x" },
  { args: ["--long=yes"], message: "--long takes no value" },
  { args: ["a", "--test-name-pattern"], message: "--test-name-pattern needs a regular expression" },
  { args: ["--test-name-pattern=("], message: /^--test-name-pattern: Invalid regular expression/ },
])
  test(`${args.join(" ")} is refused`, () => {
    assert.throws(() => parseOptions(args), { name: "Error", message });
    assert.throws(() => parseOptions(args), UsageError);
  });

const tests = ["e2e/a.test.ts", "packages/x/src/a.test.ts", "packages/x/src/b/c.test.ts", "packages/xy/src/a.test.ts"];

for (const { paths, want } of [
  { paths: [], want: [0, 1, 2, 3] },
  { paths: ["."], want: [0, 1, 2, 3] },
  { paths: ["packages/x"], want: [1, 2] },
  { paths: ["packages/x/src/b/c.test.ts", "e2e"], want: [0, 2] },
])
  test(`paths ${JSON.stringify(paths)} mean the files below them`, () => {
    assert.deepEqual(
      selectTests(tests, paths),
      want.map((at) => tests[at]),
    );
  });

test("a path without tests is refused, also beside one that has some", () => {
  for (const path of ["packages/z", "packages/x/src/a.ts", "../elsewhere"])
    assert.throws(
      () => selectTests(tests, ["e2e", path]),
      (err) => {
        assert.ok(err instanceof UsageError);
        assert.ok(err.message.startsWith(`${path}: no test file there`), err.message);
        return true;
      },
    );
});
