import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ending, type FileResult, type Reported, resultOf, underWay } from "./reported.ts";

export interface Limits {
  /** Time limit of a test, to end hanging ones; generous, since it must not depend on the machine's speed. */
  readonly testMs: number;
  /** Time without running tests after which the process is stopped, because something keeps it alive. */
  readonly idleMs: number;
  /** Additional time beyond `testMs`, for a blocked event loop in which Node's own time limit cannot fire. */
  readonly graceMs: number;
  /** Time limit of the file: the budget of a long form. Default: none. */
  readonly fileMs?: number;
}

export interface RunOptions {
  /** Root of the repository; the working directory of the process. */
  readonly root: string;
  readonly namePatterns: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Limits;
  /** Runs the process in a new network namespace with only a loopback interface; needs root. */
  readonly networkOfItsOwn?: boolean;
  /** Additional flags of Node. */
  readonly nodeFlags?: readonly string[] | undefined;
  /** Stops the process. */
  readonly signal: AbortSignal;
}

export interface FileRun extends FileResult {
  readonly file: string;
  readonly durationMs: number;
  /** End of stdout and stderr. */
  readonly output: string;
}

const lookMs = 500;
const outputBytes = 64 * 1024;
/** Command prefix that runs a program in a new network namespace. */
const isolated = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];

/** Runs the tests of one file in its own process and process group. @param file relative to the root */
export async function runFile(file: string, options: RunOptions): Promise<FileRun> {
  const begin = performance.now();
  const { lines, ending, output } = await runProcess([file], options);
  return { ...resultOf(file, lines, ending), file, durationMs: performance.now() - begin, output };
}

interface ProcessRun {
  readonly lines: readonly Reported[];
  readonly ending: Ending;
  /** End of stdout and stderr. */
  readonly output: string;
}

/** Runs Node with the reporter. @param args program and arguments, relative to the root */
export async function runProcess(args: readonly string[], options: RunOptions): Promise<ProcessRun> {
  const directory = mkdtempSync(join(tmpdir(), "cox-test-"));
  const events = join(directory, "events");
  const output = join(directory, "output");
  const child = start(args, { events, output }, options);
  try {
    const ending = await endingOf(child, () => readLines(events), options);
    return { lines: readLines(events), ending, output: lastBytesOf(output) };
  } finally {
    killGroup(child);
    rmSync(directory, { recursive: true, force: true });
  }
}

function start(
  args: readonly string[],
  to: { events: string; output: string },
  { root, namePatterns, env, limits, networkOfItsOwn = false, nodeFlags = [] }: RunOptions,
): ChildProcess {
  const flags = [
    "-C",
    "cox-source",
    `--import=${import.meta.resolve("@coxswain/dev-cluster/compile-cache")}`,
    `--test-timeout=${limits.testMs}`,
    `--test-reporter=${join(import.meta.dirname, "event-writer.ts")}`,
    ...namePatterns.map((pattern) => `--test-name-pattern=${pattern}`),
    ...nodeFlags,
  ];
  // A single file for both streams preserves their order.
  const output = openSync(to.output, "a");
  try {
    const [program = "", ...rest] = [...(networkOfItsOwn ? isolated : []), process.execPath, ...flags, ...args];
    return spawn(program, rest, {
      cwd: root,
      detached: true, // own process group, to kill leftover child processes
      stdio: ["ignore", output, output],
      // NODE_TEST_CONTEXT is set when this code runs below `node --test`, and would change the reporter, as would the batch of a test of this code.
      env: { ...process.env, COX_TEST_BATCH: undefined, ...env, COX_TEST_EVENTS: to.events, NODE_TEST_CONTEXT: undefined },
    });
  } finally {
    closeSync(output);
  }
}

async function endingOf(child: ChildProcess, read: () => Reported[], { limits, signal }: RunOptions): Promise<Ending> {
  let stopped: string | undefined;
  const stop = (why: string): void => {
    stopped ??= why;
    killGroup(child);
  };
  const onAbort = (): void => stop("the run was interrupted");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  let seen = 0;
  const begin = performance.now();
  let lastEventAt = begin;
  const timer = setInterval(() => {
    const lines = read();
    if (lines.length !== seen) {
      seen = lines.length;
      lastEventAt = performance.now();
    }
    const quietMs = performance.now() - lastEventAt;
    const running = underWay(lines);
    const hasRun = lines.some((line) => line.kind === "ended");
    if (performance.now() - begin > (limits.fileMs ?? Number.POSITIVE_INFINITY))
      stop(
        `stopped after its budget of ${(limits.fileMs ?? 0) / 60_000} min, during ${running.join(", ") || "its start or end"}`,
      );
    // Setup before the first test may take as long as a test.
    if ((running.length > 0 || !hasRun) && quietMs > limits.testMs + limits.graceMs)
      stop(
        `stopped after ${Math.round(quietMs / 1000)} s during ${running.join(", ") || "its start or first test"}: nothing ended, not even by its time limit`,
      );
    else if (running.length === 0 && hasRun && quietMs > limits.idleMs)
      stop(
        `stopped ${Math.round(quietMs / 1000)} s after its last test: the process does not end (a timer, socket, child or hook keeps it)`,
      );
  }, lookMs);
  try {
    const [code, endedBy] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null]; // cast: the arguments of the event "exit"
    return { code: code ?? undefined, signal: endedBy ?? undefined, stopped };
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // the group has already exited
  }
}

/** Ignores an incomplete last line. */
function readLines(events: string): Reported[] {
  let text = "";
  try {
    text = readFileSync(events, "utf8");
  } catch {
    // nothing has been reported yet
  }
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Reported); // cast: lines of event-writer.ts
}

/** The last bytes of a file of any size. */
function lastBytesOf(path: string): string {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, outputBytes));
    readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString();
  } finally {
    closeSync(file);
  }
}
