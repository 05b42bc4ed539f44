import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createFolder, deleteFolder, isInTmp } from "./host-path.ts";

const refusal = (path: string) => ({ message: `host_path deleter only supports /tmp/.+ but received provided ${path}` });

test("a folder that was made is deleted with its content, and that it is gone already is no failure", async () => {
  const path = await createFolder();
  assert.match(path, /^\/tmp\/hostpath_pv\/[0-9a-f-]{36}$/);
  mkdirSync(join(path, "content"));
  await deleteFolder(path);
  assert.equal(existsSync(path), false);
  await deleteFolder(path);
  await deleteFolder(join(path, "content"));
});

for (const path of ["/tmp", "/tmp/", "/tmp/../etc", "/tmpx/a", "/var/tmp/a", "tmp/a", "", "/"])
  test(`the path ${JSON.stringify(path)} is refused`, () => assert.rejects(deleteFolder(path), refusal(path)));

test("a path through a symbolic link that leads out of /tmp is refused, the link itself is deleted", async (t) => {
  const [inside, outside] = ["/tmp", "/var/tmp"].map((folder) => mkdtempSync(join(folder, "cox-host-path-")));
  t.after(() => {
    for (const folder of [inside, outside]) rmSync(folder ?? "", { recursive: true });
  });
  const kept = join(outside ?? "", "kept");
  mkdirSync(kept);
  const link = join(inside ?? "", "link");
  symlinkSync(outside ?? "", link);
  await assert.rejects(deleteFolder(join(link, "kept")), refusal(join(link, "kept")));
  await deleteFolder(link);
  assert.deepEqual([existsSync(link), existsSync(kept)], [false, true]);
});

for (const [folder, want] of [
  ["/tmp", true],
  ["/tmp/a", true],
  ["/tmpx", false],
  ["/tmpx/a", false],
  ["/var/tmp", false],
] as const)
  test(`${folder} is ${want ? "" : "not "}in /tmp`, () => assert.equal(isInTmp(folder), want));
