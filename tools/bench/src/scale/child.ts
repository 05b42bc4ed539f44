import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** A part of the load in a separate process, so that it does not delay what is measured here. */
export class LoadProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when the part has sent its first message. @throws Error when it ends before */
  static async start(file: string, args: readonly string[]): Promise<LoadProcess> {
    const child = fork(file, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`${file} ended with ${String(code)}`);
    });
    await Promise.race([once(child, "message"), ended]);
    ended.catch(() => {}); // from here on `report` notices it
    return new LoadProcess(child);
  }

  /** What the part has counted so far. */
  async report<T>(): Promise<T> {
    const answer = once(this.#child, "message");
    this.#child.send("report");
    const [value] = await answer;
    return value as T;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

/** In the process of the part. It ends with the one that has started it. */
export function serveReports(report: () => unknown): void {
  process.on("message", () => process.send?.(report()));
  process.once("disconnect", () => process.exit(0));
  process.send?.("ready");
}
