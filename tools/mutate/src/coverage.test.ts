import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { executedBy, executingFirst, readCoverage } from "./coverage.ts";

const range = (startOffset: number, endOffset: number, count: number) => ({
  ranges: [
    { startOffset, endOffset, count },
    { startOffset: startOffset + 1, endOffset: startOffset + 2, count: 1 - count },
  ],
});
const script = (url: string, ...functions: object[]) => ({ url, functions });

test("the tests that executed the innermost function of a place come first", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-mutate-coverage-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, ...result: object[]) => writeFileSync(join(folder, name), JSON.stringify({ result }));
  const source = "file:///one/packages/a/src/b.ts";
  write(
    "1.json",
    script("file:///one/packages/a/src/near.test.ts", range(0, 10, 1)),
    script(`${source}?run=2`, range(0, 100, 1), range(10, 20, 0), range(30, 40, 1)),
    script("file:///one/packages/a/node_modules/c/packages/a/src/b.ts", range(10, 20, 1)),
    script("node:fs", range(0, 10, 1)),
  );
  write("2.json", script("file:///two/tools/d/src/far.test.ts"), script(source, range(0, 100, 1), range(10, 20, 1)));
  write("3.json", script(source, range(50, 60, 1)));
  writeFileSync(join(folder, "other.txt"), "no report");

  const executed = readCoverage(folder);
  const by = (offset: number) => [...executedBy(executed, "packages/a/src/b.ts", offset)];
  assert.deepEqual(by(10), ["tools/d/src/far.test.ts"]);
  assert.deepEqual(by(19), ["tools/d/src/far.test.ts"]);
  assert.deepEqual(by(35), ["packages/a/src/near.test.ts"]);
  assert.deepEqual(by(20).toSorted(), ["packages/a/src/near.test.ts", "tools/d/src/far.test.ts"]);
  assert.deepEqual(by(55), [], "a program without tests");
  assert.deepEqual([...executedBy(executed, "packages/a/src/unknown.ts", 0)], []);
  assert.deepEqual(executingFirst(["x", "y", "z"], new Set(["z", "y"])), ["y", "z", "x"]);

  rmSync(join(folder, "1.json"));
  assert.deepEqual(readCoverage(folder), executed, "the summary is kept");
});
