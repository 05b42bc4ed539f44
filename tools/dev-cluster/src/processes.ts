import { readFileSync } from "node:fs";
import { startTimeOf } from "./process-identity.ts";
import type { Settings } from "./settings.ts";
import { ask } from "./supervisor-client.ts";
import { logFile, type ProcessSpec, readState, type SupervisedProcess } from "./supervisor-state.ts";

export { logFile, type ProcessSpec } from "./supervisor-state.ts";

/** Has the supervisor start a process, and keep it running. @returns its pid. */
export async function start(settings: Settings, spec: ProcessSpec): Promise<number | undefined> {
  const { processes } = await ask(settings, { verb: "start", spec });
  return processes[spec.name]?.state.pid;
}

/** Has the supervisor end a process, which it kills after `graceMs` (at once when 0) and does not start again. */
export async function stop(settings: Settings, name: string, graceMs = 10_000): Promise<void> {
  await ask(settings, { verb: "stop", name, graceMs });
}

/** What the supervisor knows of a process; also when that has ended. */
export const processState = (settings: Pick<Settings, "state">, name: string): SupervisedProcess["state"] | undefined =>
  readState(settings)?.processes[name]?.state;

/** @returns its pid while it runs, else undefined. */
export function runningPid(settings: Pick<Settings, "state">, name: string): number | undefined {
  const { pid, startTime } = processState(settings, name) ?? {};
  return pid !== undefined && startTime !== undefined && startTimeOf(pid) === startTime ? pid : undefined;
}

/** The end of a process's log, without the usage that it prints below an error of its flags. */
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
