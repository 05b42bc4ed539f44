import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exitCodeOf } from "@coxswain/dev-cluster/commands";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import type { Settings } from "@coxswain/dev-cluster/settings";
import { lookedAt } from "./wait-for.ts";

export const settings: Settings = readSettings(join(dirname(fileURLToPath(import.meta.url)), "..", ".."));
const program = await findKubectl(settings);

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface KubectlOptions {
  input?: string;
  timeoutMs?: number;
  /** Path of another kubectl; default is the one of this release. */
  program?: string;
}

/** Runs kubectl as administrator until it exits. Never throws for a non-zero exit code. */
export async function tryKubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Outcome> {
  const child = startKubectl(args, options.input !== undefined, options.program);
  if (options.input !== undefined) child.stdin?.end(options.input);
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 240_000);
  try {
    const outcome = await outcomeOf(child);
    lookedAt(`kubectl ${args.join(" ")}: exit code ${outcome.code}\n${outcome.stderr}${outcome.stdout}`);
    return outcome;
  } finally {
    clearTimeout(timer);
  }
}

/** Like `tryKubectl`, but throws on failure. @returns its standard output. */
export async function kubectl(...args: (string | KubectlOptions)[]): Promise<string> {
  const options: KubectlOptions = Object.assign({}, ...args.filter((arg) => typeof arg !== "string"));
  const words = args.filter((arg) => typeof arg === "string");
  const outcome = await tryKubectl(words, options);
  if (outcome.code !== 0) throw new KubectlError(words, outcome);
  return outcome.stdout;
}

/** kubectl exited with a non-zero code. */
export class KubectlError extends Error {
  readonly outcome: Outcome;
  constructor(args: readonly string[], outcome: Outcome) {
    super(`kubectl ${args.join(" ")}: exit code ${outcome.code}\n${outcome.stderr}${outcome.stdout}`);
    this.outcome = outcome;
  }
}

/** Retry condition for `waitFor`: the object or its resource does not exist yet. */
export const isNotFound = (err: Error): boolean =>
  err instanceof KubectlError &&
  /\(NotFound\)|doesn't have a resource type|couldn't find resource|no matches for kind/.test(err.outcome.stderr);

/** Retry condition for `waitFor`: the API server is down or starting. */
export const isAway = (err: Error): boolean =>
  err instanceof KubectlError &&
  /refused|EOF|connection reset|Unable to connect|TLS handshake timeout|ServiceUnavailable|not ready|readyz check failed/.test(
    err.outcome.stderr,
  );

/** `kubectl get … -o json`, parsed. @throws KubectlError for a non-zero exit code. */
export async function getJson<T>(...args: string[]): Promise<T> {
  return JSON.parse(await kubectl("get", ...args, "-o", "json")) as T;
}

/** Starts a long-running kubectl (`get -w`, `logs -f`, `port-forward`). */
export function startKubectl(args: readonly string[], withInput = false, using = program): ChildProcess {
  return spawn(using, ["--kubeconfig", kubeconfigFile(settings, "admin"), ...args], {
    stdio: [withInput ? "pipe" : "ignore", "pipe", "pipe"],
  });
}

/** Starts kubectl with a pseudo-terminal, as required by `exec -it`; stdin and stdout are connected to it. */
export function startInTerminal(args: readonly string[]): ChildProcess {
  const quoted = [program, "--kubeconfig", kubeconfigFile(settings, "admin"), ...args].map(
    (word) => `'${word.replaceAll("'", "'\\''")}'`,
  );
  return spawn("script", ["--quiet", "--flush", "--return", "--command", quoted.join(" "), "/dev/null"], {
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** Resolves with the output and exit code when the process has ended, see `exitCodeOf`. */
export function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const outcome: Outcome = { code: -1, stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk: Buffer) => {
    outcome.stdout += chunk;
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    outcome.stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ ...outcome, code: exitCodeOf(code, signal) }));
  });
}

/** Resolves with the output so far when it matches; rejects when the program exits before or on timeout. */
export function printed(child: ChildProcess, pattern: RegExp, timeoutMs = 120_000): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${pattern} was not printed within ${timeoutMs} ms; so far: ${text}`)),
      timeoutMs,
    );
    const look = (chunk: Buffer): void => {
      text += chunk;
      if (!pattern.test(text)) return;
      clearTimeout(timer);
      resolve(text);
    };
    child.stdout?.on("data", look);
    child.stderr?.on("data", look);
    child.once("close", () => {
      clearTimeout(timer);
      reject(new Error(`ended before it printed ${pattern}: ${text}`));
    });
  });
}
