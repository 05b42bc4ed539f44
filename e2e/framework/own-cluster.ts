import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { exitCodeOf } from "@coxswain/dev-cluster/commands";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile, pkiFile, prepareCertificates } from "@coxswain/dev-cluster/pki";
import type { ProcessSpec } from "@coxswain/dev-cluster/processes";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import { removeRemains } from "@coxswain/dev-cluster/remains";
import {
  defaultChoices,
  newSettings,
  portNames,
  portVariable,
  requestedByVariables,
  type Settings,
  withRequested,
} from "@coxswain/dev-cluster/settings";
import { freeNetwork } from "./free-network.ts";
import type { Outcome } from "./kubectl.ts";
import { waitFor } from "./wait-for.ts";

const root = join(import.meta.dirname, "..", "..");

/** A separate cluster for one test, besides the shared one, started by `./cox`. */
export interface OwnCluster {
  readonly settings: Settings;
  /** Runs `./cox` for this cluster; never throws for a non-zero exit code. */
  cox(...args: string[]): Promise<Outcome>;
  /** Like `cox`, but throws on failure. @returns its standard output */
  mustCox(...args: string[]): Promise<string>;
  /** Starts `./cox` without waiting for it. */
  start(...args: string[]): ChildProcess;
  /** Runs kubectl as the cluster's administrator. @throws Error for a non-zero exit code */
  kubectl(...args: string[]): Promise<string>;
}

/**
 * Chooses free ports and networks for a cluster; does not start it.
 * @param state state folder; the caller removes the cluster with `removeOwnCluster`
 * @param more variables that override the chosen ones
 */
export async function newOwnCluster(state: string, more: Readonly<Record<string, string>> = {}): Promise<OwnCluster> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("COX_")));
  const env = { ...inherited, COX_STATE: state, COX_NODE_NAME: "own-node", ...(await freeSettings()), ...more };
  const settings = readSettings(root, env);
  const program = await findKubectl(settings);
  const run = (command: string, args: string[]): Promise<Outcome> => runToEnd(command, args, env);
  const must = async (command: string, args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(command, args);
    if (code !== 0)
      throw Object.assign(new Error(`${command} ${args.join(" ")}: exit code ${code}\n${stdout}${stderr}`), { code });
    return stdout;
  };
  const cox = join(root, "cox");
  return {
    settings,
    cox: (...args) => run(cox, args),
    start: (...args) => spawn(cox, args, { env, stdio: ["ignore", "pipe", "pipe"] }),
    mustCox: (...args) => must(cox, args),
    kubectl: (...args) => must(program, ["--kubeconfig", kubeconfigFile(settings, "admin"), ...args]),
  };
}

/** Removes the cluster and its files, even when it is damaged. */
export async function removeOwnCluster(cluster: OwnCluster): Promise<void> {
  await cluster.mustCox("down", "--purge");
  rmSync(cluster.settings.state, { recursive: true, force: true });
}

function runToEnd(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(command, [...args], { env, maxBuffer: 64 << 20, timeout: 300_000 }, (_, stdout, stderr) =>
      resolve({ code: exitCodeOf(child.exitCode, child.signalCode), stdout, stderr }),
    );
  });
}

/** `COX_*` variables of free ports and networks, and an etcd without fsync. */
export async function freeSettings(): Promise<Record<string, string>> {
  const ports = new Set<number>();
  while (ports.size < portNames.length) ports.add(await freePort());
  const variables = [...ports].map((port, index) => [portVariable(portNames[index] as (typeof portNames)[number]), String(port)]);
  return {
    ...Object.fromEntries(variables),
    COX_POD_NETWORK: freeNetwork("10", 110, 190),
    COX_SERVICE_NETWORK: freeNetwork("172", 16, 31),
    COX_ETCD_WITHOUT_SYNC: "1",
  };
}

export interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

export interface ManualOptions {
  /** Whether to run containerd and the kubelet too. */
  readonly withNode?: boolean;
  readonly etcdWithoutSync?: boolean;
}

/** A separate cluster for one test, whose processes the test starts one by one with the flags of `./cox up`. */
export interface ManualCluster {
  /** Certificates and kubeconfigs exist; processes run only after they are started. */
  readonly settings: Settings;
  start(spec: ProcessSpec): OwnProcess;
  /** Client with the administrator's kubeconfig. */
  client(): Promise<Client>;
}

/** After the test, its processes are stopped and its folder is removed. */
export async function newManualCluster(t: TestContext, options: ManualOptions = {}): Promise<ManualCluster> {
  const state = mkdtempSync(join(tmpdir(), "cox-start-"));
  const { withNode = false, etcdWithoutSync = true } = options;
  const requested = { ...requestedByVariables(await freeSettings()), nodeName: "start-node", withNode, etcdWithoutSync };
  const settings = newSettings(root, "default", state, withRequested(defaultChoices(), requested));
  const started: OwnProcess[] = [];
  const clients: Client[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await Promise.all(started.map((one) => one.stop()));
    const left = settings.withNode ? await removeRemains(settings) : [];
    rmSync(state, { recursive: true, force: true, maxRetries: 10 });
    if (left.length > 0) throw new Error(`not removed: ${left.join(", ")}`);
  });
  makeFolderSync(join(state, "logs"));
  makeFolderSync(join(state, "manifests"));
  await prepareCertificates(settings);
  return {
    settings,
    start(spec) {
      const own = startOwn(settings, spec, started.length);
      started.push(own);
      return own;
    },
    async client() {
      const client = newClient({ ...(await loadKubeconfig(kubeconfigFile(settings, "admin"))), qps: -1 });
      clients.push(client);
      return client;
    },
  };
}

export interface OwnProcess {
  readonly pid: number;
  /** Its log since its last start. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it; undefined while it runs. */
  end(): number | NodeJS.Signals | undefined;
  /** Sends the signal; resolves when the process has exited. */
  stop(name?: NodeJS.Signals): Promise<void>;
}

/** Child processes end with the test's process, even if that is killed. */
function startOwn(settings: Settings, { name, command, args, env }: ProcessSpec, life: number): OwnProcess {
  const file = join(settings.state, "logs", `${name}-${life}.log`);
  const output = openSync(file, "a", 0o600);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", command, ...args], {
    stdio: ["ignore", output, output],
    cwd: settings.state,
    env: { ...process.env, ...env },
  });
  closeSync(output);
  child.on("error", () => {}); // treated as an exited process
  const end = (): number | NodeJS.Signals | undefined => child.exitCode ?? child.signalCode ?? undefined;
  return {
    pid: child.pid ?? 0,
    log: () => readFileSync(file, "utf8"),
    signal: (signal) => void child.kill(signal),
    end,
    stop: (signal = "SIGKILL") => ended(child, signal),
  };
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  if (signal === "SIGKILL") child.kill("SIGCONT");
  await exited;
}

/** Resolves when the process on this port is ready. @throws Error when the process has exited */
export async function untilReady(settings: Settings, server: OwnProcess, port: number): Promise<void> {
  const ca = readFileSync(pkiFile(settings, "ca.crt"), "utf8");
  const client = newClient({ host: `https://127.0.0.1:${port}`, ca, qps: -1 });
  try {
    const isReady = async (): Promise<boolean> => {
      if (server.end() !== undefined) return true;
      return (await client.raw("GET", "/readyz", { signal: AbortSignal.timeout(5_000) })).status === 200;
    };
    await waitFor(`port ${port} to be ready`, isReady, { retry: () => true });
  } finally {
    client.close();
  }
  if (server.end() !== undefined) throw new Error(`it has ended (${server.end()}):\n${server.log().slice(-2_000)}`);
}
