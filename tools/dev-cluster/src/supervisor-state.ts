import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "./settings.ts";
import type { ProcessState } from "./supervisor-decisions.ts";

/** How to start a process of the cluster, and the name of its state and log. */
export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Version of the program, shown by `status`. */
  readonly version?: string;
  /** The data folder of an etcd; an unused member in it is removed before each start, see `removeUnusedMember`. */
  readonly etcdData?: string;
}

/** The supervisor's state, in `run/supervisor.json` of the state folder; survives the supervisor. */
export interface SupervisorState {
  readonly supervisor: { readonly pid: number; readonly startTime: string; readonly since: number; readonly version: string };
  readonly processes: Readonly<Record<string, SupervisedProcess>>;
}

export interface SupervisedProcess {
  readonly spec: ProcessSpec;
  readonly state: ProcessState;
}

/**
 * Requests to the supervisor: one line of JSON per connection. The response is one line too: the new state, or
 * `{"error": "…"}`.
 */
export type Request =
  | { readonly verb: "status" }
  /** Starts a stopped process, restarts a waiting one without backoff, and replaces a running one with another command. */
  | { readonly verb: "start"; readonly spec: ProcessSpec }
  /** The response is sent when the process has exited; it is killed after `graceMs`. */
  | { readonly verb: "stop"; readonly name: string; readonly graceMs: number }
  /** Stops only the supervisor. */
  | { readonly verb: "exit" };

/** Settings that locate a supervisor's files. */
export type SupervisorPlace = Pick<Settings, "state" | "run" | "id">;

export const supervisorName = "supervisor";
export const logFile = ({ state }: Pick<Settings, "state">, name: string): string => join(state, "logs", `${name}.log`);
export const socketFile = ({ run }: Pick<Settings, "run">): string => join(run, "supervisor.sock");
const stateFile = ({ state }: Pick<Settings, "state">): string => join(state, "run", "supervisor.json");

/** Environment variable of all supervised processes, `<cluster id>/<name>`; inherited by their children. */
export const processVariable = "COX_PROCESS";

/** @returns undefined when the file is missing or damaged. */
export function readState(place: Pick<Settings, "state">): SupervisorState | undefined {
  try {
    const state = JSON.parse(readFileSync(stateFile(place), "utf8")) as SupervisorState; // cast: the supervisor writes it
    return typeof state.supervisor?.pid === "number" && typeof state.processes === "object" ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically, so that readers never see a partial state. */
export function writeState(place: Pick<Settings, "state">, state: SupervisorState): void {
  const partial = `${stateFile(place)}.new`;
  writeFileSync(partial, JSON.stringify(state, undefined, 2), { mode: 0o600 });
  renameSync(partial, stateFile(place));
}

/**
 * Records that `down` stopped all processes; otherwise the next supervisor reports them as ended on their own. Best effort: `down` must
 * also work on a full disk.
 */
export function recordAllStopped(place: Pick<Settings, "state">): void {
  const stopped = ([name, { spec, state }]: [string, SupervisedProcess]) => {
    const { pid, startTime, ...rest } = state;
    return [name, { spec, state: { ...rest, phase: "stopped", since: Date.now() } as const }] as const;
  };
  try {
    const known = readState(place);
    if (known !== undefined)
      writeState(place, { ...known, processes: Object.fromEntries(Object.entries(known.processes).map(stopped)) });
  } catch {} // the only effect is a misleading line of the next `up`
}
