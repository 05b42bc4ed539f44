import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { newClient } from "@coxswain/apimachinery/client/client";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";

/** A daemon under test: ours from `dist`, or another implementation that accepts the same flags. */
export interface DaemonProgram {
  readonly name: "ours" | "peer";
  readonly command: readonly string[];
}

export interface RunningDaemon {
  readonly pid: number;
  stop(): Promise<void>;
}

export const root = join(fileURLToPath(new URL(".", import.meta.url)), "..", "..", "..", "..");

const packages = {
  "kube-apiserver": "apiserver",
  "kube-controller-manager": "controller-manager",
  "kube-scheduler": "scheduler",
  kubelet: "node-agent",
  "kube-proxy": "cluster-services",
} as const;
export type DaemonName = keyof typeof packages;

interface ProgramOptions {
  /** Folder with the second implementation's binaries. */
  readonly peerBin?: string | undefined;
  /** Folder for CPU profiles of our daemons. */
  readonly cpuProfileFolder?: string | undefined;
  /** Node flags for our daemons, to compare heap settings. */
  readonly nodeFlags?: readonly string[];
}

/** Ours first, then the second implementation when there is one. */
export function programsOf(daemon: DaemonName, options: ProgramOptions): DaemonProgram[] {
  const { peerBin, cpuProfileFolder, nodeFlags = [] } = options;
  const profile = cpuProfileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(cpuProfileFolder)}`];
  const main = join(root, "packages", packages[daemon], "dist", "main.js");
  const ours: DaemonProgram = { name: "ours", command: [process.execPath, ...nodeFlags, ...profile, main] };
  return peerBin === undefined ? [ours] : [ours, { name: "peer", command: [join(peerBin, daemon)] }];
}

/** Starts a daemon with a secure port on loopback; resolves when its /healthz answers 200. It ends with this process. */
export async function startDaemon(program: DaemonProgram, flags: readonly string[]): Promise<RunningDaemon> {
  const port = await freePort();
  return spawnDaemon(program, [...flags, "--bind-address=127.0.0.1", `--secure-port=${port}`], `https://127.0.0.1:${port}`);
}

/** Like `startDaemon`, but `flags` are all flags. @param address of its /healthz */
export async function spawnDaemon(
  { command: [command = "", ...args] }: DaemonProgram,
  flags: readonly string[],
  address: string,
  path = "/healthz",
  env: NodeJS.ProcessEnv = {},
): Promise<RunningDaemon> {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", command, ...args, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...env },
  });
  let output = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000);
  });
  const client = newClient({ host: address, insecure: true, qps: -1 });
  try {
    await waitFor(async () => child.exitCode !== null || (await client.raw("GET", path)).status === 200, {
      what: `${command} to be healthy`,
      timeoutMs: 120_000,
      retry: () => true,
    });
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
  } catch (err) {
    child.kill("SIGKILL");
    throw new Error(`${[command, ...args].join(" ")} did not start: ${output}`, { cause: err });
  } finally {
    client.close();
  }
  return { pid: child.pid!, stop: () => end(child) };
}

/** Sends SIGTERM first, so that a CPU profile is written. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await gone;
  clearTimeout(kill);
}
