import { isOneOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { Command } from "commander";
import { passThrough } from "../commands.ts";
import { daemonNames, programOf } from "../daemons.ts";
import { UsageFailure } from "../failure.ts";
import { readSettings } from "../read-settings.ts";
import { newVerb } from "./command.ts";

/** `./cox run <daemon>`: runs a built daemon in the foreground. */
export function runVerb(root: string): Command {
  return newVerb("run", "one daemon in the foreground, with its own flags", {
    examples: ["./cox run kube-apiserver --help", "./cox run kube-scheduler --kubeconfig .cox/scheduler.conf"],
    notes: ["All flags behind the daemon's name are the daemon's."],
  })
    .argument("<daemon>", daemonNames.join(", "))
    .argument("[flags...]")
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (daemon: string, flags: string[]) => {
      if (!isOneOf(daemonNames, daemon)) throw new UsageFailure(`there is no daemon ${daemon}; one of ${daemonNames.join(", ")}`);
      process.exitCode = await passThrough(process.execPath, [programOf(readSettings(root), daemon), ...flags]);
    });
}
