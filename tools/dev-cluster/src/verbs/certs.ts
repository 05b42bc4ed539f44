import { join } from "node:path";
import type { Command } from "commander";
import { pkiPlan, writePki } from "../pki.ts";
import { readSettings } from "../settings.ts";
import { newClusterVerb } from "./command.ts";

/** `./cox certs`. */
export function certsVerb(root: string): Command {
  return newClusterVerb("certs", "write the PKI and kubeconfigs alone", {
    examples: ["./cox certs"],
    files: [".cox/pki/, .cox/*.conf"],
  }).action(async ({ name }: { name: string }) => {
    const settings = readSettings(root, process.env, name);
    await writePki(pkiPlan(settings));
    console.log(`certificates are in ${join(settings.state, "pki")}, kubeconfigs in ${settings.state}`);
  });
}
