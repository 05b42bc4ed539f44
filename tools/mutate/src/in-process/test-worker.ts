import { type ChildProcess, spawn } from "node:child_process";
import { signalGroup, type TestRun } from "../run-test.ts";
import type { RunReply, RunRequest } from "./messages.ts";

const program = new URL("./worker.ts", import.meta.url).pathname;
/** Modules that were loaded for earlier runs are never freed: a process is replaced after so many runs, or when it has become so large. */
const mostRuns = 150;
const mostBytes = 1.5e9;
const shownChars = 4000;

/** A process of worker.ts, started at the first run and again when it has ended. */
export class TestWorker {
  readonly #root: string;
  #child: ChildProcess | undefined;
  #runs = 0;
  #output = "";

  /** @param root working directory of the tests */
  constructor(root: string) {
    this.#root = root;
  }

  /** Runs a test file; one at a time. A process that hangs or ends is replaced. */
  async run(request: RunRequest, timeoutMs: number): Promise<TestRun> {
    const began = performance.now();
    this.#child ??= this.#start();
    const child = this.#child;
    this.#output = "";
    const reply = await this.#answerOf(child, request, timeoutMs);
    const seconds = (performance.now() - began) / 1000;
    if (reply === "timed out" || reply === "ended") {
      this.close();
      return { result: reply === "timed out" ? reply : "failed", seconds, output: `the process ${reply}: ${this.#output}` };
    }
    if (++this.#runs >= mostRuns || reply.residentBytes > mostBytes) this.close();
    return { result: reply.failure === undefined ? "passed" : "failed", seconds, output: reply.failure ?? "" };
  }

  close(): void {
    signalGroup(this.#child?.pid, "SIGKILL");
    this.#child = undefined;
    this.#runs = 0;
  }

  #start(): ChildProcess {
    const env: NodeJS.ProcessEnv = { ...process.env };
    delete env["NODE_TEST_CONTEXT"];
    const child = spawn(process.execPath, ["-C", "cox-source", "--max-old-space-size=3072", program], {
      cwd: this.#root,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const keep = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-shownChars);
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    return child;
  }

  #answerOf(child: ChildProcess, request: RunRequest, timeoutMs: number): Promise<RunReply | "timed out" | "ended"> {
    return new Promise((resolve) => {
      const end = (reply: RunReply | "timed out" | "ended"): void => {
        clearTimeout(timer);
        child.off("message", end).off("exit", onExit).off("error", onExit);
        resolve(reply);
      };
      const onExit = (): void => end("ended");
      const timer = setTimeout(() => end("timed out"), timeoutMs);
      child.on("message", end).on("exit", onExit).on("error", onExit);
      child.send(request, (err) => {
        if (err) onExit();
      });
    });
  }
}
