import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { needsRoot } from "../testing/namespaces.ts";
import { openFolders } from "./folders.ts";

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-volumes-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("makes a folder where every user may write, behind one that is closed", async (t) => {
  const root = join(aFolder(t), "a", "volumes");
  const folders = await openFolders(root);
  const path = await folders.create("pvc-1");
  assert.equal(statSync(path).mode & 0o7777, 0o777);
  assert.equal(statSync(root).mode & 0o7777, 0o700);
  writeFileSync(join(path, "data"), "kept");
  await folders.create("pvc-1");
  assert.deepEqual(readdirSync(path), ["data"]);
});

test("does not take a link or a file for a volume", async (t) => {
  const root = aFolder(t);
  const folders = await openFolders(root);
  symlinkSync("/etc", join(root, "pvc-link"));
  writeFileSync(join(root, "pvc-file"), "");
  await assert.rejects(folders.create("pvc-link"), { code: "EEXIST" });
  await assert.rejects(folders.create("pvc-file"), { code: "EEXIST" });
});

test("deletes links and not what they lead to", async (t) => {
  const outside = aFolder(t);
  mkdirSync(join(outside, "kept"));
  writeFileSync(join(outside, "kept", "file"), "kept");
  const folders = await openFolders(aFolder(t));
  const path = await folders.create("pvc-1");
  symlinkSync(outside, join(path, "absolute"));
  symlinkSync(`../../${outside}`, join(path, "relative"));
  mkdirSync(join(path, "-rf"));
  writeFileSync(join(path, "-rf", "a\nb"), "");
  await folders.remove("pvc-1");
  assert.equal(existsSync(path), false);
  assert.equal(existsSync(join(outside, "kept", "file")), true);
  symlinkSync(outside, join(folders.root, "pvc-2"));
  await folders.remove("pvc-2");
  await folders.remove("pvc-2");
  assert.equal(existsSync(join(outside, "kept", "file")), true);
});

for (const name of ["", ".", "..", "../etc", "a/b", ".hidden"]) {
  test(`refuses the name ${JSON.stringify(name)}`, async (t) => {
    const folders = await openFolders(aFolder(t));
    await assert.rejects(folders.create(name), /is not the name of a volume/);
    await assert.rejects(folders.remove(name), /is not the name of a volume/);
  });
}

test("refuses a root folder where others may write, and resolves one that is a link", async (t) => {
  const root = aFolder(t);
  chmodSync(root, 0o777);
  await assert.rejects(openFolders(root), /no one else may write there/);
  chmodSync(root, 0o720);
  await assert.rejects(openFolders(root), /no one else may write there/);
  chmodSync(root, 0o755);
  const link = join(aFolder(t), "link");
  symlinkSync(root, link);
  assert.equal((await openFolders(link)).root, root);
  assert.equal(statSync(root).mode & 0o7777, 0o700);
});

test("refuses a root folder of another user", { skip: needsRoot }, async (t) => {
  const root = aFolder(t);
  chownSync(root, 65_534, 65_534);
  await assert.rejects(openFolders(root), /must belong to the user of this process/);
});

test("another file system in a volume is left as it is, and the volume is not removed", { skip: needsRoot }, async (t) => {
  const folders = await openFolders(aFolder(t));
  const path = await folders.create("pvc-1");
  const mounted = join(path, "disk");
  mkdirSync(mounted);
  execFileSync("mount", ["-t", "tmpfs", "none", mounted]);
  try {
    writeFileSync(join(mounted, "data"), "kept");
    await assert.rejects(folders.remove("pvc-1"));
    assert.ok(existsSync(join(mounted, "data")));
  } finally {
    execFileSync("umount", [mounted]);
  }
});

test("an empty folder is removed; one with content stays, and one that is gone is no failure", async (t) => {
  const folders = await openFolders(aFolder(t));
  const path = await folders.create("pvc-1");
  writeFileSync(join(path, "data"), "");
  assert.equal(await folders.removeEmpty("pvc-1"), false);
  rmSync(join(path, "data"));
  assert.equal(await folders.removeEmpty("pvc-1"), true);
  assert.equal(await folders.removeEmpty("pvc-1"), false);
  writeFileSync(join(folders.root, "pvc-2"), "");
  await assert.rejects(folders.removeEmpty("pvc-2"), { code: "ENOTDIR" });
});
