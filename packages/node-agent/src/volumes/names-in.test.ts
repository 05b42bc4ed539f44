import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { namesIn, namesNow } from "./names-in.ts";

for (const names of [namesIn, namesNow]) {
  test(`${names.name}: what is no folder has no names, but a folder that cannot be read is an error`, async (t) => {
    const dir = await mkdtemp(join(tmpdir(), "cox-names-"));
    t.after(() => rm(dir, { recursive: true, force: true }));
    for (const name of ["a", "b"]) await mkdir(join(dir, name));
    await writeFile(join(dir, "a/file"), "");
    await symlink("loop", join(dir, "loop"));
    assert.deepEqual((await names(dir)).toSorted(), ["a", "b", "loop"]);
    for (const none of ["b", "none", "a/file", "a/file/below"]) assert.deepEqual(await names(join(dir, none)), [], none);
    await assert.rejects(async () => names(join(dir, "loop")), { code: "ELOOP" });
  });
}
