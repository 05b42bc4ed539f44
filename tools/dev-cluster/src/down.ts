import { rmSync } from "node:fs";
import { join } from "node:path";
import { type ClusterProcess, haveEnded, identify, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { containerdSocket } from "./containerd.ts";
import { Failure, type Progress } from "./failure.ts";
import { removeAllPods } from "./pods.ts";
import { runningPid } from "./processes.ts";
import { notReadyReason } from "./readiness.ts";
import { removeRemains } from "./remains.ts";
import type { Settings } from "./settings.ts";
import { endSupervisor } from "./supervisor-client.ts";
import { recordAllStopped } from "./supervisor-state.ts";

/** Process that earlier versions started instead of coxswain-services. */
export const earlierServices = "service-routes";

/** Processes of one row are stopped in parallel, rows one after the other. */
const stopOrder = [
  ["coxswain-services", earlierServices, "kubelet", "kube-scheduler", "kube-controller-manager"],
  ["kube-apiserver"],
  ["etcd"],
] as const;
const endGraceMs = 10_000;
/** Until the kernel has removed a killed process. */
const killMs = 10_000;

/**
 * Stops everything started by `up` and removes its containers, mounts, interfaces, cgroups and rules; works without the
 * supervisor, containerd and their files. etcd's data are kept for the next `up`, unless `purge` is set.
 * @param graceMs from SIGTERM to SIGKILL of a process
 * @throws Failure naming what could not be removed; the cluster's files are kept in that case
 */
export async function down(settings: Settings, progress: Progress, purge: boolean, graceMs = endGraceMs): Promise<void> {
  await endSupervisor(settings);
  for (const names of stopOrder) {
    await Promise.all(
      names.map(async (name) => {
        if (await end(settings, name, graceMs)) progress.step(`stopped ${name}`);
      }),
    );
  }
  if (settings.asRoot && (await notReadyReason(settings, "containerd")) === undefined) {
    // Via CRI, so that containerd's own database forgets them too.
    await removeAllPods(containerdSocket(settings)).catch(() => {}); // the rest is removed below
  }
  if (await end(settings, "containerd", graceMs)) progress.step("stopped containerd");
  recordAllStopped(settings);
  const left = await removeRemains(settings);
  if (left.length > 0)
    throw new Failure(`could not remove, try again or remove manually:\n${left.map((what) => `  ${what}`).join("\n")}`);
  progress.step(settings.asRoot ? "containers, mounts, network and cgroups are removed" : "nothing of it runs any more");
  if (purge) {
    for (const entry of ofCluster) rmSync(join(settings.state, entry), { recursive: true, force: true });
    progress.step("the cluster's files are removed");
  }
}

/** The cluster's files in the state folder, which may also contain downloads and other clusters. */
const ofCluster = [
  ...["admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf", "services.conf", "cluster.json", "image.tar"],
  ...["containerd", "etcd", "kubelet", "logs", "manifests", "pki", "run", "volumes"],
];

/** @returns whether the process was running. */
async function end(settings: Settings, name: string, graceMs: number): Promise<boolean> {
  const found = named(settings, name);
  signalAll(found, "SIGTERM");
  signalAll(found, "SIGCONT"); // a stopped (SIGSTOP) process handles SIGTERM only after it is continued
  if (!(await haveEnded(found, graceMs))) {
    signalAll(found, "SIGKILL");
    await haveEnded(found, killMs);
  }
  return found.length > 0;
}

function named(settings: Settings, name: string): ClusterProcess[] {
  const known = runningPid(settings, name);
  const found = known === undefined ? [] : identify(known, name);
  return found.length > 0 ? found : startedBySupervisor(settings.id).filter((one) => one.name === name);
}
