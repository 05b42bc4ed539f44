import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { billOfMaterials } from "./bill-of-materials.ts";
import { writeChecksums } from "./checksums.ts";

const root = join(import.meta.dirname, "..", "..", "..");

test("the bill of materials names Node and each package with licence and hash", () => {
  const folders = ["@noble/ciphers", "express"].map((name) => join(root, "packages", "apiserver", "node_modules", name));
  const { components } = JSON.parse(
    billOfMaterials(
      root,
      folders.map((folder) => relative(root, folder)),
    ),
  );
  assert.deepEqual(
    components.map(({ name }: { name: string }) => name),
    ["node", "@noble/ciphers", "express"],
  );
  assert.match(components[1].purl, /^pkg:npm\/%40noble\/ciphers@\d+\.\d+\.\d+$/);
  assert.match(components[1].hashes[0].content, /^[0-9a-f]{128}$/);
  assert.deepEqual(components[2].licenses, [{ expression: "MIT" }]);
});

test("a package that is not in a lock file is refused", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-bom-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "unknown", version: "1.0.0" }));
  assert.throws(() => billOfMaterials(root, [relative(root, folder)]), /no hash of unknown@1\.0\.0/);
});

test("sha256sum verifies the checksum files", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-sums-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = ["b.tar", "a.tar.gz"].map((name) => join(folder, name));
  for (const file of files) writeFileSync(file, file);
  const sums = writeChecksums(files);
  assert.equal(dirname(sums), folder);
  assert.deepEqual(globSync("*", { cwd: folder }).sort(), ["SHA256SUMS", "a.tar.gz", "b.tar"]);
  execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: folder });
  writeFileSync(files[0] as string, "changed");
  assert.throws(() => execFileSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: folder, stdio: "pipe" }));
});
