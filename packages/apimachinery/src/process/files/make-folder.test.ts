import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { makeFolder, makeFolderSync } from "./make-folder.ts";

const root = mkdtempSync(join(tmpdir(), "cox-files-"));
after(() => rmSync(root, { recursive: true }));

for (const { name, make } of [
  { name: "makeFolder", make: makeFolder },
  { name: "makeFolderSync", make: async (path: string, mode?: number) => makeFolderSync(path, mode) },
]) {
  const base = join(root, name);

  test(`${name} creates all missing folders with their mode`, async () => {
    await make(join(base, "a/b/c"), 0o750);
    for (const path of ["a", "a/b", "a/b/c"]) assert.equal(statSync(join(base, path)).mode & 0o777, 0o750, path);
    await make(join(base, "a/b/c"), 0o700);
    assert.equal(statSync(join(base, "a/b/c")).mode & 0o777, 0o750, "what is there stays as it is");
  });

  test(`${name} follows links, and concurrent calls may create the same folder`, async () => {
    await make(join(base, "real"));
    symlinkSync("real", join(base, "link"));
    await Promise.all(Array.from({ length: 20 }, () => make(join(base, "link/x/y/"))));
    assert.ok(statSync(join(base, "real/x/y")).isDirectory());
  });

  test(`${name} fails with the reason`, async () => {
    await make(base);
    writeFileSync(join(base, "file"), "");
    await assert.rejects(make(join(base, "file")), { code: "EEXIST" });
    await assert.rejects(make(join(base, "file/below")), { code: "EEXIST" });
    // Node's `recursive` never returns here.
    await assert.rejects(make("/proc/nope/below"), { code: "ENOENT" });
  });
}
