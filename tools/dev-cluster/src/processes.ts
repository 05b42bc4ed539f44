import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";

/** A process of the cluster: how it is started and under which name its pid and log are kept. */
export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A pid alone may have been given to another process since; with its start time it names one process for good. */
interface PidRecord {
  pid: number;
  startTime: string;
}

export const logFile = (settings: Settings, name: string): string => join(settings.state, "logs", `${name}.log`);
const pidFile = (settings: Settings, name: string): string => join(settings.state, "run", `${name}.json`);

/** Starts it in a session of its own, so that it outlives this command; output goes to its log. @returns its pid. */
export function start(settings: Settings, spec: ProcessSpec): number {
  makeFolderSync(join(settings.state, "run"));
  makeFolderSync(join(settings.state, "logs"));
  const log = logFile(settings, spec.name);
  if (existsSync(log)) renameSync(log, `${log}.old`);
  const output = openSync(log, "a", 0o600);
  const child = spawn(spec.command, spec.args, {
    detached: true,
    stdio: ["ignore", output, output],
    cwd: settings.state,
    env: { ...process.env, ...spec.env },
  });
  closeSync(output);
  child.on("error", () => {}); // a missing program shows as a process that is not there
  child.unref();
  if (child.pid === undefined) throw new Failure(`cannot start ${spec.command}`);
  const record: PidRecord = { pid: child.pid, startTime: startTimeOf(child.pid) ?? "" };
  writeFileSync(pidFile(settings, spec.name), JSON.stringify(record));
  return child.pid;
}

/** @returns its pid while it runs, else undefined. */
export function runningPid(settings: Settings, name: string): number | undefined {
  const record = readRecord(settings, name);
  if (record === undefined) return undefined;
  const startTime = startTimeOf(record.pid);
  return startTime !== undefined && startTime === record.startTime ? record.pid : undefined;
}

/** Asks it to end, kills it after `graceMs`, and forgets it. */
export async function stop(settings: Settings, name: string, graceMs = 10_000): Promise<void> {
  const pid = runningPid(settings, name);
  if (pid !== undefined) {
    signal(pid, "SIGTERM");
    if (!(await endedWithin(settings, name, graceMs))) {
      signal(pid, "SIGKILL");
      await endedWithin(settings, name, 5_000);
    }
  }
  rmSync(pidFile(settings, name), { force: true });
}

/** Waits until `check` holds; fails with the process's last lines when it ends first or time runs out. */
export async function waitUntil(
  settings: Settings,
  name: string,
  what: string,
  timeoutMs: number,
  check: () => Promise<boolean> | boolean,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await check())) {
    const died = runningPid(settings, name) === undefined;
    if (died || Date.now() > end) {
      throw new Failure(
        `${what}: ${died ? `${name} ended` : `not within ${timeoutMs / 1000} s`}; the end of ${logFile(settings, name)}:\n${tailOf(settings, name, 15)}`,
      );
    }
    await delay(100);
  }
}

function tailOf(settings: Settings, name: string, lines: number): string {
  try {
    return readFileSync(logFile(settings, name), "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "(no log)";
  }
}

async function endedWithin(settings: Settings, name: string, timeoutMs: number): Promise<boolean> {
  const end = Date.now() + timeoutMs;
  while (runningPid(settings, name) !== undefined) {
    if (Date.now() > end) return false;
    await delay(50);
  }
  return true;
}

function readRecord(settings: Settings, name: string): PidRecord | undefined {
  try {
    return JSON.parse(readFileSync(pidFile(settings, name), "utf8")) as PidRecord;
  } catch {
    return undefined;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it ended by itself
  }
}

/** Field 22 of /proc/<pid>/stat; undefined for a process that is gone or a zombie. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
