import { type ChildProcess, execFile, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { portNames, readSettings, type Settings } from "@coxswain/dev-cluster/settings";
import type { Outcome } from "./kubectl.ts";

const root = join(import.meta.dirname, "..", "..");

/** A separate cluster for one test, besides the shared one. */
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

let count = 0;

/**
 * Chooses free ports and networks for a cluster; does not start it.
 * @param state state folder; the caller removes the cluster with `down --purge`
 */
export async function newOwnCluster(state: string, more: Readonly<Record<string, string>> = {}): Promise<OwnCluster> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("COX_")));
  const network = 20 * (process.pid % 4) + count++; // several test runs may share the machine
  const ports = await freePorts(portNames.length);
  const env = {
    ...inherited,
    COX_STATE: state,
    COX_NODE_NAME: "own-node",
    COX_ETCD_WITHOUT_SYNC: "1",
    COX_POD_NETWORK: `10.${110 + network}`,
    COX_SERVICE_NETWORK: `172.${16 + (network % 15)}`,
    ...Object.fromEntries(portNames.map((name, index) => [`COX_PORT_${name.toUpperCase()}`, String(ports[index])])),
    ...more,
  };
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
    execFile(command, [...args], { env, maxBuffer: 64 << 20, timeout: 300_000 }, (err, stdout, stderr) => {
      const code = err === null ? 0 : typeof err.code === "number" ? err.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}

/** Free ports; all are bound simultaneously, so that they differ. */
async function freePorts(amount: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: amount }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
