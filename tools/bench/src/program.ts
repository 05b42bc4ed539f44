import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openConnection } from "./http.ts";

/** Command line of an API server, and how to connect to it. */
export interface Program {
  readonly name: string;
  readonly command: readonly string[];
  /** Token of a user in system:masters. */
  readonly token: string;
  readonly ca: Buffer | undefined;
}

export interface RunningProgram {
  readonly url: string;
  readonly pid: number;
  /** Time from process start to the first 200 of /readyz, in ms. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Command line of a running process. */
export function programOf(pid: number, token: string, ca: Buffer | undefined): Program {
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  return { name: "against", command, token, ca };
}

/** Replaces flags of the form `--flag=value`. */
function withFlags(command: readonly string[], flags: Readonly<Record<string, string>>): string[] {
  const kept = command.filter((word) => !Object.keys(flags).some((flag) => word.startsWith(`--${flag}=`)));
  return [...kept, ...Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`)];
}

const pollMs = 10;
const startLimitMs = 120_000;

/** @throws Error with the end of its output when it does not become ready. */
export async function startProgram(program: Program, flags: Readonly<Record<string, string>>): Promise<RunningProgram> {
  const [file = "", ...args] = withFlags(program.command, flags);
  const url = `https://127.0.0.1:${flags["secure-port"]}`;
  const began = performance.now();
  // PDEATHSIG: the program is killed when this process exits for any reason.
  const child = spawn("setpriv", ["--pdeathsig", "KILL", file, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000);
  });
  const stop = (): Promise<void> => end(child);
  try {
    while (!(await isReady(program, url))) {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
      if (performance.now() - began > startLimitMs) throw new Error(`not ready after ${startLimitMs} ms`);
      await sleep(pollMs);
    }
  } catch (err) {
    await stop();
    throw new Error(`the API server did not start: ${output}`, { cause: err });
  }
  const readyMs = performance.now() - began;
  return { url, pid: child.pid!, readyMs, stop };
}

/** False while connections are refused or /readyz fails. */
async function isReady({ token, ca }: Program, url: string): Promise<boolean> {
  const connection = await openConnection(url, token, ca).catch(() => undefined);
  try {
    return (await connection?.request("/readyz"))?.status === 200;
  } catch {
    return false;
  } finally {
    connection?.close();
  }
}

/** Sends SIGTERM first, so that a CPU profile is written. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await gone;
  clearTimeout(kill);
}
