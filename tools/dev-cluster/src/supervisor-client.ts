import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { processesOf } from "./cluster-processes.ts";
import { Failure } from "./failure.ts";
import { startTimeOf } from "./process-identity.ts";
import type { Settings } from "./settings.ts";
import {
  logFile,
  processVariable,
  type Request,
  readState,
  type SupervisorPlace,
  type SupervisorState,
  socketFile,
  supervisorName,
} from "./supervisor-state.ts";

const answerMs = 5_000;
const startMs = 20_000;
/** How long `endSupervisor` waits: for an answer, for the end that was requested, and for the kernel to kill it. */
const endWaits = { answerMs, endMs: 2_000, killMs: 5_000 };

/** @returns the pid of the running supervisor, even when its state file is lost. */
export function supervisorPid(place: Pick<Settings, "state" | "id">): number | undefined {
  const self = readState(place)?.supervisor;
  if (self !== undefined && startTimeOf(self.pid) === self.startTime) return self.pid;
  return processesOf(place.id).find(({ name }) => name === supervisorName)?.pid;
}

/**
 * Sends a request to the supervisor.
 * @throws Failure with the reason when it rejects the request, does not run or does not respond
 */
export async function sendRequest(
  place: SupervisorPlace,
  request: Request,
  timeoutMs = timeoutOf(request),
): Promise<SupervisorState> {
  const text = await exchange(socketFile(place), `${JSON.stringify(request)}\n`, timeoutMs);
  const answer = JSON.parse(text) as SupervisorState & { error?: string }; // cast: the supervisor is this program
  if (answer.error !== undefined) throw new Failure(`the supervisor refused ${request.verb}: ${answer.error}`);
  return answer;
}

/** Pure: how long an answer may take. A stop takes its grace, and a start may stop the process of another command first. */
export function timeoutOf(request: Request): number {
  if (request.verb === "stop") return answerMs + request.graceMs;
  return request.verb === "start" ? 3 * answerMs : answerMs;
}

function exchange(socket: string, line: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const connection = connect(socket, () => connection.write(line));
    const fail = (reason: string): void => {
      connection.destroy();
      reject(new Failure(`the supervisor does not respond at ${socket}: ${reason}`));
    };
    connection.setEncoding("utf8");
    connection.setTimeout(timeoutMs, () => fail(`nothing within ${timeoutMs / 1000} s`));
    connection.on("data", (chunk: string) => {
      text += chunk;
    });
    connection.on("error", (err) => fail(err.message));
    connection.on("end", () => (text.endsWith("\n") ? resolve(text) : fail("it ended before it had answered")));
  });
}

/**
 * Starts the supervisor unless it is running; a new one adopts the processes of its predecessor.
 * @returns whether it was started
 */
export async function ensureSupervisor(settings: Settings): Promise<boolean> {
  if (supervisorPid(settings) !== undefined) {
    await sendRequest(settings, { verb: "status" });
    return false;
  }
  makeFolderSync(join(settings.state, "run"));
  makeFolderSync(join(settings.state, "logs"));
  makeFolderSync(settings.run, 0o711);
  const output = openSync(logFile(settings, supervisorName), "a", 0o600);
  const program = join(settings.root, "tools/dev-cluster/src/supervisor-main.ts");
  const args = ["-C", "cox-source", program, settings.state, settings.run, settings.id, kubernetesRelease.gitVersion];
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", output, output],
    cwd: settings.state,
    env: { ...process.env, [processVariable]: `${settings.id}/${supervisorName}` },
  });
  closeSync(output);
  child.on("error", () => {}); // reported below
  child.unref();
  const end = performance.now() + startMs;
  for (;;) {
    try {
      await sendRequest(settings, { verb: "status" });
      return true;
    } catch (err) {
      const ended = child.pid === undefined || startTimeOf(child.pid) === undefined;
      if (ended || performance.now() > end) throw new Failure(`${messageOf(err)}; see ${logFile(settings, supervisorName)}`);
      await delay(20);
    }
  }
}

/** Stops only the supervisor, even when it does not respond; the supervised processes continue. */
export async function endSupervisor(place: SupervisorPlace, waits = endWaits): Promise<void> {
  const pid = supervisorPid(place);
  if (pid === undefined) return;
  const startTime = startTimeOf(pid);
  await sendRequest(place, { verb: "exit" }, waits.answerMs).catch(() => {});
  const isGone = async (withinMs: number): Promise<boolean> => {
    const end = performance.now() + withinMs;
    while (startTimeOf(pid) === startTime) {
      if (performance.now() > end) return false;
      await delay(10);
    }
    return true;
  };
  if (await isGone(waits.endMs)) return;
  process.kill(pid, "SIGKILL");
  if (!(await isGone(waits.killMs))) throw new Failure(`the supervisor, pid ${pid}, does not end`);
}
