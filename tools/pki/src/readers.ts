import { chmodSync, chownSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Folders that the daemons' users must be able to enter. */
const folders = ["", "pki", "pki/etcd"];

/** Files readable by root only, and the group of the one daemon that needs each. */
const readers: Readonly<Record<string, string>> = {
  "pki/apiserver.key": "kube-apiserver",
  "pki/apiserver-kubelet-client.key": "kube-apiserver",
  "pki/apiserver-etcd-client.key": "kube-apiserver",
  "pki/front-proxy-client.key": "kube-apiserver",
  "pki/sa.key": "kube-service-accounts",
  "pki/ca.key": "kube-controller-manager",
  "controller-manager.conf": "kube-controller-manager",
  "scheduler.conf": "kube-scheduler",
  "pki/etcd/server.key": "etcd",
  "pki/etcd/peer.key": "etcd",
};

/**
 * Grants the daemons' users read access to the files they need in kubeadm's layout. Groups missing on this machine are skipped.
 * @param dryRun changes nothing
 * @returns a line for each file whose access was or would be changed
 */
export function giveToReaders(folder: string, groupFile = "/etc/group", dryRun = false): string[] {
  const groups = new Map(
    readFileSync(groupFile, "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .map(([name = "", , id = ""]) => [name, Number(id)]),
  );
  const changed: string[] = [];
  for (const [path, name] of Object.entries(readers)) {
    const file = join(folder, path);
    const group = groups.get(name);
    const before = statSync(file, { throwIfNoEntry: false });
    if (group === undefined || before === undefined) continue;
    if (before.uid === 0 && before.gid === group && (before.mode & 0o777) === 0o640) continue;
    if (!dryRun) {
      chownSync(file, 0, group);
      chmodSync(file, 0o640);
    }
    changed.push(`${file} is read by group ${name} now`);
  }
  if (!dryRun && [...groups.keys()].some((name) => Object.values(readers).includes(name)))
    for (const path of folders) openFolder(join(folder, path));
  return changed;
}

function openFolder(path: string): void {
  const folder = statSync(path, { throwIfNoEntry: false });
  if (folder !== undefined && (folder.mode & 0o755) !== 0o755) chmodSync(path, 0o755);
}
