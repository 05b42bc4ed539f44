import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { readSettings, type Settings } from "@coxswain/dev-cluster/settings";
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
  /** Another kubectl than the one of this release. */
  program?: string;
}

/** Runs the real kubectl as the cluster's admin, to its end. Never throws for a non-zero exit code. */
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

/** The same for a command that must succeed. @returns what it printed. */
export async function kubectl(...args: (string | KubectlOptions)[]): Promise<string> {
  const options: KubectlOptions = Object.assign({}, ...args.filter((arg) => typeof arg !== "string"));
  const words = args.filter((arg) => typeof arg === "string");
  const outcome = await tryKubectl(words, options);
  if (outcome.code !== 0) throw new KubectlError(words, outcome);
  return outcome.stdout;
}

/** kubectl ended with another exit code than 0. */
export class KubectlError extends Error {
  readonly outcome: Outcome;
  constructor(args: readonly string[], outcome: Outcome) {
    super(`kubectl ${args.join(" ")}: exit code ${outcome.code}\n${outcome.stderr}${outcome.stdout}`);
    this.outcome = outcome;
  }
}

/** For `waitFor`: the object, or what its resource is served by, is not there yet. */
export const isNotFound = (err: Error): boolean =>
  err instanceof KubectlError &&
  /\(NotFound\)|doesn't have a resource type|couldn't find resource|no matches for kind/.test(err.outcome.stderr);

/** For `waitFor`: the API server is away or has only begun to start. */
export const isAway = (err: Error): boolean =>
  err instanceof KubectlError &&
  /refused|EOF|connection reset|Unable to connect|TLS handshake timeout|ServiceUnavailable|not ready|readyz check failed/.test(
    err.outcome.stderr,
  );

export async function getJson<T>(...args: string[]): Promise<T> {
  return JSON.parse(await kubectl("get", ...args, "-o", "json")) as T;
}

/** A kubectl that goes on until the test ends it (`get -w`, `logs -f`, `port-forward`). */
export function startKubectl(args: readonly string[], withInput = false, using = program): ChildProcess {
  return spawn(using, ["--kubeconfig", kubeconfigFile(settings, "admin"), ...args], {
    stdio: [withInput ? "pipe" : "ignore", "pipe", "pipe"],
  });
}

/** A kubectl whose input and output are a terminal, as `exec -it` asks for; what is written goes to the terminal. */
export function startInTerminal(args: readonly string[]): ChildProcess {
  const quoted = [program, "--kubeconfig", kubeconfigFile(settings, "admin"), ...args].map(
    (word) => `'${word.replaceAll("'", "'\\''")}'`,
  );
  return spawn("script", ["--quiet", "--flush", "--return", "--command", quoted.join(" "), "/dev/null"], {
    stdio: ["pipe", "pipe", "pipe"],
  });
}

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
    child.once("close", (code, signal) => resolve({ ...outcome, code: code ?? (signal === null ? 1 : 137) }));
  });
}

/** Resolves with everything printed so far once it matches; rejects when the program ends first or time runs out. */
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
