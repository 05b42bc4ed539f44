import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { count, documentsOf, duration, list, newCommand, port, printTable, refuseBeside, withSetUpFlags } from "./options.ts";

test("lists are separated by commas, and grow with each use", () => {
  assert.deepEqual(list("a, b,,c ,"), ["a", "b", "c"]);
  assert.deepEqual(list("c", ["a", "b"]), ["a", "b", "c"]);
});

for (const [read, good, bad, message] of [
  [
    duration,
    { "0": 0, "0s": 0, "30s": 30_000, "24h0m0s": 86_400_000 },
    ["-1s", "1", "", "1d"],
    "Expected a duration such as 30s, 5m or 24h0m0s.",
  ],
  [port, { "1": 1, "65535": 65_535 }, ["0", "65536", "", "1.5", "1e3", "-1", "000001"], "Expected a port from 1 to 65535."],
  [count, { "1": 1, "999999": 999_999 }, ["0", "01", "1000000", "-1", "1.5", ""], "Expected a whole number of at least 1."],
] as const)
  test(`${read.name} reads its values and refuses others`, () => {
    for (const [text, value] of Object.entries(good)) assert.equal(read(text), value, text);
    for (const text of bad) assert.throws(() => read(text), { code: "commander.invalidArgument", message }, text);
  });

test("flags that are given beside what excludes them are named, others are not", () => {
  refuseBeside("x", { a: undefined });
  assert.throws(() => refuseBeside("--config: write it", { a: undefined, endpoint: "e", b: false, c: "" }), {
    message: "endpoint, --b, --c cannot be combined with --config: write it",
    exitCode: 2,
  });
});

test("the flags of a set-up are empty unless given", () => {
  const command = withSetUpFlags(newCommand("x", "y"));
  command.parse([], { from: "user" });
  assert.deepEqual(command.opts(), { dryRun: false, skipPhases: [], ignorePreflightErrors: [] });
  const given = ["--dry-run", "--config", "f", "--skip-phases", "a,b", "--skip-phases", "c", "--ignore-preflight-errors", "Swap"];
  command.parse(given, { from: "user" });
  assert.deepEqual(command.opts(), {
    dryRun: true,
    config: "f",
    skipPhases: ["a", "b", "c"],
    ignorePreflightErrors: ["Swap"],
  });
});

test("without a file there are no documents; a file that cannot be read is named", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-options-"));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.deepEqual(documentsOf(undefined), {});
  assert.throws(() => documentsOf(folder), { message: new RegExp(`^cannot read ${folder}: EISDIR`), exitCode: 2 });
});

test("columns of a table are as wide as their widest cell", (t) => {
  const lines: string[] = [];
  t.mock.method(console, "log", (line: string) => lines.push(line));
  printTable([
    ["A", "NAME", "B"],
    ["long", "x", "y"],
    ["", "longest", ""],
  ]);
  printTable([]);
  assert.deepEqual(lines, ["A      NAME      B", "long   x         y", "       longest"]);
});
