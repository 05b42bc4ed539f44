/** `coxswain certs`: the certificates and kubeconfigs of a cluster in kubeadm's layout, for machines without kubeadm. */
import { copyFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { ConfigError, runMain } from "@coxswain/apimachinery/flags/run-main";
import { string, stringSlice } from "@coxswain/apimachinery/flags/types";
import { writePki } from "@coxswain/dev-cluster/pki";
import { giveToReaders } from "./readers.ts";

const table = flags(
  section("Certificates", {
    folder: string({ default: "/etc/kubernetes", help: "Where kubeconfigs are written, and certificates in its folder pki." }),
    "node-name": string({ help: "The name of this machine's node. The host's name when empty." }),
    "apiserver-names": stringSlice({
      default: ["10.96.0.1"],
      help: "Names and addresses that the API server has besides this machine's: the one that it advertises, the first of the services' range.",
    }),
    "etcd-names": stringSlice({ help: "Names and addresses that etcd has besides this machine's." }),
    "kubelet-names": stringSlice({ help: "Names and addresses that the kubelet has besides this machine's." }),
    server: string({ default: "https://127.0.0.1:6443", help: "The API server's URL in the kubeconfigs." }),
    "outside-server": string({
      help: "Its URL in admin.conf and kubelet.conf, where these are read elsewhere than the others. The same when empty.",
    }),
    "admin-copy": string({ help: "Where to write admin.conf once more, for whoever cannot read the folder." }),
  }),
);

const certs: Program<typeof table.table> = {
  name: "coxswain certs",
  description:
    "Writes what is missing of a cluster's certificates and kubeconfigs, in the layout of kubeadm. Files that exist stay as they are, except that the daemons' own users may read their keys from then on, where these users exist.",
  unsectioned: true,
  flags: table,
};

await runMain(certs, async (flags) => {
  const { folder } = flags;
  const outside = flags["outside-server"] || flags.server;
  try {
    await writePki({
      folder,
      nodeName: (flags["node-name"] || hostname()).toLowerCase(),
      apiserverNames: flags["apiserver-names"],
      etcdNames: flags["etcd-names"],
      kubeletNames: flags["kubelet-names"],
      // As kubeadm has it, so that no role needs to be bound first.
      kubeletClientGroups: ["system:masters"],
      server: (name) => (name === "admin" || name === "kubelet" ? outside : flags.server),
    });
    if (process.getuid?.() === 0) giveToReaders(folder);
    if (flags["admin-copy"] !== "") copyFileSync(join(folder, "admin.conf"), flags["admin-copy"]);
  } catch (err) {
    throw new ConfigError(`cannot write to ${folder}: ${(err as Error).message}`, { cause: err });
  }
});
