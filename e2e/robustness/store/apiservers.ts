import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type KeyPair, newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { isNotListening } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp } from "@coxswain/apiserver/testing/start-test-server";
import { waitFor } from "../../framework/wait-for.ts";
import { ended } from "./etcd-cluster.ts";
import type { FaultPoint } from "./faulty-apiserver.ts";

/** API servers as separate processes that can be killed and restarted on the same port. */
export interface ApiServers {
  readonly servers: readonly ApiServer[];
  readonly ca: string;
  readonly token: string;
  /** Replaces the serving certificate by a new one from the same CA. */
  rotateCertificate(): Promise<void>;
}

export interface ApiServer {
  readonly url: string;
  readonly pid: number;
  readonly running: boolean;
  /** @param fault the point at which it kills itself, and the number of the write there */
  start(fault?: { point: FaultPoint; times: number }): void;
  ready(): Promise<void>;
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves when the process has exited. */
  stop(): Promise<void>;
  /** Resolves when the process has exited for any reason. */
  gone(): Promise<void>;
  pause(): void;
  resume(): void;
  request: ReturnType<typeof newHttp>["request"];
  log(): string;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

/** Limit for requests to a paused server, which never responds. */
const answerMs = 20_000;

const program = fileURLToPath(new URL("faulty-apiserver.ts", import.meta.url));

/** Starts the servers with one CA and token, and waits until all are ready. They are killed when the test ends. */
export async function startApiServers(
  t: TestContext,
  count: number,
  etcdServers: readonly string[],
  extraFlags: (server: number) => readonly string[] = () => [],
): Promise<ApiServers> {
  const files = await CredentialFiles.write();
  const servers: ApiServerProcess[] = [];
  t.after(() => {
    for (const server of servers) server.close();
    files.remove();
  });
  for (let i = 0; i < count; i++) {
    const flags = [`--etcd-servers=${etcdServers.join()}`, `--advertise-address=192.0.2.${i + 1}`, ...extraFlags(i)];
    servers.push(new ApiServerProcess(files, i, await freePort(), flags));
  }
  for (const server of servers) server.start();
  await Promise.all(servers.map((server) => server.ready()));
  return { servers, ca: files.ca.certPem, token: files.token, rotateCertificate: () => files.rotateCertificate() };
}

/** A folder with the certificates, keys and tokens of the servers, and their logs. */
class CredentialFiles {
  readonly token = randomUUID();
  readonly ca: KeyPair;
  readonly #directory = mkdtempSync(join(tmpdir(), "cox-apiservers-"));

  private constructor(ca: KeyPair) {
    this.ca = ca;
  }

  static async write(): Promise<CredentialFiles> {
    const files = new CredentialFiles(await newCa({ commonName: "robustness" }));
    await files.rotateCertificate();
    const { keyPem, pubPem } = newServiceAccountKey();
    files.#put("sa.key", keyPem);
    files.#put("sa.pub", pubPem);
    files.#put("tokens.csv", `${files.token},admin,admin,"system:masters"\n`);
    return files;
  }

  path(name: string): string {
    return join(this.#directory, name);
  }

  async rotateCertificate(): Promise<void> {
    const pair = await newCertificate({ commonName: "kube-apiserver", ips: ["127.0.0.1"], usages: ["server"], ca: this.ca });
    this.#put("tls.crt", pair.certPem);
    this.#put("tls.key", pair.keyPem);
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #put(name: string, text: string): void {
    writeFileSync(this.path(name), text, { mode: 0o600 });
  }
}

class ApiServerProcess implements ApiServer {
  readonly url: string;
  readonly #flags: readonly string[];
  readonly #output: string;
  readonly #token: string;
  readonly #http: ReturnType<typeof newHttp>;
  #child: ChildProcess | undefined;

  /** @param flags in addition to those of port and credentials */
  constructor(files: CredentialFiles, index: number, port: number, flags: readonly string[]) {
    this.url = `https://127.0.0.1:${port}`;
    this.#output = files.path(`server-${index}.log`);
    this.#token = files.token;
    this.#http = newHttp(this.url, files.ca.certPem);
    this.#flags = [
      "--etcd-compaction-interval=0",
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--tls-cert-file=${files.path("tls.crt")}`,
      `--tls-private-key-file=${files.path("tls.key")}`,
      `--token-auth-file=${files.path("tokens.csv")}`,
      `--service-account-key-file=${files.path("sa.pub")}`,
      `--service-account-signing-key-file=${files.path("sa.key")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--authorization-mode=RBAC",
      "--service-cluster-ip-range=10.0.0.0/24",
      ...flags,
    ];
  }

  /** The process that was started last; 0 before the first start. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  start(fault?: { point: FaultPoint; times: number }): void {
    const log = openSync(this.#output, "a");
    // The servers exit with this process, however it ends.
    const setpriv = ["--pdeathsig", "KILL", process.execPath, "-C", "cox-source", program];
    this.#child = spawn("setpriv", [...setpriv, ...this.#flags], {
      stdio: ["ignore", log, log],
      env: { ...process.env, NODE_OPTIONS: "", ...(fault !== undefined && { COX_FAULT: `${fault.point}:${fault.times}` }) },
    });
    closeSync(log);
  }

  async ready(): Promise<void> {
    const answers = async (): Promise<boolean> => !this.running || (await this.request("GET", "/readyz")).code === 200;
    await waitFor(`${this.url} to be ready`, answers, { timeoutMs: 180_000, retry: isNotListening });
    if (!this.running) throw new Error(`the API server ended: ${this.log().slice(-2000)}`);
  }

  kill(): Promise<void> {
    return ended(this.#child);
  }

  async stop(): Promise<void> {
    this.#child?.kill("SIGTERM");
    await this.gone();
  }

  async gone(): Promise<void> {
    if (this.running) await new Promise((resolve) => this.#child?.once("exit", resolve));
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  readonly request: ApiServer["request"] = (method, path, body, headers = {}) =>
    Promise.race([
      this.#http.request(method, path, body, { authorization: `Bearer ${this.#token}`, ...headers }),
      delay(answerMs, undefined, { ref: false }).then(() => Promise.reject(new Error(`${this.url} does not answer`))),
    ]);

  log(): string {
    return readFileSync(this.#output, "utf8");
  }

  /** Kills it without waiting for its end. */
  close(): void {
    this.#child?.kill("SIGKILL");
    this.#http.close();
  }
}
