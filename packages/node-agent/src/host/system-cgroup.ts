import { readlink } from "node:fs/promises";
import { join } from "node:path";
import type { CgroupTree } from "../resources/cgroup-tree.ts";

/** A process may start others while it is moved; after so many rounds the next minute's look has to do. */
const mostRounds = 10;

/**
 * `--system-cgroups`: moves the processes that nobody put into a cgroup (they are in the root's) into one of their own, so
 * that they can be held to what is reserved for the system. The kernel's threads and the first process stay.
 * @param procDir `/proc`; another folder in tests
 * @throws Error when processes are left in the root after several rounds
 * Source: pkg/kubelet/cm/container_manager_linux.go ensureSystemCgroups
 */
export async function gatherSystemProcesses(tree: CgroupTree, cgroup: string, procDir = "/proc"): Promise<void> {
  if (cgroup === "/") throw new Error('system container cannot be root ("/")');
  await tree.make(cgroup);
  for (let round = 0; ; round++) {
    const pids: number[] = [];
    for (const pid of await tree.processesIn("/"))
      if (pid !== 1 && !(await isKernelThread(join(procDir, String(pid))))) pids.push(pid);
    if (pids.length === 0) return;
    if (round === mostRounds) throw new Error(`${pids.length} processes are left in the root cgroup: ${pids.join(" ")}`);
    for (const pid of pids) {
      // What has ended meanwhile need not be moved.
      await tree.addProcess(cgroup, pid).catch((err: NodeJS.ErrnoException) => {
        if (err.code !== "ESRCH") throw err;
      });
    }
  }
}

/** Threads of the kernel were started from no file; neither was what has ended by now. */
async function isKernelThread(dir: string): Promise<boolean> {
  try {
    await readlink(join(dir, "exe"));
    return false;
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === "ENOENT";
  }
}
