/** `coxswain doctor`: reports problems of a cluster, and those to be expected soon, from one of its machines. */
import { join } from "node:path";
import { type DoctorFormat, doctor } from "@coxswain/dev-cluster/doctor/doctor";
import { Command, Option } from "commander";

const command = new Command("coxswain doctor")
  .description("what is wrong with a cluster, or soon will be: findings by severity, each with its remedy")
  .option("--folder <folder>", "kubeconfigs are in it, certificates in its folder pki", "/etc/kubernetes")
  .option("--kubeconfig <file>", "of an administrator (default: admin.conf in the folder)")
  .addOption(new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text"))
  .helpOption("-h, --help", "show this")
  .addHelpText("after", "\nExit code 0: no findings; 1: there are some; 2: the API server did not answer, or wrong usage.")
  .allowExcessArguments(false)
  .exitOverride((err) => process.exit(err.exitCode === 0 ? 0 : 2))
  .action(async ({ folder, kubeconfig, output }: { folder: string; kubeconfig?: string; output: DoctorFormat }) => {
    const data = ["/var/lib/etcd", "/var/lib/kubelet", "/var/lib/containerd", "/var/log"];
    process.exitCode = await doctor({ kubeconfig: kubeconfig ?? join(folder, "admin.conf"), folders: [folder], data }, output);
  });
await command.parseAsync();
