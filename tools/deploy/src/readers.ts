import { chmodSync, chownSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of the kubeconfigs, and those below it that others must be able to enter. */
const folders = ["", "pki", "pki/etcd"];

/** Which group reads a file that is otherwise root's alone: that of the one daemon which needs it. */
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

/** Lets the daemons' own users read what they need of a folder in kubeadm's layout. Groups that this machine does not have get nothing. */
export function giveToReaders(folder: string, groupFile = "/etc/group"): void {
  const groups = new Map(
    readFileSync(groupFile, "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .map(([name = "", , id = ""]) => [name, Number(id)]),
  );
  for (const path of folders) if (existsSync(join(folder, path))) chmodSync(join(folder, path), 0o755);
  for (const [path, name] of Object.entries(readers)) {
    const file = join(folder, path);
    const group = groups.get(name);
    if (group === undefined || !existsSync(file)) continue;
    chownSync(file, 0, group);
    chmodSync(file, 0o640);
  }
}
