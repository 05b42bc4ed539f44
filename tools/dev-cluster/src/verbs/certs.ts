import { newCertsCommand } from "@coxswain/pki/command";
import type { Command } from "commander";
import { pkiPlan } from "../pki.ts";
import { readSettings } from "../read-settings.ts";
import { newClusterVerb } from "./command.ts";

/** `./cox certs`, `./cox certs check`, `./cox certs renew`. */
export function certsVerb(root: string): Command {
  const command = newClusterVerb("certs", "make what is missing of the certificates and kubeconfigs, check and renew them", {
    notes: [
      "Files that are there stay as they are. `up` makes what is missing too, and renews what ends soon.",
      "After `renew`, `up` restarts the daemons whose kubeconfig has changed.",
    ],
    examples: [
      "./cox certs --dry-run            what would be made",
      "./cox certs check                every certificate with its end; exit code 1 when one has expired",
      "./cox certs renew                all that the cluster's authorities signed",
      "./cox certs renew scheduler.conf one of them",
    ],
    files: [".cox/pki/, .cox/*.conf"],
  });
  return newCertsCommand<{ name: string }>({
    command,
    program: "./cox certs",
    configure: (subcommand) => subcommand.option("--name <name>", "which cluster", "default"),
    plan: ({ name }) => pkiPlan(readSettings(root, process.env, name)),
  });
}
