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

/** Those of one row end together; the next row when they have. */
const stopOrder = [
  ["service-routes", "kubelet", "kube-scheduler", "kube-controller-manager"],
  ["kube-apiserver"],
  ["etcd"],
] as const;
const graceMs = 10_000;

/**
 * Stops everything that `up` started and removes its containers, mounts, interfaces, cgroups and rules; needs neither the supervisor
 * nor containerd nor their files. What etcd holds stays for the next `up`, unless `purge` is set.
 * @throws Failure that names what could not be removed; the cluster's files stay then
 */
export async function down(settings: Settings, progress: Progress, purge: boolean): Promise<void> {
  await endSupervisor(settings);
  for (const names of stopOrder) {
    await Promise.all(
      names.map(async (name) => {
        if (await end(settings, name)) progress.step(`stopped ${name}`);
      }),
    );
  }
  if (settings.asRoot && (await notReadyReason(settings, "containerd")) === undefined) {
    // Removed by containerd itself they are also gone from what it remembers, for the next `up`.
    await removeAllPods(containerdSocket(settings)).catch(() => {}); // what it leaves is removed below
  }
  if (await end(settings, "containerd")) progress.step("stopped containerd");
  const left = await removeRemains(settings);
  if (left.length > 0)
    throw new Failure(`could not remove, try again or remove by hand:\n${left.map((what) => `  ${what}`).join("\n")}`);
  progress.step(settings.asRoot ? "containers, mounts, network and cgroups are removed" : "nothing of it runs any more");
  if (purge) {
    for (const entry of ofCluster) rmSync(join(settings.state, entry), { recursive: true, force: true });
    progress.step("the cluster's files are removed");
  }
}

/** What a cluster keeps in its state folder, where also downloads and other clusters may be. */
const ofCluster = [
  ...["admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf", "cluster.json", "image.tar"],
  ...["containerd", "etcd", "kubelet", "logs", "manifests", "pki", "run"],
];

/** @returns whether it ran. */
async function end(settings: Settings, name: string): Promise<boolean> {
  const found = named(settings, name);
  signalAll(found, "SIGTERM");
  signalAll(found, "SIGCONT"); // one that was stopped gets its signals then
  if (!(await haveEnded(found, graceMs))) {
    signalAll(found, "SIGKILL");
    await haveEnded(found, graceMs);
  }
  return found.length > 0;
}

function named(settings: Settings, name: string): ClusterProcess[] {
  const known = runningPid(settings, name);
  const found = known === undefined ? [] : identify(known, name);
  return found.length > 0 ? found : startedBySupervisor(settings.id).filter((one) => one.name === name);
}
