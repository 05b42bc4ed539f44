import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Connection, openConnection } from "./http.ts";
import { openHttp1 } from "./http1.ts";
import type { SecondServer } from "./options.ts";

/** A server under load: where it is, who we are, and which processes pay for it. */
export interface Target {
  readonly name: string;
  readonly pid: number;
  readonly etcdPid?: number;
  connect(): Promise<Connection>;
  /** The same over HTTP/1.1: as many sockets as requests are under way. */
  connectHttp1(): Connection;
  /** Somebody whose rights come from RBAC and not from system:masters. */
  connectAsUser?(): Promise<Connection>;
  stop(): Promise<void>;
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const adminToken = "bench-admin";
const userToken = "bench-user";

/** Our API server as a process of its own over an etcd of its own, with TLS, tokens and RBAC as in a cluster. */
export async function startOurs(cpuProfileFolder?: string): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), "cox-bench-"));
  const file = (name: string): string => join(folder, name);
  const etcd = await startOwnEtcd();
  const ca = await newCa({ commonName: "bench-ca" });
  const pair = await newCertificate({
    commonName: "kube-apiserver",
    dnsNames: ["localhost"],
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca,
  });
  const { keyPem, pubPem } = newServiceAccountKey();
  const tokens = `${adminToken},bench-admin,1,system:masters\n${userToken},bench-user,2,benchers\n`;
  for (const [name, text] of Object.entries({
    "tls.crt": pair.certPem,
    "tls.key": pair.keyPem,
    "sa.key": keyPem,
    "sa.pub": pubPem,
    tokens,
  })) {
    writeFileSync(file(name), text, { mode: 0o600 });
  }
  const port = await freePort();
  if (cpuProfileFolder !== undefined) mkdirSync(cpuProfileFolder, { recursive: true });
  const profile = cpuProfileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(cpuProfileFolder)}`];
  const child = spawn(
    process.execPath,
    [
      ...["-C", "cox-source", ...profile, join(root, "packages/apiserver/src/main.ts")],
      `--etcd-servers=${etcd.endpoint}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--tls-cert-file=${file("tls.crt")}`,
      `--tls-private-key-file=${file("tls.key")}`,
      `--token-auth-file=${file("tokens")}`,
      "--authorization-mode=RBAC",
      `--service-account-key-file=${file("sa.pub")}`,
      `--service-account-signing-key-file=${file("sa.key")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.96.0.0/16",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000);
  });
  const stop = async (): Promise<void> => {
    await end(child);
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `https://127.0.0.1:${port}`;
  const caPem = Buffer.from(ca.certPem);
  try {
    await waitFor(() => isReady(url, caPem, child), { timeoutMs: 60_000, what: "the API server to be ready" });
  } catch (err) {
    await stop();
    throw new Error(`the API server did not start: ${output}`, { cause: err });
  }
  return {
    name: "coxswain",
    pid: child.pid as number,
    etcdPid: etcd.pid,
    connect: () => openConnection(url, adminToken, caPem),
    connectHttp1: () => openHttp1(url, adminToken, caPem),
    connectAsUser: () => openConnection(url, userToken, caPem),
    stop,
  };
}

/** A server that runs already and that we leave running. */
export function secondServer(server: SecondServer): Target {
  const ca = server.caFile === undefined ? undefined : readFileSync(server.caFile);
  return {
    name: "against",
    pid: server.pid,
    ...(server.etcdPid !== undefined && { etcdPid: server.etcdPid }),
    connect: () => openConnection(server.url, server.token, ca),
    connectHttp1: () => openHttp1(server.url, server.token, ca),
    stop: async () => {},
  };
}

async function isReady(url: string, ca: Buffer, child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null) return true; // found out by the first request
  const connection = await openConnection(url, adminToken, ca);
  try {
    return (await connection.request("/readyz")).status === 200;
  } finally {
    connection.close();
  }
}

/** Asked first, so that a CPU profile gets written. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await gone;
  clearTimeout(kill);
}
