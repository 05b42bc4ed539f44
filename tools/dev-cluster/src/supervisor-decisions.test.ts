import assert from "node:assert/strict";
import { test } from "node:test";
import { type Action, decide, type ProcessEvent, type ProcessState, stableMs } from "./supervisor-decisions.ts";

const running: ProcessState = { phase: "running", since: 0, pid: 7, startTime: "70", restarts: 2, quickEnds: 1 };
const { pid: _pid, startTime: _startTime, ...withoutPid } = running;
const waiting: ProcessState = { ...withoutPid, phase: "waiting" };
const stopping: ProcessState = { ...running, phase: "stopping" };
const stopped: ProcessState = { ...withoutPid, phase: "stopped" };
const ended = (ranMs: number): ProcessEvent => ({ type: "ended", reason: "exit code 1", ranMs });
const lastEnd = { at: 5, reason: "exit code 1" };

interface Row {
  name: string;
  state: ProcessState;
  event: ProcessEvent;
  /** Expected changes of the state. */
  want: Partial<ProcessState>;
  actions: Action[];
}

const rows: Row[] = [
  {
    name: "a stopped process starts with no history",
    state: { ...stopped, lastEnd },
    event: { type: "start" },
    want: { phase: "running", since: 5, restarts: 0, quickEnds: 0, lastEnd: undefined },
    actions: [{ type: "spawn" }],
  },
  {
    name: "a process that waits for its backoff starts at once on request",
    state: waiting,
    event: { type: "start" },
    want: { phase: "running", since: 5, quickEnds: 0 },
    actions: [{ type: "spawn" }],
  },
  { name: "a running process is not started twice", state: running, event: { type: "start" }, want: {}, actions: [] },
  { name: "a process that is being stopped is not started", state: stopping, event: { type: "start" }, want: {}, actions: [] },
  {
    name: "the new pid is kept",
    state: running,
    event: { type: "spawned", pid: 8, startTime: "80" },
    want: { since: 5, pid: 8, startTime: "80" },
    actions: [],
  },
  {
    name: "a process that ended quickly waits longer each time",
    state: running,
    event: ended(stableMs - 1),
    want: { phase: "waiting", since: 5, quickEnds: 2, lastEnd },
    actions: [{ type: "wake", afterMs: 1_000 }],
  },
  {
    name: "a process that had run for a while starts again soon",
    state: { ...running, quickEnds: 9 },
    event: ended(stableMs),
    want: { phase: "waiting", since: 5, quickEnds: 1, lastEnd },
    actions: [{ type: "wake", afterMs: 500 }],
  },
  {
    name: "the backoff has an end",
    state: { ...running, quickEnds: 2_000 },
    event: ended(0),
    want: { phase: "waiting", since: 5, quickEnds: 2_001, lastEnd },
    actions: [{ type: "wake", afterMs: 30_000 }],
  },
  {
    name: "after its backoff it is started and counted",
    state: waiting,
    event: { type: "wake" },
    want: { phase: "running", since: 5, restarts: 3 },
    actions: [{ type: "spawn" }],
  },
  { name: "a late wake of a running process does nothing", state: running, event: { type: "wake" }, want: {}, actions: [] },
  { name: "a late wake of a stopped process does nothing", state: stopped, event: { type: "wake" }, want: {}, actions: [] },
  {
    name: "a running process is requested to stop, and is killed later",
    state: running,
    event: { type: "stop", graceMs: 9 },
    want: { phase: "stopping", since: 5 },
    actions: [
      { type: "signal", signal: "SIGTERM" },
      { type: "wake", afterMs: 9 },
    ],
  },
  {
    name: "without grace it is killed",
    state: running,
    event: { type: "stop", graceMs: 0 },
    want: { phase: "stopping", since: 5 },
    actions: [{ type: "signal", signal: "SIGKILL" }],
  },
  {
    name: "a second stop without grace kills what does not end",
    state: stopping,
    event: { type: "stop", graceMs: 0 },
    want: { since: 5 },
    actions: [{ type: "signal", signal: "SIGKILL" }],
  },
  {
    name: "a process that does not end in time is killed",
    state: stopping,
    event: { type: "wake" },
    want: {},
    actions: [{ type: "signal", signal: "SIGKILL" }],
  },
  {
    name: "a process that waits is stopped by not being started",
    state: waiting,
    event: { type: "stop", graceMs: 9 },
    want: { phase: "stopped", since: 5 },
    actions: [],
  },
  { name: "a stopped process stays stopped", state: stopped, event: { type: "stop", graceMs: 9 }, want: {}, actions: [] },
  {
    name: "a process that was requested to stop is not started again, and that is no failure",
    state: stopping,
    event: ended(1),
    want: { phase: "stopped", since: 5 },
    actions: [],
  },
  { name: "an end that is reported twice counts once", state: waiting, event: ended(1), want: {}, actions: [] },
];

for (const { name, state, event, want, actions } of rows) {
  test(name, () => {
    const decision = decide(state, event, 5);
    const hasPid = "pid" in want || want.phase === undefined || want.phase === "stopping";
    const { pid, startTime, ...rest } = { ...state, ...want };
    const expected = hasPid && pid !== undefined ? { ...rest, pid, startTime } : rest;
    assert.deepEqual(JSON.parse(JSON.stringify(decision.state)), JSON.parse(JSON.stringify(expected)));
    assert.deepEqual(decision.actions, actions);
  });
}

test("a process that never starts is retried after 0.5, 1, 2, 4, 8, 16, 30 and 30 seconds", () => {
  let state: ProcessState = stopped;
  const waits: number[] = [];
  const apply = (event: ProcessEvent): void => {
    const decision = decide(state, event, 5);
    state = decision.state;
    for (const action of decision.actions) {
      if (action.type === "spawn") apply(ended(0));
      else if (action.type === "wake") {
        waits.push(action.afterMs);
        if (waits.length < 8) apply({ type: "wake" });
      }
    }
  };
  apply({ type: "start" });
  assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  assert.equal(state.restarts, 7);
  assert.equal(state.quickEnds, 8);
});
