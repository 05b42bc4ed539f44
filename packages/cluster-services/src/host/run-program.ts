import { spawn } from "node:child_process";

/** A program of the machine that ended with another exit code than 0, or cannot be started. */
export class ProgramError extends Error {
  /** undefined when it was not started or killed. */
  readonly exitCode: number | undefined;
  constructor(message: string, exitCode: number | undefined) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Runs a program of the machine. Tests replace it. */
export type RunProgram = (command: string, args: readonly string[], input?: string) => Promise<string>;

/** Services' PATH lacks the folders of administration programs on some machines. */
const path = `${process.env["PATH"] ?? "/usr/bin:/bin"}:/usr/local/sbin:/usr/sbin:/sbin`;
const longestMs = 60_000;

/**
 * Runs a program to its end.
 * @param input its standard input
 * @returns its standard output
 * @throws ProgramError with the program's error output
 */
export const runProgram: RunProgram = (command, args, input = "") =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "pipe"],
      timeout: longestMs,
      env: { ...process.env, PATH: path },
    });
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
    child.stdin.on("error", () => {}); // it ended before it had read all; its exit code says why
    child.on("error", (err) => reject(new ProgramError(`cannot run ${command}: ${err.message}`, undefined)));
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(Buffer.concat(output).toString("utf8"));
      const said = Buffer.concat(errors).toString("utf8").trim();
      const end = signal === null ? `exit code ${code}` : `killed by ${signal}`;
      reject(new ProgramError(`${[command, ...args].join(" ")}: ${said || end}`, code ?? undefined));
    });
    child.stdin.end(input);
  });
