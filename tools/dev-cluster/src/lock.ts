import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { which } from "./commands.ts";
import { Failure } from "./failure.ts";
import { startTimeOf } from "./process-identity.ts";
import type { Settings } from "./settings.ts";

/** Holder of a lock, as written to the lock file. */
interface Holder {
  readonly pid: number;
  readonly startTime: string;
  /** Command, such as `up`. */
  readonly verb: string;
  /** ISO 8601. */
  readonly since: string;
}

interface LockOptions {
  /** Maximum time to wait for the lock; 0 fails immediately. */
  readonly waitMs: number;
  /** Cancels waiting; its reason is thrown. */
  readonly signal?: AbortSignal;
  /** Called once per holder waited for. */
  readonly onWait?: (message: string) => void;
}

const retryMs = 200;
const sayOnStderr = (message: string): void => void process.stderr.write(`cox: ${message}\n`);

/**
 * Runs `work` exclusively among all commands that modify this cluster, in this and other processes. Uses flock(2), which the
 * kernel releases when the holder exits, however it exits.
 * @throws Failure naming the holder when the lock is not available within `waitMs`
 */
export async function withClusterLock<T>(
  settings: Pick<Settings, "state" | "name">,
  verb: string,
  work: () => Promise<T>,
  options: Partial<LockOptions> = {},
): Promise<T> {
  return withLock(clusterLockFile(settings.state), verb, `cluster ${settings.name}`, work, { waitMs: 600_000, ...options });
}

export const clusterLockFile = (state: string): string => join(state, "lock");

/** Like `withClusterLock`, for any file. @param what describes the locked thing in messages */
export async function withLock<T>(
  file: string,
  verb: string,
  what: string,
  work: () => Promise<T>,
  options: LockOptions,
): Promise<T> {
  const handle = await acquire(file, verb, what, options);
  try {
    return await work();
  } finally {
    ftruncateSync(handle); // prevents naming a former holder
    closeSync(handle);
  }
}

/** @returns a file descriptor; closing it releases the lock. */
async function acquire(file: string, verb: string, what: string, options: LockOptions): Promise<number> {
  const { waitMs, signal, onWait = sayOnStderr } = options;
  const end = performance.now() + waitMs;
  let named: string | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const handle = tryAcquire(file);
    if (handle !== undefined) {
      const holder: Holder = {
        pid: process.pid,
        startTime: startTimeOf(process.pid) ?? "",
        verb,
        since: new Date().toISOString(),
      };
      ftruncateSync(handle);
      writeSync(handle, JSON.stringify(holder), 0);
      return handle;
    }
    const holder = describe(holderOf(file));
    if (performance.now() >= end) throw new Failure(`${what} is locked by ${holder}; try again when that has ended`);
    if (holder !== named && waitMs > 0) onWait(`waiting for ${holder}, which works on ${what}`);
    named = holder;
    await delay(retryMs, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
  }
}

function tryAcquire(file: string): number | undefined {
  makeFolderSync(dirname(file), 0o711);
  const handle = openSync(file, "a+", 0o644);
  let isHeld = false;
  try {
    // `down --purge` deletes the lock file while holding it; a lock on a deleted file excludes no one, so try again.
    isHeld = flock(handle, { waits: false }) && statSync(file, { throwIfNoEntry: false })?.ino === fstatSync(handle).ino;
    return isHeld ? handle : undefined;
  } finally {
    if (!isHeld) closeSync(handle);
  }
}

/**
 * Takes an exclusive flock(2), which the kernel releases when the descriptor is closed.
 * @param handle descriptor of an open file
 * @returns false when another process holds it and `waits` is false
 * @throws Failure when the program flock is missing or fails
 */
export function flock(handle: number, { waits }: { waits: boolean }): boolean {
  const program = which("flock");
  if (program === undefined) throw new Failure("flock is missing; install Debian's package util-linux");
  // flock(2) locks the open file description, which the child shares: the lock stays held after the child exits.
  const args = waits ? ["3"] : ["--nonblock", "3"];
  const { status, error } = spawnSync(program, args, { stdio: ["ignore", "ignore", "ignore", handle] });
  if (error !== undefined) throw error;
  if (waits && status !== 0) throw new Failure(`flock ended with ${status}`);
  return status === 0;
}

/** @returns the holder; undefined when the lock is free or its holder has not written the file yet. */
export function holderOf(file: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(file, "utf8")) as Holder; // cast: written by this program
    return startTimeOf(holder.pid) === holder.startTime ? holder : undefined;
  } catch {
    return undefined;
  }
}

const describe = (holder: Holder | undefined): string =>
  holder === undefined ? "another ./cox" : `./cox ${holder.verb} (pid ${holder.pid}, since ${holder.since})`;
