import { certificateProblem } from "./pki.ts";
import { runningPid } from "./processes.ts";
import { notReadyReason } from "./readiness.ts";
import type { Settings } from "./settings.ts";
import { supervisorPid } from "./supervisor-client.ts";
import type { ProcessState } from "./supervisor-decisions.ts";
import { readState, type SupervisorState, supervisorName } from "./supervisor-state.ts";
import { table } from "./table.ts";
import { processNames } from "./up.ts";

/** What `status` found. Times are in ms since the epoch. */
interface StatusFacts {
  readonly now: number;
  /** Its pid; undefined when it does not run. */
  readonly supervisor: number | undefined;
  /** What the supervisor recorded, also of processes that have ended. */
  readonly recorded: SupervisorState | undefined;
  readonly processes: readonly ProcessFacts[];
  /** Text about expired certificates. */
  readonly expired: string | undefined;
}

interface ProcessFacts {
  readonly name: string;
  /** undefined when it does not run */
  readonly pid: number | undefined;
  /** undefined when it is ready */
  readonly notReady: string | undefined;
}

/** Prints running processes, uptimes, restarts with reasons, and what is not ready. @returns 0 when all is ready, else 1. */
export async function status(settings: Settings): Promise<number> {
  const processes = await Promise.all(
    processNames(settings).map(async (name): Promise<ProcessFacts> => {
      const notReady = await notReadyReason(settings, name);
      return { name, pid: runningPid(settings, name), notReady };
    }),
  );
  const { text, exitCode } = statusReport({
    now: Date.now(),
    supervisor: supervisorPid(settings),
    recorded: readState(settings),
    processes,
    expired: certificateProblem(settings),
  });
  console.log(text);
  return exitCode;
}

/** Pure: the text of `status`, and its exit code: 0 when all is ready. */
export function statusReport(facts: StatusFacts): { text: string; exitCode: number } {
  const { supervisor, processes, expired } = facts;
  const lines = [tableOf(facts)];
  for (const { name, pid, notReady } of processes)
    if (notReady !== undefined && pid !== undefined) lines.push(`${name} is not ready: ${notReady}`);
  if (expired !== undefined) lines.push(expired);
  if (supervisor === undefined && processes.some(({ pid }) => pid !== undefined))
    lines.push("the supervisor does not run: what ends is not started again; ./cox up starts it");
  if (processes.some(({ name, notReady }) => name === "kube-apiserver" && notReady === undefined))
    lines.push("the API server is ready");
  const isReady = supervisor !== undefined && processes.every(({ notReady }) => notReady === undefined);
  return { text: lines.join("\n"), exitCode: isReady ? 0 : 1 };
}

function tableOf({ now, supervisor, recorded, processes }: StatusFacts): string {
  const age = (since: number | undefined): string => (since === undefined ? "" : ageOf(now - since));
  const rows = processes.map(({ name, pid, notReady }) => {
    const { spec, state } = recorded?.processes[name] ?? {};
    return [
      name,
      describe(state, pid),
      notReady === undefined ? "yes" : "no",
      age(state?.since),
      state === undefined ? "" : String(state.restarts),
      spec?.version ?? "",
      state?.lastEnd === undefined ? "" : `${age(state.lastEnd.at)} ago: ${state.lastEnd.reason}`,
    ];
  });
  return table([
    ["NAME", "STATE", "READY", "AGE", "RESTARTS", "VERSION", "LAST END"],
    [
      supervisorName,
      supervisor === undefined ? "not running" : `running, pid ${supervisor}`,
      supervisor === undefined ? "no" : "yes",
      supervisor === undefined ? "" : age(recorded?.supervisor.since),
      "",
      recorded?.supervisor.version ?? "",
      "",
    ],
    ...rows,
  ]);
}

function describe(state: ProcessState | undefined, pid: number | undefined): string {
  if (pid !== undefined) return `${state?.phase === "stopping" ? "stopping" : "running"}, pid ${pid}`;
  return state?.phase === "waiting" ? "restarting" : "not running";
}

/** Formats a duration like kubectl: `45s`, `12m`, `3h`, `2d`. */
function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
