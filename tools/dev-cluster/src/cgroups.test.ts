import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cgroupFolders, processesIn, removeCgroups, thaw } from "./cgroups.ts";

/** A folder laid out like /sys/fs/cgroup. */
function hierarchy(t: TestContext, ...folders: string[]): string {
  const root = mkdtempSync(join(tmpdir(), "cox-cgroups-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true });
  return root;
}

test("the cgroups of a cluster are found in every hierarchy, each below its parent's place, no others", (t) => {
  const root = hierarchy(t, "memory/cox-1/pods/a", "memory/cox-12/pods", "cpu/cox-1", "cox-1/b", "pids/other/cox-1");
  writeFileSync(join(root, "cox-1/b/cgroup.procs"), "");
  writeFileSync(join(root, "file"), "");
  assert.deepEqual(
    cgroupFolders("cox-1", root)
      .map((folder) => folder.slice(root.length + 1))
      .toSorted(),
    ["cox-1", "cox-1/b", "cpu/cox-1", "memory/cox-1", "memory/cox-1/pods", "memory/cox-1/pods/a"],
  );
  const order = cgroupFolders("cox-1", join(root, "memory"));
  assert.deepEqual(
    order.map((folder) => folder.slice(root.length + 8)),
    ["cox-1/pods/a", "cox-1/pods", "cox-1"],
    "deepest first",
  );
  assert.deepEqual(cgroupFolders("cox-1", join(root, "none")), []);
});

test("each process of the cgroups is found once; those of a removed cgroup and ended ones are left out", (t) => {
  const root = hierarchy(t, "a", "b");
  writeFileSync(join(root, "a", "cgroup.procs"), `${process.pid}\n${process.ppid}\n`);
  writeFileSync(join(root, "b", "cgroup.procs"), `${process.pid}\n99999999\n`);
  const found = processesIn(["a", "gone", "b"].map((name) => join(root, name)));
  assert.deepEqual(
    found.map(({ pid }) => pid),
    [process.pid, process.ppid],
  );
  assert.ok(found.every(({ name, startTime }) => name !== "" && /^\d+$/.test(startTime)));
});

test("frozen cgroups of both versions are thawed, and no file is made where there is none", (t) => {
  const root = hierarchy(t, "v1", "v2", "root", "locked/cgroup.freeze");
  writeFileSync(join(root, "v1", "freezer.state"), "FROZEN");
  writeFileSync(join(root, "v2", "cgroup.freeze"), "1");
  thaw(["locked", "v1", "v2", "root"].map((name) => join(root, name))); // a directory in place of the file cannot be written
  assert.equal(readFileSync(join(root, "v1", "freezer.state"), "utf8"), "THAWED");
  assert.equal(readFileSync(join(root, "v2", "cgroup.freeze"), "utf8"), "0");
  assert.equal(existsSync(join(root, "root", "cgroup.freeze")), false);
  assert.equal(existsSync(join(root, "v2", "freezer.state")), false);
});

test("empty cgroups are removed, and one that is in use keeps only itself and its parents", (t) => {
  const root = hierarchy(t, "cox-1/a", "cox-1/b");
  writeFileSync(join(root, "cox-1/a/file"), "");
  removeCgroups(cgroupFolders("cox-1", root));
  assert.deepEqual([existsSync(join(root, "cox-1/a")), existsSync(join(root, "cox-1/b"))], [true, false]);
  rmSync(join(root, "cox-1/a/file"));
  removeCgroups(cgroupFolders("cox-1", root));
  assert.equal(existsSync(join(root, "cox-1")), false);
});
