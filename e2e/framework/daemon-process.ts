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
  /** What it wrote to its log. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it; undefined while it runs. */
  end(): number | NodeJS.Signals | undefined;
}

export interface DaemonProgram {
  /** Below `packages`. */
  readonly packageName: "controller-manager" | "scheduler" | "node-agent";
  /** Its client certificate says so. */
  readonly user: string;
  readonly groups?: readonly string[];
  /** @param kubeconfig a path @param file where a file of its own may lie */
  flags(kubeconfig: string, file: (name: string) => string): readonly string[];
}

/** One daemon from its sources beside an API server, as a user that has no more rights than it should; ends with the test. */
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

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
