import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { nodeFlags } from "@coxswain/apimachinery/testing/node-flags";
import { refusalSites } from "../testing/refusal-sites.ts";

const packages = join(import.meta.dirname, "../../..");
const folders = ["apiserver/src/registry", "apimachinery/src/objects/validation"];
const recorder = join(packages, "apiserver/src/testing/record-refusals.ts");
/** Excluded: their rules depend on stored objects, so their tests need a server. */
const needServers = ["core/services/cluster-ip.ts", "core/services/node-port.ts", "generic/store.ts"];

/** Excluded: they measure CPU time, which depends on what was compiled and optimized for other tests of the same process. */
const measureTime = [
  "validation/pattern.test.ts",
  "registry/paired-lists.test.ts",
  "registry/repeated-fields-turns.test.ts",
  "registry/validation-turns.test.ts",
];

const files = folders.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: packages })).map((file) => join(packages, file));
const isTest = (file: string): boolean => file.endsWith(".test.ts");
const text = (file: string): string => readFileSync(file, "utf8");

test("every rule has a table with a case that it refuses", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-rules-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const recorded = join(folder, "recorded");
  const quick = files.filter(
    (file) =>
      isTest(file) &&
      file !== import.meta.filename &&
      !measureTime.some((name) => file.endsWith(name)) &&
      !/start-test-server|testing\/etcd|fast-check/.test(text(file)),
  );
  // With NODE_TEST_CONTEXT set, a nested test runner would not run any tests.
  const { NODE_TEST_CONTEXT: _outer, ...env } = process.env;
  await promisify(execFile)(
    process.execPath,
    [...nodeFlags, "--import", recorder, "--test", "--test-isolation=none", "--test-reporter=spec", ...quick],
    { cwd: join(packages, ".."), env: { ...env, RECORD_REFUSALS_TO: recorded }, maxBuffer: 1e8 },
  ).catch((err: { stdout?: string }) =>
    assert.fail(`one of them fails: ${err.stdout?.split("failing tests:").at(-1)?.slice(0, 3000)}`),
  );
  const met = new Set(text(recorded).split("\n"));
  const sources = files.filter((file) => !isTest(file) && !needServers.some((path) => file.endsWith(path)));
  const all = sources.flatMap((file) => refusalSites(text(file)).map((place) => `${file}:${place}`));
  assert.ok(all.length > 500, `only ${all.length} rules found`);
  assert.deepEqual(
    all.filter((site) => !met.has(site)),
    [],
  );
});
