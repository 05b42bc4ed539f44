import { join } from "node:path";
import { type Command, Option } from "commander";
import { type DoctorFormat, doctor } from "../doctor/doctor.ts";
import { kubeconfigFile } from "../pki.ts";
import { existingCluster, newClusterVerb } from "./command.ts";

/** `./cox doctor`. */
export function doctorVerb(root: string): Command {
  return newClusterVerb("doctor", "what is wrong with a cluster, or soon will be: findings by severity, each with its remedy", {
    notes: [
      "Looks at certificates, clocks, etcd, disks, nodes, leaders, API services, webhooks, refused requests, evictions,",
      "namespaces in deletion, versions, caches, quotas, deprecated APIs with who writes them, and signing requests.",
      "It changes nothing. Exit code 0: no findings; 1: there are some; 2: the API server did not answer. What is wrong with",
      "one object: ./cox kubectl why.",
    ],
    examples: ["./cox doctor", "./cox doctor -o json"],
    files: [".cox/admin.conf, .cox/pki/, .cox/*.conf"],
  })
    .addOption(new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text"))
    .action(async ({ name, output }: { name: string; output: DoctorFormat }) => {
      const settings = existingCluster(root, name, "doctor");
      const places = {
        kubeconfig: kubeconfigFile(settings, "admin"),
        folders: [join(settings.state, "pki"), settings.state],
        data: [settings.state],
      };
      process.exitCode = await doctor(places, output);
    });
}
