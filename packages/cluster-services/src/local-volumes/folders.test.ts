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
  utimesSync,
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

test("the folders of volumes whose entries have not changed for so long are named, and nothing else", async (t) => {
  const folders = await openFolders(aFolder(t));
  const old = "pvc-00000000-0000-4000-8000-000000000001";
  const young = old.replace(/1$/, "2");
  const at = 1_600_000_000;
  for (const name of [old, young, "other"]) utimesSync(await folders.create(name), at, at + (name === young ? 1 : 0));
  const file = join(folders.root, old.replace(/1$/, "3"));
  writeFileSync(file, "");
  utimesSync(file, at, at);
  const untouched = async (ageMs: number): Promise<string[]> => (await folders.untouchedFor(ageMs, (at + 60) * 1000)).sort();
  assert.deepEqual(await untouched(60_001), []);
  assert.deepEqual(await untouched(60_000), [old]);
  assert.deepEqual(await untouched(59_000), [old, young]);
});

test("tells how many bytes and files the disk of the folder has, and how many are free", { skip: needsRoot }, async (t) => {
  const root = aFolder(t);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,nr_inodes=64,mode=700", "none", root]);
  try {
    const folders = await openFolders(root);
    const empty = await folders.space();
    writeFileSync(join(root, "data"), Buffer.alloc(64 * 1024));
    assert.deepEqual([empty.totalBytes, empty.totalFiles], [2 ** 20, 64]);
    const { freeBytes, freeFiles, ...total } = await folders.space();
    assert.deepEqual(total, { totalBytes: 2 ** 20, totalFiles: 64 });
    assert.deepEqual([empty.freeBytes, empty.freeBytes - freeBytes, empty.freeFiles - freeFiles], [2 ** 20, 64 * 1024, 1]);
    assert.ok(freeFiles > 0 && freeFiles < 64);
  } finally {
    execFileSync("umount", [root]);
  }
});
