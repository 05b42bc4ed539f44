/** One supervised process. Times are milliseconds since 1970 and only shown; no decision depends on the wall clock. */
export interface ProcessState {
  /** `waiting`: it ended and starts again after its backoff; `stopping`: it was asked to end. */
  readonly phase: "stopped" | "running" | "waiting" | "stopping";
  /** When `phase` began. */
  readonly since: number;
  /** While it runs. The start time (see `startTimeOf`) tells it from a later process of the same pid. */
  readonly pid?: number;
  readonly startTime?: string;
  /** How often it was started again since it was first asked to start. */
  readonly restarts: number;
  /** How often in a row it ended before it had run for `stableMs`. */
  readonly quickEnds: number;
  /** Why it last ended without being asked to. */
  readonly lastEnd?: { readonly at: number; readonly reason: string };
}

export type ProcessEvent =
  | { readonly type: "start" }
  | { readonly type: "stop"; readonly graceMs: number }
  | { readonly type: "spawned"; readonly pid: number; readonly startTime: string }
  /** @property ranMs how long it ran, or has been watched, by a monotonic clock */
  | { readonly type: "ended"; readonly reason: string; readonly ranMs: number }
  /** The last `wake` action's time has come. */
  | { readonly type: "wake" };

export type Action =
  | { readonly type: "spawn" }
  | { readonly type: "signal"; readonly signal: "SIGTERM" | "SIGKILL" }
  /** Replaces an earlier one of the same process. */
  | { readonly type: "wake"; readonly afterMs: number };

export interface Decision {
  readonly state: ProcessState;
  readonly actions: readonly Action[];
}

export const firstBackoffMs = 500;
export const longestBackoffMs = 30_000;
/** A process that ran this long has recovered: its next restart is quick again. */
export const stableMs = 10_000;

export const stoppedProcess = (now: number): ProcessState => ({ phase: "stopped", since: now, restarts: 0, quickEnds: 0 });

/** Pure: what an event makes of a process, and what has to be done for it. What changes nothing returns the same state. */
export function decide(state: ProcessState, event: ProcessEvent, now: number): Decision {
  const unchanged: Decision = { state, actions: [] };
  const { pid, startTime, ...ended } = state;
  switch (event.type) {
    case "start":
      if (state.phase === "stopped") return { state: { ...stoppedProcess(now), phase: "running" }, actions: [{ type: "spawn" }] };
      if (state.phase === "waiting")
        return { state: { ...state, phase: "running", since: now, quickEnds: 0 }, actions: [{ type: "spawn" }] };
      return unchanged;
    case "spawned":
      return { state: { ...state, since: now, pid: event.pid, startTime: event.startTime }, actions: [] };
    case "stop":
      if (state.phase === "waiting") return { state: { ...ended, phase: "stopped", since: now }, actions: [] };
      if (state.phase === "stopped") return unchanged;
      if (event.graceMs === 0)
        return { state: { ...state, phase: "stopping", since: now }, actions: [{ type: "signal", signal: "SIGKILL" }] };
      return {
        state: { ...state, phase: "stopping", since: now },
        actions: [
          { type: "signal", signal: "SIGTERM" },
          { type: "wake", afterMs: event.graceMs },
        ],
      };
    case "ended":
      if (state.phase === "stopping") return { state: { ...ended, phase: "stopped", since: now }, actions: [] };
      if (state.phase !== "running") return unchanged;
      return afterUnexpectedEnd(ended, event, now);
    case "wake":
      if (state.phase === "waiting")
        return { state: { ...state, phase: "running", since: now, restarts: state.restarts + 1 }, actions: [{ type: "spawn" }] };
      if (state.phase === "stopping") return { state, actions: [{ type: "signal", signal: "SIGKILL" }] };
      return unchanged;
  }
}

function afterUnexpectedEnd(state: ProcessState, event: ProcessEvent & { type: "ended" }, now: number): Decision {
  const quickEnds = event.ranMs >= stableMs ? 1 : state.quickEnds + 1;
  const afterMs = Math.min(firstBackoffMs * 2 ** (quickEnds - 1), longestBackoffMs);
  return {
    state: { ...state, phase: "waiting", since: now, quickEnds, lastEnd: { at: now, reason: event.reason } },
    actions: [{ type: "wake", afterMs }],
  };
}
