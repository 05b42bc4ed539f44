import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Failure } from "./failure.ts";

const run = promisify(execFile);

/** Runs a program to its end. @returns its standard output. @throws Failure with what it printed. */
export async function exec(command: string, args: readonly string[], input?: string): Promise<string> {
  try {
    const running = run(command, [...args], { maxBuffer: 64 << 20 });
    if (input !== undefined) running.child.stdin?.end(input);
    return (await running).stdout;
  } catch (err) {
    const output = (err as { stderr?: string }).stderr?.trim() || (err as Error).message;
    throw new Failure(`${command} ${args.join(" ")}: ${output}`);
  }
}

/** The same for something that may fail because there is nothing to do. */
export async function tryExec(command: string, args: readonly string[]): Promise<string | undefined> {
  return exec(command, args).catch(() => undefined);
}

/** Where a program is; also looks where Debian keeps those for root, which a user's PATH may lack. */
export function which(program: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

export function need(program: string, debianPackage: string): string {
  const found = which(program);
  if (found === undefined) throw new Failure(`${program} is missing; install Debian's package ${debianPackage}`);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
