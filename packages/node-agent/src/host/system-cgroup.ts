import { readlink } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { CgroupTree } from "../resources/cgroup-tree.ts";

/** Processes may fork while they are moved; the next periodic run handles what is left after this many rounds. */
const mostRounds = 10;

/**
 * `--system-cgroups`: moves the processes in the root cgroup to a separate cgroup, so that the system reservation can be
 * enforced on them. Kernel threads and PID 1 stay.
 * @param procDir `/proc`; overridden in tests
 * @throws Error when processes are left in the root cgroup after several rounds
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
      // Exited processes need not be moved.
      await tree.addProcess(cgroup, pid).catch((err: NodeJS.ErrnoException) => {
        if (err.code !== "ESRCH") throw err;
      });
    }
  }
}

/** Kernel threads have no executable. Also true for exited processes. */
async function isKernelThread(dir: string): Promise<boolean> {
  try {
    await readlink(join(dir, "exe"));
    return false;
  } catch (err) {
    return errorCode(err) === "ENOENT";
  }
}
