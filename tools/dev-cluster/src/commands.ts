import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "./failure.ts";

const largestOutputBytes = 64 << 20;

/**
 * Runs a program to its end. It is in a session of its own: Ctrl-C is for us to act on, and may come while we clean up.
 * @returns its standard output. @throws Failure with what it printed.
 */
export async function exec(command: string, args: readonly string[], input?: string | Readable): Promise<string> {
  const output = { stdout: "", stderr: "" };
  const child = spawn(command, args, { detached: true, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (chunk: string) => {
      if (output[name].length < largestOutputBytes) output[name] += chunk;
    });
  }
  let inputFailure: Error | undefined;
  if (child.stdin !== null) {
    pipeline(typeof input === "string" ? [input] : (input ?? []), child.stdin).catch((err: NodeJS.ErrnoException) => {
      if (err.code !== "EPIPE") inputFailure = err; // a program may read only a part of it
    });
  }
  const ended = await new Promise<string | undefined>((resolve) => {
    child.once("error", (err) => resolve(err.message));
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : output.stderr.trim() || `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  if (inputFailure !== undefined) throw new Failure(`cannot read what ${command} is given: ${inputFailure.message}`);
  if (ended !== undefined) throw new Failure(`${command} ${args.join(" ")}: ${ended}`);
  return output.stdout;
}

/** The same for something that may fail because there is nothing to do. */
export async function tryExec(command: string, args: readonly string[]): Promise<string | undefined> {
  return exec(command, args).catch(() => undefined);
}

/** Runs a program in our place: its input, output, signals and exit code are ours. */
export function passThrough(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  const child = spawn(command, args, { stdio: "inherit", env });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => child.kill(name));
  return new Promise((resolve, reject) => {
    child.once("error", (err) => reject(new Failure(`cannot run ${command}: ${err.message}`)));
    child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 130)));
  });
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
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
