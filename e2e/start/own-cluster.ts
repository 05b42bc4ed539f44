/**
 * A separate cluster for a test, started process by process: on free ports, in its own folder, with the flags of `./cox up`. Its
 * processes end with the test.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { kubeconfigFile, pkiFile, prepareCertificates } from "@coxswain/dev-cluster/pki";
import type { ProcessSpec } from "@coxswain/dev-cluster/processes";
import { removeRemains } from "@coxswain/dev-cluster/remains";
import { defaultChoices, newSettings, portNames, type Settings } from "@coxswain/dev-cluster/settings";
import { waitFor } from "../framework/wait-for.ts";

export interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

export interface OwnOptions {
  /** Whether to run containerd and the kubelet too. */
  readonly withNode?: boolean;
  readonly etcdWithoutSync?: boolean;
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

export interface OwnCluster {
  /** Certificates and kubeconfigs exist; processes run only after they are started. */
  readonly settings: Settings;
  start(spec: ProcessSpec): OwnProcess;
  /** Client with the administrator's kubeconfig. */
  client(): Promise<Client>;
}

/** After the test, its processes are stopped and its folder is removed. */
export async function newOwnCluster(t: TestContext, options: OwnOptions = {}): Promise<OwnCluster> {
  const state = mkdtempSync(join(tmpdir(), "cox-start-"));
  const ports = Object.fromEntries(await Promise.all(portNames.map(async (name) => [name, await freePort()] as const)));
  const settings = newSettings(root, "default", state, {
    ...defaultChoices(),
    nodeName: "start-node",
    podCidr: freeNetwork(),
    serviceCidr: "10.99.0.0/16",
    withNode: options.withNode === true,
    etcdWithoutSync: options.etcdWithoutSync ?? true,
    auditPolicy: "",
    ports: { ...defaultChoices().ports, ...ports },
  });
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

/** A network that contains no address of this machine. */
function freeNetwork(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  for (;;) {
    const prefix = `10.${randomInt(200, 240)}.${randomInt(0, 256)}.`;
    if (!addresses.some((address) => address.startsWith(prefix))) return `${prefix}0/24`;
  }
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
