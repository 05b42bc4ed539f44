import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { link, mkdir, mkdtemp, readdir, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemMounter } from "../volumes/mount.ts";
import { removeTree, treeUsage } from "./user-files.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-files-"));
  t.after(() => removeTree(dir));
  return dir;
}

/** Makes directories below each other whose path is longer than the kernel takes, as a container does with relative names. */
function makeDeep(dir: string): void {
  const before = process.cwd();
  process.chdir(dir);
  for (let i = 0; i < 60; i++) {
    mkdirSync("d".repeat(100));
    process.chdir("d".repeat(100));
  }
  writeFileSync("file", "x");
  process.chdir(before);
}

function makeMany(dir: string, count: number): void {
  mkdirSync(dir);
  for (let i = 0; i < count; i++) closeSync(openSync(join(dir, `file-${i}`), "w"));
}

const trees: Record<string, { make: (dir: string) => unknown; inodes: number }> = {
  "deeper than a path may be": { make: makeDeep, inodes: 62 },
  "one directory of 3,000 files": { make: (dir) => makeMany(join(dir, "many"), 3_000), inodes: 3_002 },
  "1,100 files in small directories": {
    make: (dir) => {
      for (let i = 0; i < 11; i++) makeMany(join(dir, `part-${i}`), 100);
    },
    inodes: 1_112,
  },
  "names that are not UTF-8": {
    make: async (dir) => {
      for (const byte of [0xff, 0xfe]) await writeFile(Buffer.concat([Buffer.from(`${dir}/`), Buffer.of(byte, 0x0a)]), "x");
    },
    inodes: 3,
  },
};

for (const [what, { make, inodes }] of Object.entries(trees)) {
  test(`a tree is measured and removed: ${what}`, async (t) => {
    const dir = await tempDir(t);
    await mkdir(join(dir, "tree"));
    await make(join(dir, "tree"));
    assert.equal((await treeUsage(join(dir, "tree"))).inodes, inodes);
    await removeTree(join(dir, "tree"));
    assert.deepEqual(await readdir(dir), []);
  });
}

test("a file with several links counts once, in small trees and in large ones", async (t) => {
  const dir = await tempDir(t);
  await mkdir(join(dir, "tree"));
  await writeFile(join(dir, "tree/a"), Buffer.alloc(100_000));
  const alone = await treeUsage(join(dir, "tree"));
  await link(join(dir, "tree/a"), join(dir, "tree/b"));
  assert.deepEqual(await treeUsage(join(dir, "tree")), alone);
  makeMany(join(dir, "tree/many"), 1_500);
  const { inodes, bytes } = await treeUsage(join(dir, "tree"));
  assert.equal(inodes, alone.inodes + 1_501);
  assert.ok(bytes < alone.bytes + 100_000, String(bytes));
});

test("targets of symbolic links are neither measured nor removed", async (t) => {
  const dir = await tempDir(t);
  makeMany(join(dir, "outside"), 3);
  for (const files of [1, 1_500]) {
    makeMany(join(dir, "tree"), files);
    await symlink("../outside", join(dir, "tree/link"));
    assert.equal((await treeUsage(join(dir, "tree"))).inodes, files + 2);
    await removeTree(join(dir, "tree"));
    assert.equal((await readdir(join(dir, "outside"))).length, 3);
  }
});

test("what does not exist has no usage and is removed already", async (t) => {
  const dir = await tempDir(t);
  assert.deepEqual(await treeUsage(join(dir, "none")), { bytes: 0, inodes: 0 });
  await removeTree(join(dir, "none"));
});

test("files on a file system that is mounted in a tree neither count nor are removed", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const dir = await tempDir(t);
  for (const files of [1, 1_500]) {
    const tree = join(dir, `tree-${files}`);
    makeMany(tree, files);
    await mkdir(join(tree, "mounted"));
    await systemMounter.mount("tmpfs", join(tree, "mounted"), { type: "tmpfs" });
    await writeFile(join(tree, "mounted/kept"), "x");
    try {
      assert.equal((await treeUsage(tree)).inodes, files + 1);
      await assert.rejects(removeTree(tree));
      assert.deepEqual(await readdir(join(tree, "mounted")), ["kept"]);
    } finally {
      await systemMounter.unmount(join(tree, "mounted"));
    }
  }
});
