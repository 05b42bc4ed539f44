import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import { PkiError } from "@coxswain/pki/files";
import type { Command } from "commander";
import { etcdCommand } from "./commands/etcd.ts";
import { initCommand } from "./commands/init.ts";
import { joinCommand } from "./commands/join.ts";
import { type Archive, newCommand } from "./commands/options.ts";
import { resetCommand } from "./commands/reset.ts";
import { rotateCaCommand } from "./commands/rotate-ca.ts";
import { tokenCommand } from "./commands/token.ts";
import { upgradeCommand } from "./commands/upgrade.ts";
import { Failure } from "./failure.ts";

/** All commands that set machines up, below `coxswain`. */
function program(archive: Archive): Command {
  const root = newCommand("coxswain", "Makes machines a cluster.").exitOverride((err) =>
    process.exit(err.exitCode === 0 ? 0 : 2),
  );
  for (const command of [
    initCommand(archive),
    joinCommand(archive),
    resetCommand(archive),
    tokenCommand(),
    etcdCommand(archive),
    upgradeCommand(archive),
    rotateCaCommand(),
  ])
    root.addCommand(inherit(command));
  return root;
}

/** A wrong command line ends with 2 in every subcommand. */
function inherit(command: Command): Command {
  command.exitOverride((err) => process.exit(err.exitCode === 0 ? 0 : 2));
  for (const child of command.commands) inherit(child);
  return command;
}

/** @param args the command's name first @returns the exit code: 0, 1 for a failure, 2 for a wrong command line or file */
export async function runMachines(archive: Archive, args: readonly string[]): Promise<number> {
  try {
    await program(archive).parseAsync([...args], { from: "user" });
    return 0;
  } catch (err) {
    const lines = err instanceof Failure || err instanceof PkiError ? err.message : causesOf(err);
    for (const line of lines.split("\n")) process.stderr.write(`error: ${line}\n`);
    return err instanceof Failure ? err.exitCode : 1;
  }
}
