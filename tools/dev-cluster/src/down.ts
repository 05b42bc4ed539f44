import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { tryExec } from "./commands.ts";
import { containerdProcess, containerdReady, containerdSocket } from "./containerd.ts";
import type { Progress } from "./failure.ts";
import { tearDownNetwork } from "./network.ts";
import { removeAllPods } from "./pods.ts";
import { runningPid, start, stop } from "./processes.ts";
import { removeServiceRoutes } from "./service-chains.ts";
import type { Settings } from "./settings.ts";

/**
 * Stops everything that `up` started and removes its containers, mounts, network namespaces, cgroups and rules.
 * What etcd holds stays for the next `up`, unless `purge` is set.
 */
export async function down(settings: Settings, progress: Progress, purge: boolean): Promise<void> {
  for (const name of ["service-routes", "kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"]) {
    if (runningPid(settings, name) === undefined) continue;
    await stop(settings, name);
    progress.step(`stopped ${name}`);
  }
  if (settings.asRoot) {
    await tearDownNode(settings);
    progress.step("containers, mounts, network and cgroups are removed");
  }
  if (purge) {
    for (const entry of existsSync(settings.state) ? readdirSync(settings.state) : []) {
      const isOtherCluster = existsSync(join(settings.state, entry, "cluster.json"));
      if (!keptByPurge.has(entry) && !isOtherCluster) rmSync(join(settings.state, entry), { recursive: true, force: true });
    }
    progress.step("the cluster's files are removed");
  }
}

/** Downloads, which say nothing of the cluster, and the other clusters. */
const keptByPurge = new Set(["tools", "kubectl", "clusters"]);

/** Everything of a node but its daemons: also what a node that was killed has left. */
export async function tearDownNode(settings: Settings): Promise<void> {
  if (existsSync(join(settings.state, "containerd", "config.toml"))) {
    if (runningPid(settings, "containerd") === undefined) {
      // Only containerd knows what it left behind: bring it back to ask it.
      start(settings, containerdProcess(settings));
    }
    for (let attempt = 0; attempt < 100 && !containerdReady(settings); attempt++)
      await new Promise((done) => setTimeout(done, 100));
    await removeAllPods(containerdSocket(settings)).catch((err: Error) =>
      process.stderr.write(`pods may be left: ${err.message}\n`),
    );
    await stop(settings, "containerd");
  }
  killShims(settings);
  await unmountBelow([settings.run, settings.state]);
  await removeServiceRoutes(settings.id);
  await tearDownNetwork(settings);
  removeCgroups(`cox-${settings.id}`);
  removePodLogs(settings);
  rmSync(settings.run, { recursive: true, force: true });
}

/** A shim whose containerd was killed waits for it for ever. */
function killShims(settings: Settings): void {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0");
      if (command[0]?.includes("containerd-shim") && command.includes(containerdSocket(settings)))
        process.kill(Number(entry), "SIGKILL");
    } catch {
      // it ended meanwhile
    }
  }
}

async function unmountBelow(folders: readonly string[]): Promise<void> {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) =>
      (line.split(" ")[4] ?? "").replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    )
    .filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
  for (const path of mounts.toReversed()) {
    if ((await tryExec("umount", [path])) === undefined) await tryExec("umount", ["--lazy", path]);
  }
}

/** Removes a cgroup and what is below it in every hierarchy, deepest first; only empty ones can be removed. */
function removeCgroups(name: string): void {
  const remove = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) remove(join(folder, entry.name));
    try {
      rmdirSync(folder);
    } catch {
      // a process is still in it; the next `down` finds it empty
    }
  };
  const roots = ["/sys/fs/cgroup", ...readdirSync("/sys/fs/cgroup").map((entry) => join("/sys/fs/cgroup", entry))];
  for (const root of roots) if (existsSync(join(root, name))) remove(join(root, name));
}

/** Container logs are where every kubelet keeps them, below /var/log/pods; those of this cluster's pods have a link back. */
function removePodLogs(settings: Settings): void {
  const podsFolder = join(settings.state, "kubelet", "pods");
  const uids = new Set(existsSync(podsFolder) ? readdirSync(podsFolder) : []);
  for (const entry of existsSync("/var/log/pods") ? readdirSync("/var/log/pods") : []) {
    if (uids.has(entry.slice(entry.lastIndexOf("_") + 1))) rmSync(join("/var/log/pods", entry), { recursive: true, force: true });
  }
  rmSync(podsFolder, { recursive: true, force: true });
}
