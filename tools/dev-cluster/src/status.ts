import { certificateProblem } from "./pki.ts";
import { processState, runningPid } from "./processes.ts";
import { notReadyReason } from "./readiness.ts";
import type { Settings } from "./settings.ts";
import { supervisorPid } from "./supervisor-client.ts";
import type { ProcessState } from "./supervisor-decisions.ts";
import { readState, supervisorName } from "./supervisor-state.ts";
import { table } from "./table.ts";
import { processNames } from "./up.ts";

/** Prints running processes, uptimes, restarts with reasons, and what is not ready. @returns 0 when all is ready, else 1. */
export async function status(settings: Settings): Promise<number> {
  const known = readState(settings);
  const now = Date.now();
  const supervisor = supervisorPid(settings);
  const age = (since: number | undefined): string => (since === undefined ? "" : ageOf(now - since));
  const rows = [["NAME", "STATE", "READY", "AGE", "RESTARTS", "VERSION", "LAST END"]];
  rows.push([
    supervisorName,
    supervisor === undefined ? "not running" : `running, pid ${supervisor}`,
    supervisor === undefined ? "no" : "yes",
    supervisor === undefined ? "" : age(known?.supervisor.since),
    "",
    known?.supervisor.version ?? "",
    "",
  ]);
  const names = processNames(settings);
  const reasons = await Promise.all(names.map((name) => notReadyReason(settings, name)));
  names.forEach((name, index) => {
    const state = processState(settings, name);
    rows.push([
      name,
      describe(state, runningPid(settings, name)),
      reasons[index] === undefined ? "yes" : "no",
      age(state?.since),
      state === undefined ? "" : String(state.restarts),
      known?.processes[name]?.spec.version ?? "",
      state?.lastEnd === undefined ? "" : `${age(state.lastEnd.at)} ago: ${state.lastEnd.reason}`,
    ]);
  });
  console.log(table(rows));
  names.forEach((name, index) => {
    if (reasons[index] !== undefined && runningPid(settings, name) !== undefined)
      console.log(`${name} is not ready: ${reasons[index]}`);
  });
  const expired = certificateProblem(settings);
  if (expired !== undefined) console.log(expired);
  const isRunning = names.some((name) => runningPid(settings, name) !== undefined);
  if (supervisor === undefined && isRunning)
    console.log("the supervisor does not run: what ends is not started again; ./cox up starts it");
  if (reasons[names.indexOf("kube-apiserver")] === undefined) console.log("the API server is ready");
  return supervisor !== undefined && reasons.every((reason) => reason === undefined) ? 0 : 1;
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
