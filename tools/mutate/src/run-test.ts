import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import type { Overlay } from "./in-process/messages.ts";

export interface TestRun {
  readonly result: "passed" | "failed" | "timed out";
  readonly seconds: number;
  /** End of the output. */
  readonly output: string;
}

const shownChars = 4000;
/** Time between SIGTERM and SIGKILL. */
const graceMs = 5000;

/** Runs one test file in its own process group, which is killed on timeout. */
export function runTest(root: string, test: string, timeoutMs: number, overlay: Overlay | undefined): Promise<TestRun> {
  const began = performance.now();
  const env: NodeJS.ProcessEnv = { ...process.env };
  delete env["NODE_TEST_CONTEXT"]; // otherwise tests of this tool would report to the outer test runner
  if (overlay !== undefined) {
    env["COX_MUTANT_URL"] = pathToFileURL(overlay.file).href;
    env["COX_MUTANT_SOURCE"] = overlay.source;
    // Through the environment, so that programs started by a test inherit it.
    env["NODE_OPTIONS"] = `${env["NODE_OPTIONS"] ?? ""} --import=${new URL("./overlay.ts", import.meta.url).href}`;
  }
  const child = spawn(process.execPath, ["-C", "cox-source", "--max-old-space-size=2048", test], {
    cwd: root,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-shownChars);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  return new Promise((resolve) => {
    let timedOut = false;
    let kill: NodeJS.Timeout | undefined;
    const timer = setTimeout(() => {
      timedOut = true;
      signalGroup(child.pid, "SIGTERM");
      kill = setTimeout(() => signalGroup(child.pid, "SIGKILL"), graceMs);
    }, timeoutMs);
    const end = (code: number | null): void => {
      clearTimeout(timer);
      clearTimeout(kill);
      // Kills processes left behind by a failed test.
      signalGroup(child.pid, "SIGKILL");
      const seconds = (performance.now() - began) / 1000;
      resolve({ result: timedOut ? "timed out" : code === 0 ? "passed" : "failed", seconds, output });
    };
    child.once("exit", end);
    child.once("error", (err) => {
      output += err.message;
      end(1);
    });
  });
}

/** Signals a process and those that it started; `pid` is undefined for one that did not start. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // the group has already exited
  }
}
