/** `coxswain certs`: creates the certificates and kubeconfigs of a cluster in kubeadm's layout, without kubeadm. */

import { copyFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { newCertsCommand, runCerts } from "@coxswain/pki/command";
import { PkiError } from "@coxswain/pki/files";
import type { PkiPlan } from "@coxswain/pki/plan";
import { giveToReaders } from "@coxswain/pki/readers";
import type { Command } from "commander";

interface Flags {
  folder: string;
  nodeName?: string;
  apiserverNames: string[];
  etcdNames: string[];
  kubeletNames: string[];
  server: string;
  outsideServer?: string;
  adminCopy?: string;
}

const list = (text: string): string[] => text.split(",").filter((name) => name !== "");

function configure(command: Command): void {
  command.option("--folder <folder>", "kubeconfigs are in it, certificates in its folder pki", "/etc/kubernetes");
  command.option("--node-name <name>", "the name of this machine's node (default: the host's name)");
  if (command.name() !== "certs") return;
  command
    .option(
      "--apiserver-names <names>",
      "names and addresses that the API server has besides this machine's, comma separated: the one that it advertises, the first of the services' range, a load balancer's",
      list,
      ["10.96.0.1"],
    )
    .option("--etcd-names <names>", "names and addresses that etcd has besides this machine's", list, [])
    .option("--kubelet-names <names>", "names and addresses that the kubelet has besides this machine's", list, [])
    .option("--server <url>", "the API server's URL in kubeconfigs that are made", "https://127.0.0.1:6443")
    .option(
      "--outside-server <url>",
      "its URL in admin.conf, kubelet.conf and services.conf, where these are read elsewhere than the others (default: the same)",
    )
    .option("--admin-copy <file>", "where to write a second admin.conf, for users who cannot read the folder");
}

/** Files that node programs and users read; the others are read only by the control plane. */
const readOutside: ReadonlySet<string> = new Set(["admin", "kubelet", "services"]);

const planOf = (flags: Flags): PkiPlan => ({
  folder: flags.folder,
  nodeName: (flags.nodeName || hostname()).toLowerCase(),
  apiserverNames: flags.apiserverNames,
  etcdNames: flags.etcdNames,
  kubeletNames: flags.kubeletNames,
  // Like kubeadm: needs no role binding.
  kubeletClientGroups: ["system:masters"],
  server: (name) => (readOutside.has(name) ? flags.outsideServer || flags.server : flags.server),
});

function afterwards({ folder }: PkiPlan, { adminCopy }: Flags): string[] {
  const lines = process.getuid?.() === 0 ? giveToReaders(folder) : [];
  if (!adminCopy) return lines;
  try {
    copyFileSync(join(folder, "admin.conf"), adminCopy);
  } catch (err) {
    throw new PkiError(`cannot write ${adminCopy}: ${messageOf(err)}`);
  }
  return [...lines, `copied admin.conf to ${adminCopy}`];
}

const command = newCertsCommand<Flags>({ program: "coxswain certs", configure, plan: planOf, afterwards });
process.exitCode = await runCerts(command.name("coxswain certs"), process.argv.slice(2));
