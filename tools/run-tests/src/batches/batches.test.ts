import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { alone, batchesOf } from "./batches.ts";

const files = (count: number): string[] => Array.from({ length: count }, (_, at) => `packages/a/src/${at}.test.ts`);

test("files run together in their order, forty at a time", () => {
  const all = files(100);
  assert.deepEqual(
    batchesOf(all, () => 'import { test } from "node:test";'),
    [all.slice(0, 40), all.slice(40, 80), all.slice(80)],
  );
  assert.deepEqual(
    batchesOf([], () => ""),
    [],
  );
});

test("files with servers run ten at a time, before the others", () => {
  const all = files(25);
  const textOf = (file: string): string =>
    file === all[3] ? "" : 'import { startEtcd } from "@coxswain/apimachinery/testing/etcd";';
  const [three = "", ...rest] = [all[3], ...all.slice(0, 3), ...all.slice(4)];
  assert.deepEqual(batchesOf(all, textOf), [rest.slice(0, 10), rest.slice(10, 20), rest.slice(20), [three]]);
});

for (const text of [
  'import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";',
  "const { user } = process.threadCpuUsage();",
  "const now = performance.now();",
  "const { heapUsed } = process.memoryUsage();",
  'process.env["TZ"] = "UTC";',
  'process.on("exit", end);',
  'import { spawn } from "node:child_process";',
  'import { before, mock, test } from "node:test";',
])
  test(`a file with ${text} runs alone`, () => {
    const all = files(3);
    const textOf = (file: string): string =>
      file === all[1]
        ? text
        : `import { Turns } from "@coxswain/apimachinery/process/event-loop/turns"; process.pid; ${"process"}.env["COX_TEST_LONG"]; t.mock.method(it);`;
    assert.deepEqual(batchesOf(all, textOf), [[all[0], all[2]], [all[1]]]);
  });

test("a file of the table runs alone", () => {
  const [known = ""] = Object.keys(alone);
  assert.deepEqual(
    batchesOf(["a", known, "b"], () => ""),
    [["a", "b"], [known]],
  );
});

test("the table names only existing files", () => {
  const tests = globSync("{packages,tools}/*/src/**/*.test.ts", { cwd: join(import.meta.dirname, "../../../..") });
  assert.deepEqual(
    Object.keys(alone).filter((file) => !tests.includes(file)),
    [],
  );
});
