import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { getPriority, setPriority } from "node:os";

/** Added to the nice value of load generators: they stand for other machines, whose work does not take the servers' CPUs. */
const lowerBy = 10;

/** A load generator in a separate process, so that it does not delay the measurements in this one. */
export class LoadProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when the process has sent its first message. @throws Error when it exits before */
  static async start(file: string, args: readonly string[]): Promise<LoadProcess> {
    const child = fork(file, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    if (child.pid !== undefined) setPriority(child.pid, Math.min(19, getPriority() + lowerBy));
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`${file} ended with ${String(code)}`);
    });
    await Promise.race([once(child, "message"), ended]);
    ended.catch(() => {}); // an error is thrown by the next `report`
    return new LoadProcess(child);
  }

  /** The current counters of the process. */
  async report<T>(): Promise<T> {
    const answer = once(this.#child, "message");
    this.#child.send("report");
    const [value] = await answer;
    return value as T; // cast: the child's answers have the type of the question
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Runs in the child process, which exits with its parent. */
export function serveReports(report: () => unknown): void {
  process.on("message", () => process.send?.(report()));
  process.once("disconnect", () => process.exit(0));
  process.send?.("ready");
}
