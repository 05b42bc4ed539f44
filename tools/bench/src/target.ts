import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { type Connection, openConnection } from "./http.ts";
import { openHttp1 } from "./http1.ts";
import type { SecondServer } from "./options.ts";
import { type Program, startProgram } from "./program.ts";
import { openWatchConnection, type WatchConnection } from "./watch-client.ts";

/** A server under load: its address, credentials, and the processes whose CPU time is measured. */
export interface Target {
  readonly name: string;
  readonly pid: number;
  readonly etcdPid?: number;
  connect(): Promise<Connection>;
  /** A connection for watches only, with minimal client cost. */
  connectWatches(): Promise<WatchConnection>;
  /** An HTTP/1.1 client: one socket per concurrent request. */
  connectHttp1(): Connection;
  /** Connects as a user authorized by RBAC instead of system:masters. */
  connectAsUser?(): Promise<Connection>;
  stop(): Promise<void>;
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const adminToken = "bench-admin";
const userToken = "bench-user";

interface OurOptions {
  readonly cpuProfileFolder?: string | undefined;
  /** Enables priority and fairness; default off. */
  readonly fairness?: boolean;
  /** Flags of Node for the server. */
  readonly nodeFlags?: readonly string[];
}

/** Our API server with TLS, tokens and RBAC; the caller adds the flags for port and etcd. */
export async function ourProgram({ cpuProfileFolder, fairness = false, nodeFlags = [] }: OurOptions = {}): Promise<{
  program: Program;
  remove(): void;
}> {
  const folder = mkdtempSync(join(tmpdir(), "cox-bench-"));
  const file = (name: string): string => join(folder, name);
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
  if (cpuProfileFolder !== undefined) makeFolderSync(cpuProfileFolder);
  const profile = cpuProfileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(cpuProfileFolder)}`];
  const command = [
    process.execPath,
    ...profile,
    ...nodeFlags,
    join(root, "packages/apiserver/dist/main.js"),
    "--bind-address=127.0.0.1",
    `--tls-cert-file=${file("tls.crt")}`,
    `--tls-private-key-file=${file("tls.key")}`,
    `--token-auth-file=${file("tokens")}`,
    "--authorization-mode=RBAC",
    `--service-account-key-file=${file("sa.pub")}`,
    `--service-account-signing-key-file=${file("sa.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.96.0.0/16",
    `--enable-priority-and-fairness=${fairness}`,
  ];
  return {
    program: { name: "coxswain", command, token: adminToken, ca: Buffer.from(ca.certPem) },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Starts our API server as a separate process with its own etcd. */
export async function startOurs(options: OurOptions = {}): Promise<Target> {
  const etcd = await startOwnEtcd();
  const { program, remove } = await ourProgram(options);
  const clean = async (): Promise<void> => {
    await etcd.stop();
    remove();
  };
  const running = await startProgram(program, {
    "etcd-servers": etcd.endpoint,
    "secure-port": String(await freePort()),
  }).catch(async (err: unknown) => {
    await clean();
    throw err;
  });
  const { url } = running;
  return {
    name: program.name,
    pid: running.pid,
    etcdPid: etcd.pid,

    connect: () => openConnection(url, adminToken, program.ca),
    connectWatches: () => openWatchConnection(url, adminToken, program.ca),
    connectHttp1: () => openHttp1(url, adminToken, program.ca),
    connectAsUser: () => openConnection(url, userToken, program.ca),
    async stop() {
      await running.stop();
      await clean();
    },
  };
}

/** A server that is already running and is not stopped afterwards. */
export function secondServer(server: SecondServer): Target {
  const ca = secondServerCa(server);
  return {
    name: "against",
    pid: server.pid,
    ...(server.etcdPid !== undefined && { etcdPid: server.etcdPid }),
    connect: () => openConnection(server.url, server.token, ca),
    connectWatches: () => openWatchConnection(server.url, server.token, ca),
    connectHttp1: () => openHttp1(server.url, server.token, ca),
    stop: async () => {},
  };
}

/** The CA bundle; undefined: the CAs that Node trusts. */
export function secondServerCa({ caFile }: SecondServer): Buffer | undefined {
  return caFile === undefined ? undefined : readFileSync(caFile);
}
