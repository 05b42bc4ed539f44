import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

interface LockFile {
  /**
   * Resolves when another process waits for the lock (`--exit-on-lock-contention`), when the lock is lost, or when the
   * signal is aborted.
   */
  contended(signal: AbortSignal): Promise<void>;
  release(): Promise<void>;
}

const lookMs = 1_000;

/**
 * `--lock-file`: waits for the lock and holds it, so that only one agent runs on a machine.
 * @throws Error when the file cannot be opened or locked
 * Source: cmd/kubelet/app/server.go, pkg/util/flock
 */
export async function acquireLockFile(path: string, { clock, log }: { clock: Clock; log: Logger }): Promise<LockFile> {
  log.info("Acquiring file lock", { path });
  const { holder, inode } = await holdLock(path).catch((err: Error) => {
    throw new Error(`unable to acquire file lock on ${JSON.stringify(path)}: ${err.message}`);
  });
  const ended = () => holder.exitCode !== null || holder.signalCode !== null;
  return {
    async contended(signal) {
      while (!signal.aborted && !ended() && !hasWaiter(await readFile("/proc/locks", "utf8"), inode)) {
        await clock.sleep(lookMs, signal).catch(() => undefined);
      }
    },
    async release() {
      if (ended()) return;
      holder.stdin?.end();
      await once(holder, "exit");
    },
  };
}

/**
 * A child process that holds the lock for its lifetime. A lock taken by an exited process would be missing in /proc/locks
 * in a PID namespace, together with its waiters. The child exits when its stdin is closed, which also happens when this
 * process dies.
 * @throws Error when the lock command fails
 */
async function holdLock(path: string): Promise<{ holder: ChildProcess; inode: number }> {
  const inode = await inodeOf(path);
  // The first byte that cat writes back shows that the lock is held.
  const holder = spawn("flock", ["--exclusive", path, "cat"], { stdio: ["pipe", "pipe", "ignore"] });
  await new Promise<void>((resolve, reject) => {
    holder.once("error", reject);
    holder.once("exit", (code, by) => reject(new Error(`flock ended with ${by ?? code}`)));
    holder.stdout.once("data", () => resolve());
    holder.stdin.on("error", () => undefined); // exited; "exit" reports it
    holder.stdin.write("\n");
  });
  return { holder, inode };
}

/** Creates the file if necessary. */
async function inodeOf(path: string): Promise<number> {
  const file = await open(path, "a+", 0o600);
  try {
    return (await file.stat()).ino;
  } finally {
    await file.close();
  }
}

/**
 * Waits for the lock of an open file. flock(1) inherits the open file description: the lock outlives flock(1) until the file
 * is closed. @throws Error when locking fails
 */
export function lockOpenFile(file: FileHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("flock", ["--exclusive", "3"], { stdio: ["ignore", "ignore", "ignore", file.fd] });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`flock ended with ${code}`))));
  });
}

/**
 * Pure: whether a process waits for the lock of a file. Waiters are listed after the holder:
 * `1: -> FLOCK ADVISORY WRITE 42 fe:01:4711 0 EOF`.
 * @param locks the text of /proc/locks
 */
export function hasWaiter(locks: string, inode: number): boolean {
  const lines = locks.split("\n").map((line) => line.trim().split(/\s+/));
  return lines.some(
    ([, arrow, kind, , , , where]) => arrow === "->" && kind === "FLOCK" && where?.split(":")[2] === String(inode),
  );
}
