import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

export interface TestRun {
  readonly result: "passed" | "failed" | "timed out";
  readonly seconds: number;
  /** The end of what it wrote. */
  readonly output: string;
}

export interface Overlay {
  /** Absolute path of the module that is replaced. */
  readonly file: string;
  /** Absolute path of the file that holds its other text. */
  readonly source: string;
}

const shownChars = 4000;
/** From the first SIGTERM to SIGKILL. */
const graceMs = 5000;

/** One test file in a process group of its own, which is ended with all its children when the time is over. */
export function runTest(root: string, test: string, timeoutMs: number, overlay: Overlay | undefined): Promise<TestRun> {
  const began = performance.now();
  const env: NodeJS.ProcessEnv = { ...process.env };
  delete env["NODE_TEST_CONTEXT"]; // or a test of this tool would be a child of that test
  if (overlay !== undefined) {
    env["COX_MUTANT_URL"] = pathToFileURL(overlay.file).href;
    env["COX_MUTANT_SOURCE"] = overlay.source;
    // By the environment, so that programs which a test starts have it too.
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
      // What a failed test left running.
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

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // the group is gone
  }
}
