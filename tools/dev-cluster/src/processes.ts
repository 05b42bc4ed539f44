import { readFileSync } from "node:fs";
import { startTimeOf } from "./process-identity.ts";
import type { Settings } from "./settings.ts";
import { sendRequest } from "./supervisor-client.ts";
import { logFile, type ProcessSpec, readState, type SupervisedProcess } from "./supervisor-state.ts";

export { logFile, type ProcessSpec } from "./supervisor-state.ts";

/** Starts a process under the supervisor, which restarts it when it exits. @returns its pid. */
export async function start(settings: Settings, spec: ProcessSpec): Promise<number | undefined> {
  const { processes } = await sendRequest(settings, { verb: "start", spec });
  return processes[spec.name]?.state.pid;
}

/** Stops a process without restart; the supervisor kills it after `graceMs` (0: immediately). */
export async function stop(settings: Settings, name: string, graceMs = 10_000): Promise<void> {
  await sendRequest(settings, { verb: "stop", name, graceMs });
}

/** The supervisor's state of a process, also after its end. */
export const processState = (settings: Pick<Settings, "state">, name: string): SupervisedProcess["state"] | undefined =>
  readState(settings)?.processes[name]?.state;

/** @returns the pid while the process runs, else undefined. */
export function runningPid(settings: Pick<Settings, "state">, name: string): number | undefined {
  const { pid, startTime } = processState(settings, name) ?? {};
  return pid !== undefined && startTime !== undefined && startTimeOf(pid) === startTime ? pid : undefined;
}

/** The last lines of a process's log, without the usage text printed after a flag error. */
export function tailOf(settings: Settings, name: string, lines: number): string {
  try {
    const text = readFileSync(logFile(settings, name), "utf8");
    return text
      .replace(/\nUsage:\n[\s\S]*$/, "")
      .trimEnd()
      .split("\n")
      .slice(-lines)
      .join("\n");
  } catch {
    return "(no log)";
  }
}
