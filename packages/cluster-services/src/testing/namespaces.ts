import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { type RunProgram, runProgram } from "../host/run-program.ts";
import type { AgentRequest, ConnectRequest } from "./namespace-agent.ts";

/** A network namespace, which ends with the test. */
export interface Namespace {
  readonly pid: number;
  /** Runs a program in it. */
  readonly run: RunProgram;
  /** One command of iproute2. */
  ip(command: string): Promise<string>;
  request(request: AgentRequest): Promise<string[]>;
  /** @returns for each connection the server's name and the client address that it saw; `refused`, `timeout` */
  ask(request: ConnectRequest): Promise<string[]>;
}

export const needsRoot = process.getuid?.() === 0 ? false : "network namespaces need root";

/** The names of the servers in answers of `Namespace.ask`, sorted, each once; `refused` and `timeout` stay as they are. */
export const serversOf = (answers: readonly string[]): string[] =>
  [...new Set(answers.map((answer) => answer.split(" ")[0] as string))].sort();

/** Makes a namespace with its loopback interface up. */
export async function newNamespace(t: TestContext): Promise<Namespace> {
  const agent = join(import.meta.dirname, "namespace-agent.ts");
  const child = spawn("unshare", ["--net", process.execPath, agent, "run"], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child, "spawn");
  t.after(() => end(child));
  const answers: ((answer: string[]) => void)[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => answers.shift()?.(JSON.parse(line) as string[]));
  const request = (message: AgentRequest): Promise<string[]> =>
    new Promise((resolve) => {
      answers.push(resolve);
      child.stdin.write(`${JSON.stringify(message)}\n`);
    });
  await request({ op: "set", file: "/proc/self/comm", value: "agent" }); // it is in its namespace now
  const pid = child.pid as number;
  const run: RunProgram = (command, args, input) => runProgram("nsenter", [`--net=/proc/${pid}/ns/net`, command, ...args], input);
  const namespace: Namespace = {
    pid,
    run,
    request,
    ip: (command) => run("ip", command.split(" ")),
    ask: (ask) => request({ op: "ask", ...ask }),
  };
  await namespace.ip("link set lo up");
  return namespace;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, "exit");
  child.stdin?.end();
  await exited;
}

/** Joins two namespaces by a pair of interfaces. */
export async function connectPair(one: Namespace, oneName: string, other: Namespace, otherName: string): Promise<void> {
  await one.ip(`link add ${oneName} type veth peer name ${otherName} netns ${other.pid}`);
  await one.ip(`link set ${oneName} up`);
  await other.ip(`link set ${otherName} up`);
}
