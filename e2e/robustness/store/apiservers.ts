import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
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
  const directory = mkdtempSync(join(tmpdir(), "cox-apiservers-"));
  const children = new Set<ChildProcess>();
  t.after(() => {
    for (const child of children) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  });
  const file = (name: string): string => join(directory, name);
  const put = (name: string, text: string): void => writeFileSync(file(name), text, { mode: 0o600 });
  const ca = await newCa({ commonName: "robustness" });
  const token = randomUUID();
  const { keyPem, pubPem } = newServiceAccountKey();
  const rotateCertificate = async (): Promise<void> => {
    const pair = await newCertificate({ commonName: "kube-apiserver", ips: ["127.0.0.1"], usages: ["server"], ca });
    put("tls.crt", pair.certPem);
    put("tls.key", pair.keyPem);
  };
  await rotateCertificate();
  put("sa.key", keyPem);
  put("sa.pub", pubPem);
  put("tokens.csv", `${token},admin,admin,"system:masters"\n`);

  const servers = await Promise.all(Array.from({ length: count }, (_, i) => newServer(i)));
  for (const server of servers) server.start();
  await Promise.all(servers.map((server) => server.ready()));
  return { servers, ca: ca.certPem, token, rotateCertificate };

  async function newServer(index: number): Promise<ApiServer> {
    const port = await freePort();
    const url = `https://127.0.0.1:${port}`;
    const http = newHttp(url, ca.certPem);
    t.after(() => http.close());
    const output = file(`server-${index}.log`);
    const flags = [
      `--etcd-servers=${etcdServers.join()}`,
      "--etcd-compaction-interval=0",
      "--bind-address=127.0.0.1",
      `--advertise-address=192.0.2.${index + 1}`,
      `--secure-port=${port}`,
      `--tls-cert-file=${file("tls.crt")}`,
      `--tls-private-key-file=${file("tls.key")}`,
      `--token-auth-file=${file("tokens.csv")}`,
      `--service-account-key-file=${file("sa.pub")}`,
      `--service-account-signing-key-file=${file("sa.key")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--authorization-mode=RBAC",
      "--service-cluster-ip-range=10.0.0.0/24",
      ...extraFlags(index),
    ];
    let child: ChildProcess | undefined;
    const request: ApiServer["request"] = (method, path, body, headers = {}) =>
      Promise.race([
        http.request(method, path, body, { authorization: `Bearer ${token}`, ...headers }),
        delay(answerMs, undefined, { ref: false }).then(() => Promise.reject(new Error(`${url} does not answer`))),
      ]);
    const isRunning = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
    const gone = async (): Promise<void> => {
      if (isRunning()) await new Promise((resolve) => child?.once("exit", resolve));
    };
    return {
      url,
      get pid() {
        return child?.pid as number;
      },
      get running() {
        return isRunning();
      },
      start(fault) {
        const log = openSync(output, "a");
        // The servers exit with this process, however it ends.
        child = spawn("setpriv", ["--pdeathsig", "KILL", process.execPath, "-C", "cox-source", program, ...flags], {
          stdio: ["ignore", log, log],
          env: { ...process.env, NODE_OPTIONS: "", ...(fault !== undefined && { COX_FAULT: `${fault.point}:${fault.times}` }) },
        });
        closeSync(log);
        children.add(child);
        child.once("exit", () => children.delete(child as ChildProcess));
      },
      async ready() {
        const answers = async (): Promise<boolean> => !isRunning() || (await request("GET", "/readyz")).code === 200;
        await waitFor(`${url} to be ready`, answers, { timeoutMs: 180_000, retry: isNotListening });
        if (!isRunning()) throw new Error(`the API server ended: ${readFileSync(output, "utf8").slice(-2000)}`);
      },
      kill: () => ended(child),
      async stop() {
        child?.kill("SIGTERM");
        await gone();
      },
      gone,
      pause: () => void child?.kill("SIGSTOP"),
      resume: () => void child?.kill("SIGCONT"),
      request,
      log: () => readFileSync(output, "utf8"),
    };
  }
}
