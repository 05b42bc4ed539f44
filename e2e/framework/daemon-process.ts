import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestServer } from "@coxswain/apiserver/testing/start-test-server";

export interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

export interface DaemonProcess {
  /** The log so far. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** Exit code, or the signal that killed it; undefined while it runs. */
  end(): number | NodeJS.Signals | undefined;
}

export interface DaemonProgram {
  /** Folder name below `packages`. */
  readonly packageName: "controller-manager" | "scheduler" | "node-agent";
  /** Common name of its client certificate. */
  readonly user: string;
  readonly groups?: readonly string[];
  /** @param kubeconfig path @param file returns a path in the daemon's temporary folder */
  flags(kubeconfig: string, file: (name: string) => string): readonly string[];
}

/** Runs a daemon from source against an API server, with the rights of the given user only; stopped after the test. */
export async function startDaemon(t: TestContext, server: TestServer, program: DaemonProgram): Promise<DaemonProcess> {
  const directory = mkdtempSync(join(tmpdir(), "cox-daemon-"));
  const file = (name: string): string => join(directory, name);
  const { cert, key } = await server.clientCertificate(program.user, [...(program.groups ?? [])]);
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: server.url, "certificate-authority-data": base64(server.ca) } }],
    users: [{ name: "u", user: { "client-certificate-data": base64(cert), "client-key-data": base64(key) } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(file("kubeconfig"), JSON.stringify(kubeconfig), { mode: 0o600 });
  const main = fileURLToPath(new URL(`../../packages/${program.packageName}/src/main.ts`, import.meta.url));
  const log = openSync(file("log"), "w");
  const argv = ["-C", "cox-source", main, ...program.flags(file("kubeconfig"), file)];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", log, log] });
  closeSync(log);
  t.after(async () => {
    await ended(child);
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    log: () => readFileSync(file("log"), "utf8"),
    signal: (name) => void child.kill(name),
    end: () => child.exitCode ?? child.signalCode ?? undefined,
  };
}

/**
 * A kubelet of the node n1 that only uses the API: without a container runtime, cgroups or a server.
 * @param folder its files, which a later start finds again
 * @param more further flags
 */
export function startKubelet(t: TestContext, server: TestServer, folder: string, ...more: string[]): Promise<DaemonProcess> {
  return startDaemon(t, server, {
    packageName: "node-agent",
    user: "system:node:n1",
    groups: ["system:nodes"],
    flags: (kubeconfig) => [
      `--kubeconfig=${kubeconfig}`,
      `--root-dir=${join(folder, "root")}`,
      `--cert-dir=${join(folder, "pki")}`,
      "--hostname-override=n1",
      "--container-runtime=remote",
      `--container-runtime-endpoint=unix://${join(folder, "no-runtime.sock")}`,
      "--enable-server=false",
      "--healthz-port=0",
      "--cgroups-per-qos=false",
      "--enforce-node-allocatable=",
      "--fail-swap-on=false",
      "--make-iptables-util-chains=false",
      ...more,
    ],
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
