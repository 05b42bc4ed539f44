import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "./settings.ts";
import type { ProcessState } from "./supervisor-decisions.ts";

/** A process of the cluster: how it is started and under which name its state and log are kept. */
export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Of the program, as `status` shows it. */
  readonly version?: string;
}

/** What the supervisor knows, in `run/supervisor.json` of the state folder; it outlives the supervisor. */
export interface SupervisorState {
  readonly supervisor: { readonly pid: number; readonly startTime: string; readonly since: number; readonly version: string };
  readonly processes: Readonly<Record<string, SupervisedProcess>>;
}

export interface SupervisedProcess {
  readonly spec: ProcessSpec;
  readonly state: ProcessState;
}

/**
 * What the supervisor is asked for: one line of JSON for each connection. Its answer is one line too, the state after the request
 * or `{"error": "…"}`.
 */
export type Request =
  | { readonly verb: "status" }
  /** Starts what is stopped, at once what waits for its backoff, and anew what runs with another command. */
  | { readonly verb: "start"; readonly spec: ProcessSpec }
  /** Is answered when the process has ended; it is killed after `graceMs`. */
  | { readonly verb: "stop"; readonly name: string; readonly graceMs: number }
  /** Ends the supervisor alone. */
  | { readonly verb: "exit" };

/** Where a cluster's supervisor finds its files. */
export type SupervisorPlace = Pick<Settings, "state" | "run" | "id">;

export const supervisorName = "supervisor";
export const logFile = ({ state }: Pick<Settings, "state">, name: string): string => join(state, "logs", `${name}.log`);
export const socketFile = ({ run }: Pick<Settings, "run">): string => join(run, "supervisor.sock");
const stateFile = ({ state }: Pick<Settings, "state">): string => join(state, "run", "supervisor.json");

/** In the environment of everything the supervisor starts, as `<cluster id>/<name>`; what those start inherits it. */
export const processVariable = "COX_PROCESS";

/** @returns undefined where there is none, or it is damaged. */
export function readState(place: Pick<Settings, "state">): SupervisorState | undefined {
  try {
    const state = JSON.parse(readFileSync(stateFile(place), "utf8")) as SupervisorState;
    return typeof state.supervisor?.pid === "number" && typeof state.processes === "object" ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces it as a whole: a reader, or a supervisor that is killed meanwhile, never sees half of it. */
export function writeState(place: Pick<Settings, "state">, state: SupervisorState): void {
  const partial = `${stateFile(place)}.new`;
  writeFileSync(partial, JSON.stringify(state, undefined, 2), { mode: 0o600 });
  renameSync(partial, stateFile(place));
}
