import { spawn } from "node:child_process";
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { removeUnusedMember } from "./etcd-data.ts";
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
  /** Starts a process, or replaces a running one whose command or environment differs. */
  start(spec: ProcessSpec): Promise<void>;
  /** Sends SIGTERM and, after `graceMs`, SIGKILL; 0 kills immediately. Resolves when the process has exited. */
  stop(name: string, graceMs: number): Promise<void>;
  state(): SupervisorState;
}

/** Poll interval of adopted processes, which are not children and report no exit. */
const adoptedPollMs = 200;
/** Grace period when a process is replaced. */
const replaceGraceMs = 10_000;
const stateRetryMs = 1_000;
/** Logs larger than this are rotated when their process restarts. */
const largeLogBytes = 64 << 20;

/**
 * Executes the actions of `decide`: starts processes, each in its own session, and restarts them when they exit.
 * Adopts processes left by an earlier supervisor. Processes continue when the supervisor exits.
 * @param version its own version, shown by `status`
 * @param log receives a line for every start and exit
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
      const message = messageOf(err); // the disk is full: running processes are not affected
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

function newSupervised(
  place: SupervisorPlace,
  spec: ProcessSpec,
  initial: ProcessState,
  options: { save(): void; log(line: string): void },
): Supervised {
  return new Supervised(place, spec, initial, options);
}

class Supervised {
  readonly #options: { save(): void; log(line: string): void };
  readonly #place: SupervisorPlace;
  readonly #spec: ProcessSpec;
  #state: ProcessState;
  #timer: NodeJS.Timeout | undefined;
  #begun = performance.now();
  readonly #waiters: (() => void)[] = [];

  constructor(
    place: SupervisorPlace,
    spec: ProcessSpec,
    initial: ProcessState,
    options: { save(): void; log(line: string): void },
  ) {
    this.#options = options;
    this.#place = place;
    this.#spec = spec;
    this.#state = initial;
  }

  view(): SupervisedProcess {
    return { spec: this.#spec, state: this.#state };
  }

  start(): void {
    this.#dispatch({ type: "start" });
  }

  /** Resolves when no stop is in progress. */
  settled(): Promise<void> {
    return this.#state.phase === "stopping" ? new Promise((resolve) => this.#waiters.push(resolve)) : Promise.resolve();
  }

  stop(graceMs: number): Promise<void> {
    this.#dispatch({ type: "stop", graceMs });
    return this.settled();
  }

  /** Continues with a process of an earlier supervisor, if it is still running. */
  adopt(left: ProcessState): void {
    const { log } = this.#options;
    const { pid, startTime, ...rest } = left;
    if (pid === undefined || startTime === undefined || startTimeOf(pid) !== startTime) {
      const wasWanted = left.phase === "running" || left.phase === "waiting";
      const reason = "it ended while no supervisor ran";
      this.#state = { ...rest, phase: "stopped", since: Date.now(), ...(wasWanted && { lastEnd: { at: Date.now(), reason } }) };
      return;
    }
    this.#state = left;
    log(`adopted ${this.#spec.name}, pid ${pid}`);
    const poll = setInterval(() => {
      if (startTimeOf(pid) === startTime) return;
      clearInterval(poll);
      const line = lastLine(logFile(this.#place, this.#spec.name), 0) ?? "";
      // The last line of the log is the reason only when it is an error: a killed process has logged nothing about its end.
      const why = /^(\w*Error: |[EF]\d{4} )/.test(line) ? `: ${line}` : "";
      const reason = `ended, exit code unknown (an earlier supervisor had started it)${why}`;
      log(`${this.#spec.name} ${reason}`);
      this.#dispatch({ type: "ended", reason, ranMs: performance.now() - this.#begun });
    }, adoptedPollMs);
    if (left.phase === "stopping") this.#dispatch({ type: "stop", graceMs: replaceGraceMs });
  }

  #dispatch(event: ProcessEvent): void {
    const { save } = this.#options;
    const decision = decide(this.#state, event, Date.now());
    if (decision.state !== this.#state) clearTimeout(this.#timer);
    this.#state = decision.state;
    for (const action of decision.actions) this.#perform(action);
    if (this.#state.phase !== "stopping") for (const waiter of this.#waiters.splice(0)) waiter();
    save();
  }

  #perform(action: Action): void {
    if (action.type === "wake") this.#timer = setTimeout(() => this.#dispatch({ type: "wake" }), action.afterMs);
    else if (action.type === "signal") signalProcess(this.#state, action.signal);
    else this.#launch();
  }

  #launch(): void {
    const { log } = this.#options;
    this.#begun = performance.now();
    let logStart = 0;
    const ended = (how: string): void => {
      const line = lastLine(logFile(this.#place, this.#spec.name), logStart);
      const reason = line === undefined || how.includes("SIGKILL") ? how : `${how}: ${line}`;
      log(`${this.#spec.name} ended: ${reason}`);
      this.#dispatch({ type: "ended", reason, ranMs: performance.now() - this.#begun });
    };
    try {
      if (this.#spec.etcdData !== undefined && removeUnusedMember(this.#spec.etcdData))
        log(`removed the member in ${this.#spec.etcdData}, which was killed before its first write`);
      const output = openLog(logFile(this.#place, this.#spec.name), this.#state.restarts === 0);
      logStart = fstatSync(output).size;
      const child = spawn(this.#spec.command, this.#spec.args, {
        detached: true,
        stdio: ["ignore", output, output],
        cwd: this.#place.state,
        env: { ...process.env, ...this.#spec.env, [processVariable]: `${this.#place.id}/${this.#spec.name}` },
      });
      closeSync(output);
      if (child.pid === undefined) child.once("error", (err) => ended(`cannot be started: ${err.message}`));
      else {
        child.once("exit", (code, signal) => ended(signal === null ? `exit code ${code}` : `killed by ${signal}`));
        log(`started ${this.#spec.name}, pid ${child.pid}`);
        this.#dispatch({ type: "spawned", pid: child.pid, startTime: startTimeOf(child.pid) ?? "" });
      }
    } catch (err) {
      setImmediate(ended, `cannot be started: ${messageOf(err)}`);
    }
  }
}

function signalProcess({ pid, startTime }: ProcessState, signal: NodeJS.Signals): void {
  if (pid === undefined || startTimeOf(pid) !== startTime) return; // it has exited; the exit event follows
  try {
    process.kill(pid, signal);
  } catch {
    // already exited
  }
}

/** @param fresh renames the log of an earlier run to `.old` */
function openLog(file: string, fresh: boolean): number {
  if (existsSync(file) && (fresh || statSync(file).size > largeLogBytes)) renameSync(file, `${file}.old`);
  return openSync(file, "a", 0o600);
}

const longestOutput = 64 << 10;

/** Reason for an exit from the process's log: the last error, else the last line that is not a stack frame. */
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

/** Pure: the line of a log that explains the exit. Some programs print their usage below the error. */
export function reasonIn(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => /^[^\s}]/.test(line) && !line.startsWith("Node.js v"));
  return lines.findLast((line) => /^(\w*Error: |F\d{4} )/.test(line)) ?? lines.at(-1);
}
