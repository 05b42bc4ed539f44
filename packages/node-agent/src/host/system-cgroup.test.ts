import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { CgroupTree } from "../resources/cgroup-tree.ts";
import { gatherSystemProcesses } from "./system-cgroup.ts";

/** A root cgroup with these processes; those in `programs` have an executable. */
async function machine(t: TestContext, pids: readonly number[], programs: readonly number[]) {
  const procDir = await mkdtemp(join(tmpdir(), "cox-proc-"));
  t.after(() => rm(procDir, { recursive: true, force: true }));
  for (const pid of pids) {
    await mkdir(join(procDir, String(pid)));
    if (programs.includes(pid)) await symlink("/bin/sh", join(procDir, String(pid), "exe"));
  }
  const inRoot = new Set(pids);
  const moved: string[] = [];
  const tree = {
    make: async (path: string) => void moved.push(`make ${path}`),
    processesIn: async () => [...inRoot],
    async addProcess(path: string, pid: number) {
      moved.push(`${pid} to ${path}`);
      inRoot.delete(pid);
    },
  };
  return { tree: tree as unknown as CgroupTree, procDir, moved, inRoot };
}

test("processes of the root cgroup are moved to --system-cgroups, except kernel threads and process 1", async (t) => {
  const { tree, procDir, moved } = await machine(t, [1, 2, 70, 80], [1, 70, 80]);
  await gatherSystemProcesses(tree, "/system", procDir);
  assert.deepEqual(moved, ["make /system", "70 to /system", "80 to /system"]);
});

test("a process that ended before it was moved is ignored; one that cannot be moved is reported", async (t) => {
  const { tree, procDir, inRoot } = await machine(t, [70], [70]);
  tree.addProcess = async (_, pid) => {
    inRoot.delete(pid);
    throw Object.assign(new Error("gone"), { code: "ESRCH" });
  };
  await gatherSystemProcesses(tree, "/system", procDir);
  inRoot.add(70);
  let tries = 0;
  tree.addProcess = async () => void tries++;
  await assert.rejects(gatherSystemProcesses(tree, "/system", procDir), {
    message: "1 processes are left in the root cgroup: 70",
  });
  assert.equal(tries, 10);
  await assert.rejects(gatherSystemProcesses(tree, "/", procDir), { message: 'system container cannot be root ("/")' });
});

test("a process whose program cannot be read counts as none of the kernel's", async (t) => {
  const { tree, procDir, moved, inRoot } = await machine(t, [70], [70]);
  await writeFile(join(procDir, "80"), "");
  inRoot.add(80);
  await gatherSystemProcesses(tree, "/system", procDir);
  assert.deepEqual(moved.slice(1), ["70 to /system", "80 to /system"]);
});

test("processes that are forked meanwhile are moved by one of ten rounds", async (t) => {
  const { tree, procDir, inRoot } = await machine(t, [70], [70]);
  let rounds = 0;
  const { processesIn } = tree;
  tree.processesIn = async (path) => {
    if (rounds++ < 10) inRoot.add(70);
    return processesIn(path);
  };
  await gatherSystemProcesses(tree, "/system", procDir);
  assert.equal(rounds, 11);
});

test("the processes of the machine are read from /proc", async () => {
  const moved: number[] = [];
  const tree = {
    make: async () => undefined,
    processesIn: async () => (moved.length === 0 ? [1, process.pid] : []),
    addProcess: async (_: string, pid: number) => void moved.push(pid),
  } as unknown as CgroupTree;
  await gatherSystemProcesses(tree, "/system");
  assert.deepEqual(moved, [process.pid]);
  await assert.rejects(gatherSystemProcesses(tree, "/"), { message: 'system container cannot be root ("/")' });
});

test("a process that may not be moved ends the round with the reason", async (t) => {
  const { tree, procDir } = await machine(t, [70, 80], [70, 80]);
  const tried: number[] = [];
  tree.addProcess = async (_, pid) => {
    tried.push(pid);
    throw Object.assign(new Error("not permitted"), { code: "EACCES" });
  };
  await assert.rejects(gatherSystemProcesses(tree, "/system", procDir), { code: "EACCES" });
  assert.deepEqual(tried, [70]);
});
