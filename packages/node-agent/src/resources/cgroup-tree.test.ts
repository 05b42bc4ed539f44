/** Tests with ordinary folders in place of the kernel's: what is written where. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { openCgroupTree } from "./cgroup-tree.ts";

async function treeOf(t: TestContext, files: Readonly<Record<string, string>>, besideSystemd = false) {
  const mountPoint = mkdtempSync(join(tmpdir(), "cox-cgroup-tree-"));
  t.after(() => rmSync(mountPoint, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(mountPoint, dirname(path)), { recursive: true });
    writeFileSync(join(mountPoint, path), text);
  }
  const warnings: unknown[] = [];
  const log = { ...discardLogger, warn: (_: string, fields?: object) => void warnings.push(fields) };
  const tree = await openCgroupTree({ mountPoint, cfsPeriodUs: 100_000, log, besideSystemd });
  const read = (path: string): string | undefined => {
    try {
      return readFileSync(join(mountPoint, path), "utf8");
    } catch {
      return undefined;
    }
  };
  return { tree, read, warnings, mountPoint };
}

const v1 = (...controllers: string[]) => Object.fromEntries(controllers.map((name) => [`${name}/cgroup.procs`, ""]));

test("in version 2 each cgroup on the way to a new one enables the controllers that it has and that limits need", async (t) => {
  const { tree, read } = await treeOf(t, {
    "cgroup.controllers": "cpu io memory",
    "a/cgroup.controllers": "cpu",
    "a/b/cgroup.controllers": "cpu",
  });
  await tree.make("/a/b");
  const enabled = ["", "a/", "a/b/"].map((dir) => read(`${dir}cgroup.subtree_control`));
  assert.deepEqual(enabled, ["+memory", "+cpu", undefined], "the last one that is written; none for the new one's own children");
  assert.equal(tree.unified, true);
});

test("in version 1 a new cpuset gets the CPUs and memory of the cgroup above it, one that has its own keeps them", async (t) => {
  const { tree, read } = await treeOf(t, {
    ...v1("cpuset", "memory"),
    ...{ "cpuset/cpuset.cpus": "0-3\n", "cpuset/cpuset.mems": "0-1\n" },
    ...{ "cpuset/a/cpuset.cpus": "1-2\n", "cpuset/a/cpuset.mems": "" },
    ...{ "cpuset/a/b/cpuset.cpus": "", "cpuset/a/b/cpuset.mems": "" },
  });
  await tree.make("/a/b");
  assert.deepEqual(
    ["a/cpuset.cpus", "a/cpuset.mems", "a/b/cpuset.cpus", "a/b/cpuset.mems"].map((file) => read(`cpuset/${file}`)),
    ["1-2\n", "0-1", "1-2", "0-1"],
  );
});

for (const besideSystemd of [false, true]) {
  test(`a cgroup is made in ${besideSystemd ? "all hierarchies but systemd's own" : "every hierarchy, also systemd's"}`, async (t) => {
    const { tree, mountPoint } = await treeOf(t, v1("cpu", "systemd", "unified"), besideSystemd);
    await tree.make("/a");
    assert.deepEqual(
      ["cpu", "systemd", "unified"].map((name) => existsSync(join(mountPoint, name, "a"))),
      [true, !besideSystemd, !besideSystemd],
    );
  });
}

test("a process is added in each hierarchy of version 1, in one that controllers share once", async (t) => {
  const { tree, read } = await treeOf(t, v1("cpu", "cpu,cpuacct", "memory"));
  await tree.make("/a");
  await tree.addProcess("/a", 7);
  assert.deepEqual(
    ["cpu", "memory", "cpu,cpuacct"].map((name) => read(`${name}/a/cgroup.procs`)),
    ["7", "7", undefined],
  );
});

test("a limit that the kernel has already is not written again; one that it refuses is reported, and the others are set", async (t) => {
  const { tree, read, warnings, mountPoint } = await treeOf(t, {
    ...v1("cpu", "memory", "pids"),
    ...{ "cpu/a/cpu.shares": "512\n", "memory/a/memory.stat": "", "pids/a/pids.current": "" },
  });
  mkdirSync(join(mountPoint, "memory/a/memory.limit_in_bytes"));
  assert.equal(await tree.limit("/a", { shares: 512, memoryBytes: 4096, pids: 9 }), false);
  assert.deepEqual([read("cpu/a/cpu.shares"), read("pids/a/pids.max"), warnings.length], ["512\n", "9", 1]);
  assert.equal(await tree.limit("/a", { shares: 513, quotaUs: 5, pids: 9 }), true);
  assert.deepEqual(
    ["cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us"].map((file) => read(`cpu/a/${file}`)),
    ["513", "100000", "5"],
  );
});

test("the memory of a cgroup of version 1 counts what is below it, and without a limit it is 0", async (t) => {
  const { tree } = await treeOf(t, {
    ...v1("memory"),
    "memory/a/memory.limit_in_bytes": `${2n ** 63n - 4096n}\n`,
    "memory/a/memory.usage_in_bytes": "1000\n",
    "memory/a/memory.stat": "inactive_file 900\ntotal_inactive_file 300\n",
    "memory/b/memory.limit_in_bytes": "4096\n",
    "memory/b/memory.usage_in_bytes": "200\n",
    "memory/b/memory.stat": "total_inactive_file 300\n",
  });
  assert.deepEqual(await tree.memory("/a"), { limitBytes: 0, workingSetBytes: 700 });
  assert.deepEqual(await tree.memory("/b"), { limitBytes: 4096, workingSetBytes: 0 }, "usage and cache are not read at once");
});

test("a cgroup that cannot be removed from one hierarchy stays in that by which it is found again", async (t) => {
  const { tree, mountPoint } = await treeOf(t, v1("cpu", "memory", "pids"));
  await tree.make("/a/b");
  const busy = join(mountPoint, "cpu/a/b/busy");
  writeFileSync(busy, "");
  assert.deepEqual([await tree.remove("/a"), await tree.exists("/a")], [false, true]);
  rmSync(busy);
  assert.deepEqual([await tree.remove("/a"), await tree.exists("/a")], [true, false]);
});

test("the memory and tasks of a cgroup of version 2 are those that its own files show", async (t) => {
  const { tree, read } = await treeOf(t, {
    "cgroup.controllers": "cpu memory pids",
    ...{ "a/memory.max": "max\n", "a/memory.current": "1000\n", "a/memory.stat": "total_inactive_file 1\ninactive_file 300\n" },
    ...{ "b/memory.max": "4096\n", "b/memory.current": "900\n", "b/memory.stat": "anon 1\n", "b/pids.current": "12\n" },
  });
  assert.deepEqual(await tree.memory("/a"), { limitBytes: 0, workingSetBytes: 700 });
  assert.deepEqual(await tree.memory("/b"), { limitBytes: 4096, workingSetBytes: 900 });
  assert.equal(await tree.memoryUsageBytes("/b"), 900);
  assert.deepEqual([await tree.taskCount("/b"), await tree.taskCount("/a")], [12, 0], "0 where tasks are not counted");
  const limits = { shares: 512, quotaUs: 5, memoryBytes: 4096, memoryMinBytes: 0, pids: 9 };
  assert.equal(await tree.limit("/a", limits), true);
  assert.deepEqual(
    ["cpu.weight", "cpu.max", "memory.max", "memory.min", "pids.max"].map((file) => read(`a/${file}`)),
    ["20", "5 100000", "4096", "0", "9"],
  );
});

test("without controllers there is no cgroup, none is populated, and all are removed", async (t) => {
  const { tree } = await treeOf(t, {});
  await tree.make("/a");
  assert.deepEqual(
    [await tree.exists("/a"), await tree.children("/"), await tree.processesIn("/a"), await tree.isPopulated("/a")],
    [false, [], [], false],
  );
  assert.deepEqual([await tree.limit("/a", { shares: 5, pids: 3 }), await tree.remove("/a"), tree.unified], [true, true, false]);
});

test("a cgroup is populated by a process of its own or of any below it", async (t) => {
  const { tree, mountPoint } = await treeOf(t, { ...v1("memory"), "memory/a/cgroup.procs": "", "memory/a/b/cgroup.procs": "" });
  mkdirSync(join(mountPoint, "memory/a/c/d"), { recursive: true });
  assert.equal(await tree.isPopulated("/a"), false);
  writeFileSync(join(mountPoint, "memory/a/c/d/cgroup.procs"), "7\n");
  assert.equal(await tree.isPopulated("/a"), true);
  writeFileSync(join(mountPoint, "memory/a/cgroup.procs"), "8\n9\n");
  assert.deepEqual([await tree.isPopulated("/a"), await tree.processesIn("/a")], [true, [8, 9]]);
});
