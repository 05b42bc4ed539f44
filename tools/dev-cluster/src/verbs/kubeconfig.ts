import { readFileSync } from "node:fs";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Command } from "commander";
import { Failure } from "../failure.ts";
import { type Kubeconfig, mergeInto, newKubeconfig, targetFile } from "../kubeconfig-merge.ts";
import { kubeconfigFile } from "../pki.ts";
import { existingCluster, nameFlag, newClusterVerb } from "./command.ts";

/** `./cox kubeconfig`: prints the administrator's kubeconfig or merges it into the user's. */
export function kubeconfigVerb(root: string): Command {
  return newClusterVerb("kubeconfig", "print the administrator's kubeconfig, or merge it into your own", {
    notes: [
      "--merge keeps everything else in the file, comments too, and a copy of what it was beside it. It replaces a context that it",
      "wrote for the same cluster, and no other. The current context is only set where there is none.",
    ],
    examples: [
      "./cox kubeconfig > cluster.conf",
      "./cox kubeconfig --merge && kubectl --context cox-default get nodes",
      "./cox kubeconfig --merge --context mine",
    ],
    files: [".cox/admin.conf", "~/.kube/config   what --merge writes"],
    environment: ["KUBECONFIG  its first file is what --merge writes, instead of ~/.kube/config"],
  })
    .option("--merge", "merge it into ~/.kube/config, or the first file of $KUBECONFIG")
    .option("--context <name>", "name of the context, cluster and user (default: cox-<name of the cluster>)")
    .action(({ name, merge = false, context }: { name: string; merge?: boolean; context?: string }) => {
      const settings = existingCluster(root, name, "kubeconfig");
      let admin: Kubeconfig;
      try {
        admin = JSON.parse(readFileSync(kubeconfigFile(settings, "admin"), "utf8")) as Kubeconfig; // cast: written by this program
      } catch (err) {
        throw new Failure(
          `cannot read the administrator's kubeconfig (${messageOf(err)}); make it with ./cox up${nameFlag(name)}`,
        );
      }
      const ours = newKubeconfig(admin, context ?? `cox-${name}`, settings.state);
      if (!merge) {
        console.log(JSON.stringify(ours, undefined, 2));
        return;
      }
      const file = targetFile(process.env);
      const { backup, changed } = mergeInto(file, ours);
      const entry = ours.contexts[0].name;
      console.log(
        changed
          ? `context ${entry} is in ${file}${backup === undefined ? "" : `; what it was is in ${backup}`}`
          : `context ${entry} was in ${file} already`,
      );
      console.log(`use it with: kubectl --context ${entry} get nodes`);
    });
}
