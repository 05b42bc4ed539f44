import { spawn } from "node:child_process";
import { accessSync, constants as fsConstants, readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "./failure.ts";

const largestOutputBytes = 64 << 20;

/**
 * Runs a program to completion, in its own session, so that Ctrl-C does not kill it during our cleanup.
 * @returns its standard output. @throws Failure with its output.
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
      if (err.code !== "EPIPE") inputFailure = err; // EPIPE: programs may exit before reading all input
    });
  }
  const ended = await new Promise<string | undefined>((resolve) => {
    child.once("error", (err) => resolve(err.message));
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : output.stderr.trim() || `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  if (inputFailure !== undefined) throw new Failure(`cannot read the input of ${command}: ${inputFailure.message}`);
  if (ended !== undefined) throw new Failure(`${command} ${args.join(" ")}: ${ended}`);
  return output.stdout;
}

/** Like `exec`, but returns undefined on failure, e.g. when there is nothing to remove. */
export async function tryExec(command: string, args: readonly string[]): Promise<string | undefined> {
  return exec(command, args).catch(() => undefined);
}

/** Exit code of an ended program, as in a shell: 128 plus the number of the signal that ended it. */
export const exitCodeOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? (signal === null ? 1 : 128 + constants.signals[signal]);

/** Runs a program with inherited stdio, forwards signals and returns its exit code, see `exitCodeOf`. */
export function passThrough(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  const child = spawn(command, args, { stdio: "inherit", env });
  const forward = (name: NodeJS.Signals): void => {
    // Ctrl-C is sent to the child too; daemons exit at once when they get a second one.
    if (name !== "SIGINT" || !isInForeground()) child.kill(name);
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, forward);
  return new Promise<number>((resolve, reject) => {
    child.once("error", (err) => reject(new Failure(`cannot run ${command}: ${err.message}`)));
    child.once("exit", (code, signal) => resolve(exitCodeOf(code, signal)));
  }).finally(() => {
    for (const name of names) process.off(name, forward);
  });
}

/** Whether a terminal sends its signals to this process and its children. Source: proc(5), pgrp and tpgid of /proc/<pid>/stat */
function isInForeground(): boolean {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}

/** Path of a program; also searches the sbin folders, which may be missing in a user's PATH. */
export function which(program: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

/** Path of a required program. @throws Failure naming the Debian package that contains it. */
export function need(program: string, debianPackage: string): string {
  const found = which(program);
  if (found === undefined) throw new Failure(`${program} is missing; install Debian's package ${debianPackage}`);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, fsConstants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
