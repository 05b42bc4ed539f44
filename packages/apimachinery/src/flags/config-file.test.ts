import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readConfigFile } from "./config-file.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-config-"));
test.after(() => rmSync(folder, { recursive: true }));
const read = (text: string) => {
  const path = join(folder, "config");
  writeFileSync(path, text);
  return () => readConfigFile(path, "Configuration", ["a/v1", "a/v1beta1"]);
};

test("a file of one of the accepted versions is read, as YAML or JSON", () => {
  assert.deepEqual(read("apiVersion: a/v1\nkind: Configuration\nport: 1\n")(), {
    apiVersion: "a/v1",
    kind: "Configuration",
    port: 1,
  });
  assert.deepEqual(read('{"apiVersion":"a/v1beta1","kind":"Configuration"}')(), {
    apiVersion: "a/v1beta1",
    kind: "Configuration",
  });
});

for (const [text, problem] of [
  ["apiVersion: a/v2\nkind: Configuration\n", 'no kind "Configuration" is registered for version "a/v2"'],
  ["apiVersion: a/v1\nkind: Other\n", 'no kind "Other" is registered for version "a/v1"'],
  ["kind: Configuration\n", 'no kind "Configuration" is registered for version ""'],
  ["- 1\n", "it does not contain an object"],
  ["a: [", ""],
] as const)
  test(`${JSON.stringify(text)} is refused, with the file's name`, () => {
    assert.throws(read(text), (err: Error) => err.message.startsWith(`failed to load config file ${folder}/config: ${problem}`));
  });

test("a file that is not there is an error with its name", () => {
  assert.throws(
    () => readConfigFile(join(folder, "none"), "Configuration", []),
    /^Error: failed to load config file .*none: ENOENT/,
  );
});
