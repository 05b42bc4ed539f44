import { spawn } from "node:child_process";
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { startTimeOf } from "./process-identity.ts";
import { type Action, decide, type ProcessEvent, type ProcessState, stoppedProcess } from "./supervisor-decisions.ts";
import {
  logFile,
  type ProcessSpec,
  processVariable,
  readState,
  type SupervisedProcess,
  type SupervisorPlace,
  type SupervisorState,
  writeState,
} from "./supervisor-state.ts";

export interface Supervisor {
  /** Starts a process, or replaces it when its command or environment is another than that of the running one. */
  start(spec: ProcessSpec): Promise<void>;
  /** Asks a process to end and kills it after `graceMs`; 0 kills it at once. Resolves when it has ended. */
  stop(name: string, graceMs: number): Promise<void>;
  state(): SupervisorState;
}

/** How often a process that is not our child is looked at. */
const adoptedPollMs = 200;
/** What a stop without a choice of its own gives a process to end. */
const replaceGraceMs = 10_000;
const stateRetryMs = 1_000;
/** A log this large is set aside at the next restart of its process. */
const largeLogBytes = 64 << 20;

/**
 * Runs what `decide` decides: starts processes, each in a session of its own, and starts those again that end.
 * Processes that an earlier supervisor has left running are adopted. Nothing is ended when this process ends.
 * @param version of itself, for `status`
 * @param log told of every start and end
 */
export function newSupervisor(place: SupervisorPlace, version: string, log: (line: string) => void): Supervisor {
  const processes = new Map<string, Supervised>();
  const since = Date.now();
  const self = { pid: process.pid, startTime: startTimeOf(process.pid) ?? "", since, version };
  const state = (): SupervisorState => ({
    supervisor: self,
    processes: Object.fromEntries([...processes].map(([name, one]) => [name, one.view()])),
  });
  let retry: NodeJS.Timeout | undefined;
  let failure = "";
  const save = (): void => {
    clearTimeout(retry);
    try {
      writeState(place, state());
      failure = "";
    } catch (err) {
      const message = (err as Error).message; // the disk is full: what runs goes on
      if (message !== failure) log(`cannot keep the state, trying again: ${message}`);
      failure = message;
      retry = setTimeout(save, stateRetryMs);
    }
  };
  makeFolderSync(join(place.state, "run"));
  makeFolderSync(join(place.state, "logs"));
  for (const [name, left] of Object.entries(readState(place)?.processes ?? {})) {
    const adopted = newSupervised(place, left.spec, stoppedProcess(since), { save, log });
    processes.set(name, adopted);
    adopted.adopt(left.state);
  }
  save();

  return {
    state,
    async start(spec) {
      const known = processes.get(spec.name);
      if (known !== undefined && !isSameCommand(known.view().spec, spec)) await known.stop(replaceGraceMs);
      await known?.settled();
      const current = known?.view().state ?? stoppedProcess(Date.now());
      const one = known !== undefined && current.phase !== "stopped" ? known : newSupervised(place, spec, current, { save, log });
      processes.set(spec.name, one);
      one.start();
    },
    async stop(name, graceMs) {
      await processes.get(name)?.stop(graceMs);
    },
  };
}

const isSameCommand = (one: ProcessSpec, other: ProcessSpec): boolean => {
  const command = ({ command, args, env }: ProcessSpec): string => JSON.stringify([command, args, env ?? {}]);
  return command(one) === command(other);
};

interface Supervised {
  view(): SupervisedProcess;
  start(): void;
  stop(graceMs: number): Promise<void>;
  /** Resolves when it is not being stopped. */
  settled(): Promise<void>;
  /** Goes on with a process of an earlier supervisor, if it still runs. */
  adopt(left: ProcessState): void;
}

function newSupervised(
  place: SupervisorPlace,
  spec: ProcessSpec,
  initial: ProcessState,
  { save, log }: { save(): void; log(line: string): void },
): Supervised {
  let state = initial;
  let timer: NodeJS.Timeout | undefined;
  let begun = performance.now();
  const waiters: (() => void)[] = [];

  const dispatch = (event: ProcessEvent): void => {
    const decision = decide(state, event, Date.now());
    if (decision.state !== state) clearTimeout(timer);
    state = decision.state;
    for (const action of decision.actions) perform(action);
    if (state.phase !== "stopping") for (const waiter of waiters.splice(0)) waiter();
    save();
  };
  const perform = (action: Action): void => {
    if (action.type === "wake") timer = setTimeout(dispatch, action.afterMs, { type: "wake" });
    else if (action.type === "signal") signalProcess(state, action.signal);
    else launch();
  };
  const launch = (): void => {
    begun = performance.now();
    let logStart = 0;
    const ended = (how: string): void => {
      const line = lastLine(logFile(place, spec.name), logStart);
      const reason = line === undefined || how.includes("SIGKILL") ? how : `${how}: ${line}`;
      log(`${spec.name} ended: ${reason}`);
      dispatch({ type: "ended", reason, ranMs: performance.now() - begun });
    };
    try {
      const output = openLog(logFile(place, spec.name), state.restarts === 0);
      logStart = fstatSync(output).size;
      const child = spawn(spec.command, spec.args, {
        detached: true,
        stdio: ["ignore", output, output],
        cwd: place.state,
        env: { ...process.env, ...spec.env, [processVariable]: `${place.id}/${spec.name}` },
      });
      closeSync(output);
      if (child.pid === undefined) child.once("error", (err) => ended(`cannot be started: ${err.message}`));
      else {
        child.once("exit", (code, signal) => ended(signal === null ? `exit code ${code}` : `killed by ${signal}`));
        log(`started ${spec.name}, pid ${child.pid}`);
        dispatch({ type: "spawned", pid: child.pid, startTime: startTimeOf(child.pid) ?? "" });
      }
    } catch (err) {
      setImmediate(ended, `cannot be started: ${(err as Error).message}`);
    }
  };
  const settled = (): Promise<void> =>
    state.phase === "stopping" ? new Promise((resolve) => waiters.push(resolve)) : Promise.resolve();

  return {
    view: () => ({ spec, state }),
    start: () => dispatch({ type: "start" }),
    settled,
    stop(graceMs) {
      dispatch({ type: "stop", graceMs });
      return settled();
    },
    adopt(left) {
      const { pid, startTime, ...rest } = left;
      if (pid === undefined || startTime === undefined || startTimeOf(pid) !== startTime) {
        const wasWanted = left.phase === "running" || left.phase === "waiting";
        const reason = "it ended while no supervisor ran";
        state = { ...rest, phase: "stopped", since: Date.now(), ...(wasWanted && { lastEnd: { at: Date.now(), reason } }) };
        return;
      }
      state = left;
      log(`adopted ${spec.name}, pid ${pid}`);
      const poll = setInterval(() => {
        if (startTimeOf(pid) === startTime) return;
        clearInterval(poll);
        const line = lastLine(logFile(place, spec.name), 0);
        const reason = `ended, exit code unknown (an earlier supervisor had started it)${line === undefined ? "" : `: ${line}`}`;
        log(`${spec.name} ${reason}`);
        dispatch({ type: "ended", reason, ranMs: performance.now() - begun });
      }, adoptedPollMs);
      if (left.phase === "stopping") dispatch({ type: "stop", graceMs: replaceGraceMs });
    },
  };
}

function signalProcess({ pid, startTime }: ProcessState, signal: NodeJS.Signals): void {
  if (pid === undefined || startTimeOf(pid) !== startTime) return; // its end is about to be reported
  try {
    process.kill(pid, signal);
  } catch {
    // it ended meanwhile
  }
}

/** @param fresh sets the log of an earlier run aside as `.old` */
function openLog(file: string, fresh: boolean): number {
  if (existsSync(file) && (fresh || statSync(file).size > largeLogBytes)) renameSync(file, `${file}.old`);
  return openSync(file, "a", 0o600);
}

const longestOutput = 64 << 10;

/** What a process said last about its end: its last error, else its last line that is no stack frame. */
function lastLine(file: string, from: number): string | undefined {
  try {
    const handle = openSync(file, "r");
    try {
      const { size } = fstatSync(handle);
      const start = Math.max(from, size - longestOutput);
      const bytes = Buffer.alloc(Math.max(size - start, 0));
      const length = readSync(handle, bytes, 0, bytes.length, start);
      return reasonIn(bytes.toString("utf8", 0, length))?.slice(0, 500);
    } finally {
      closeSync(handle);
    }
  } catch {
    return undefined;
  }
}

/** Pure: the line of a log that says why its process ended. Some print their whole usage below it. */
export function reasonIn(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => /^[^\s}]/.test(line) && !line.startsWith("Node.js v"));
  return lines.findLast((line) => /^(\w*Error: |F\d{4} )/.test(line)) ?? lines.at(-1);
}
