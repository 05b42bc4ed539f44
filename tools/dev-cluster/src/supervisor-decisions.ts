/** A supervised process. Times are in ms since the epoch and for display only; no decision uses the wall clock. */
export interface ProcessState {
  /** `waiting`: exited, to be restarted after backoff; `stopping`: stop requested. */
  readonly phase: "stopped" | "running" | "waiting" | "stopping";
  /** Start of the current phase. */
  readonly since: number;
  /** Set while running. The start time (see `startTimeOf`) detects pid reuse. */
  readonly pid?: number;
  readonly startTime?: string;
  /** Number of restarts since the first start request. */
  readonly restarts: number;
  /** Consecutive exits before running for `stableMs`. */
  readonly quickEnds: number;
  /** Last unrequested exit. */
  readonly lastEnd?: { readonly at: number; readonly reason: string };
}

export type ProcessEvent =
  | { readonly type: "start" }
  | { readonly type: "stop"; readonly graceMs: number }
  | { readonly type: "spawned"; readonly pid: number; readonly startTime: string }
  /** @property ranMs observed run time in ms, by a monotonic clock */
  | { readonly type: "ended"; readonly reason: string; readonly ranMs: number }
  /** The timer of the last `wake` action fired. */
  | { readonly type: "wake" };

export type Action =
  | { readonly type: "spawn" }
  | { readonly type: "signal"; readonly signal: "SIGTERM" | "SIGKILL" }
  /** Sets the timer; replaces an earlier one of the same process. */
  | { readonly type: "wake"; readonly afterMs: number };

interface Decision {
  readonly state: ProcessState;
  readonly actions: readonly Action[];
}

const firstBackoffMs = 500;
const longestBackoffMs = 30_000;
/** After running this long, a process counts as stable and its backoff is reset. */
export const stableMs = 10_000;

export const stoppedProcess = (now: number): ProcessState => ({ phase: "stopped", since: now, restarts: 0, quickEnds: 0 });

/** Pure: the next state of a process and the actions to execute. Returns the same state object when nothing changes. */
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
