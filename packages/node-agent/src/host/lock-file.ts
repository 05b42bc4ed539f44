import { spawn } from "node:child_process";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

export interface LockFile {
  /** Resolves when somebody else wants the lock (`--exit-on-lock-contention`), or the signal is aborted. */
  contended(signal: AbortSignal): Promise<void>;
  release(): Promise<void>;
}

const lookMs = 1_000;

/**
 * `--lock-file`: waits for the lock and keeps it, so that of several agents on a machine one works at a time.
 * @throws Error when the file cannot be opened or locked
 * Source: cmd/kubelet/app/server.go, pkg/util/flock
 */
export async function acquireLockFile(path: string, { clock, log }: { clock: Clock; log: Logger }): Promise<LockFile> {
  log.info("Acquiring file lock", { path });
  const file = await open(path, "a+", 0o600).catch((err: Error) => {
    throw new Error(`unable to acquire file lock on ${JSON.stringify(path)}: ${err.message}`);
  });
  try {
    await lockOpenFile(file);
  } catch (err) {
    await file.close();
    throw new Error(`unable to acquire file lock on ${JSON.stringify(path)}: ${(err as Error).message}`);
  }
  return {
    async contended(signal) {
      while (!signal.aborted) {
        if (await othersWait(file)) return;
        await clock.sleep(lookMs, signal).catch(() => undefined);
      }
    },
    release: () => file.close(),
  };
}

/**
 * Waits for the lock of a file. It is on the open file, which flock (util-linux) inherits: it stays when flock has ended,
 * as long as we hold the file. @throws Error
 */
export function lockOpenFile(file: FileHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("flock", ["--exclusive", "3"], { stdio: ["ignore", "ignore", "ignore", file.fd] });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`flock ended with ${code}`))));
  });
}

/** The kernel lists those that wait behind those that hold: `1: -> FLOCK ADVISORY WRITE 42 fe:01:4711 0 EOF`. */
async function othersWait(file: FileHandle): Promise<boolean> {
  const { ino } = await file.stat();
  const locks = (await readFile("/proc/locks", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
  return locks.some(([, arrow, kind, , , , where]) => arrow === "->" && kind === "FLOCK" && where?.split(":")[2] === String(ino));
}
