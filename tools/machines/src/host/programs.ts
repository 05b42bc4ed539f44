import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";

const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/** The path of a program; also searches the folders that are only in root's PATH. */
export function findProgram(name: string): string | undefined {
  return folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

interface ProgramOptions {
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** @returns standard output. @throws Failure with the program's error output when it is missing, fails or times out */
export function runProgram(
  name: string,
  args: readonly string[],
  { timeoutMs = 120_000, env }: ProgramOptions = {},
): Promise<string> {
  const path = name.includes("/") ? name : findProgram(name);
  if (path === undefined) return Promise.reject(new Failure(`the program ${name} is not installed`));
  return new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, maxBuffer: 64 << 20, ...(env && { env: { ...process.env, ...env } }) };
    execFile(path, args, options, (err, stdout, stderr) => {
      if (err === null) return resolve(stdout);
      const words = (stderr.trim() || stdout.trim() || err.message).split("\n").slice(-5).join("; ");
      reject(new Failure(`${name} ${args[0] ?? ""}: ${words}`));
    });
  });
}

/** Like {@link runProgram}, when a failure is an expected result. @returns undefined when the program fails */
export const tryProgram = (name: string, ...args: string[]): Promise<string | undefined> =>
  runProgram(name, args).then(
    (text) => text,
    () => undefined,
  );
