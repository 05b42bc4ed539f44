import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { PkiError } from "@coxswain/pki/files";
import { Command, CommanderError } from "commander";
import { Failure } from "./failure.ts";

const usageExitCode = 2;

/** Modules are loaded lazily, so that each command loads only what it needs. */
const verbs: Readonly<Record<string, (root: string) => Promise<Command>>> = {
  up: async (root) => (await import("./verbs/up.ts")).upVerb(root),
  down: async (root) => (await import("./verbs/down.ts")).downVerb(root),
  status: async (root) => (await import("./verbs/status.ts")).statusVerb(root),
  list: async (root) => (await import("./verbs/list.ts")).listVerb(root),
  logs: async (root) => (await import("./verbs/logs.ts")).logsVerb(root),
  kubectl: async (root) => (await import("./verbs/kubectl.ts")).kubectlVerb(root),
  kubeconfig: async (root) => (await import("./verbs/kubeconfig.ts")).kubeconfigVerb(root),
  load: async (root) => (await import("./verbs/load.ts")).loadVerb(root),
  certs: async (root) => (await import("./verbs/certs.ts")).certsVerb(root),
  doctor: async (root) => (await import("./verbs/doctor.ts")).doctorVerb(root),
  run: async (root) => (await import("./verbs/run.ts")).runVerb(root),
};

/**
 * The commands of `./cox` that manage clusters.
 * @param root the repository
 * @param verb builds only this command; default all
 */
export async function newProgram(root: string, verb?: string): Promise<Command> {
  const program = new Command("./cox").enablePositionalOptions().helpOption(false).helpCommand(false);
  const names = verb !== undefined && Object.hasOwn(verbs, verb) ? [verb] : Object.keys(verbs);
  for (const name of names) program.addCommand(await verbs[name]!(root));
  for (const command of [program, ...program.commands.flatMap((each) => [each, ...each.commands])]) {
    command.exitOverride().configureOutput({ outputError: () => {} }); // errors are printed by runProgram
  }
  return program;
}

/**
 * Runs a command line and sets the exit code: 0, 1 on failure, 2 for an invalid command line, 128 + signal number when
 * interrupted. A failure is printed on one line.
 */
export async function runProgram(root: string, args: readonly string[]): Promise<void> {
  try {
    const program = await newProgram(root, args[0]);
    await program.parseAsync([...args], { from: "user" });
  } catch (err) {
    const { text, code } = explain(err, args[0] ?? "");
    if (text !== undefined) process.stderr.write(`cox: ${text}\n`);
    process.exitCode = code;
  }
}

/** Pure: the text to print for an error, and the exit code. */
export function explain(err: unknown, verb: string): { text: string | undefined; code: number } {
  if (err instanceof CommanderError) {
    if (err.exitCode === 0) return { text: undefined, code: 0 };
    const message = err.message.replace(/^error: /, "").replaceAll(/\s*\n\s*/g, " ");
    return { text: `${message.replace(/\.$/, "")}; see ./cox ${verb === "" ? "" : `${verb} `}--help`, code: usageExitCode };
  }
  if (err instanceof Failure) return { text: err.message, code: err.exitCode };
  if (err instanceof PkiError) return { text: err.message.replaceAll("\n", "\ncox: "), code: 1 };
  const [code, message] = [errorCode(err), messageOf(err)];
  const remedy = code === undefined ? undefined : remedies[code];
  // System errors with a known remedy are printed without stack; everything else is a bug and gets one.
  if (remedy !== undefined) return { text: `${message.replace(/^([A-Z]+): /, "")}; ${remedy}`, code: 1 };
  return { text: (err instanceof Error ? err.stack : undefined) ?? String(err), code: 1 };
}

const remedies: Readonly<Record<string, string>> = {
  EACCES: "the file belongs to another user: run ./cox as that user, or in a clone of your own",
  EPERM: "this user may not do that: run ./cox as root, or as the owner of the files",
  EROFS: "the file system is read-only: work in a clone elsewhere, or set COX_STATE",
  ENOSPC: "the disk is full: free some space and try again",
  EDQUOT: "your disk quota is used up: free some space and try again",
  EMFILE: "too many files are open: raise the limit (ulimit -n)",
  ENOTDIR: "a file is where a folder is needed: move it away",
};
