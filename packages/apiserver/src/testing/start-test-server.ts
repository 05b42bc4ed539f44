/**
 * The complete API server for tests: real etcd with a unique key prefix, real TLS on a free port, all filters. Requests carry an
 * administrator's token unless the test overrides it.
 */

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newClient } from "@coxswain/apimachinery/client/client";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { discardLogger, type Logger, newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { configFromFlags } from "../config.ts";
import { kubeApiserver } from "../flags.ts";
import { type ApiserverRuntime, type RunningApiserver, startApiserver } from "../server.ts";

/** A list is sent as several headers. */
type SentHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** CA of the serving certificate and of client certificates, PEM. */
  readonly ca: string;
  readonly adminToken: string;
  readonly prefix: string;
  readonly etcdEndpoint: string;
  /** Sends a request as administrator; `headers` override (`authorization: undefined` for anonymous). JSON in, JSON out. */
  request(method: string, path: string, body?: unknown, headers?: SentHeaders): Promise<TestResponse>;
  /** Client authenticated as the administrator. */
  readonly client: Client;
  /** Issues a client certificate. */
  clientCertificate(commonName: string, organizations?: readonly string[]): Promise<{ cert: string; key: string }>;
  /** @param graceMs time to wait for requests in flight; default 0 */
  stop(graceMs?: number): Promise<void>;
}

export interface TestResponse {
  readonly code: number;
  readonly headers: Record<string, string | string[] | undefined>;
  /** Parsed JSON, or text when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly body: any;
  readonly text: string;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

let shared: Promise<{ directory: string; ca: { certPem: string; keyPem: string } }> | undefined;

/** Shared by all servers of the process, because generating keys is slow. */
function sharedCertificates(): NonNullable<typeof shared> {
  shared ??= (async () => {
    const directory = mkdtempSync(join(tmpdir(), "cox-apiserver-"));
    process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
    const ca = await newCa({ commonName: "test-ca" });
    const pair = await newCertificate({
      commonName: "kube-apiserver",
      dnsNames: ["localhost"],
      ips: ["127.0.0.1"],
      usages: ["server"],
      ca,
    });
    const { keyPem, pubPem } = newServiceAccountKey();
    const write = (name: string, text: string): void => writeFileSync(join(directory, name), text, { mode: 0o600 });
    write("ca.crt", ca.certPem);
    write("tls.crt", pair.certPem);
    write("tls.key", pair.keyPem);
    write("sa.key", keyPem);
    write("sa.pub", pubPem);
    return { directory, ca };
  })();
  return shared;
}

/**
 * @param extraFlags command-line flags: `["--authorization-mode=RBAC"]`
 * @param ownLog captures the log output
 * @returns when the server is ready
 */
export async function startTestServer(
  t: TestContext | undefined,
  extraFlags: readonly string[] = [],
  ownLog?: Logger,
): Promise<TestServer> {
  const server = await launchTestServer(t, extraFlags, ownLog);
  try {
    await server.ready(AbortSignal.timeout(120_000));
  } catch (err) {
    await server.stop();
    throw new Error("the test server did not become ready", { cause: err });
  }
  return server;
}

/**
 * @param aroundEtcd wraps the etcd client, to fail at a chosen point
 * @returns when the server listens, possibly before it is ready
 */
export async function launchTestServer(
  t: TestContext | undefined,
  extraFlags: readonly string[] = [],
  ownLog?: Logger,
  aroundEtcd?: ApiserverRuntime["aroundEtcd"],
): Promise<TestServer & Pick<RunningApiserver, "ready">> {
  const [{ directory, ca }, etcd] = await Promise.all([sharedCertificates(), startEtcd()]);
  const file = (name: string): string => join(directory, name);
  const prefix = `/test-${randomUUID()}`;
  const adminToken = randomUUID();
  const tokenFile = file(`tokens-${randomUUID()}.csv`);
  writeFileSync(tokenFile, `${adminToken},admin,admin-uid,"system:masters"\nuser-token,jane,jane-uid,"developers"\n`, {
    mode: 0o600,
  });
  const argv = [
    `--etcd-servers=${etcd.endpoint}`,
    `--etcd-prefix=${prefix}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=192.0.2.10",
    "--secure-port=0",
    `--tls-cert-file=${file("tls.crt")}`,
    `--tls-private-key-file=${file("tls.key")}`,
    `--client-ca-file=${file("ca.crt")}`,
    `--token-auth-file=${tokenFile}`,
    `--service-account-key-file=${file("sa.pub")}`,
    `--service-account-signing-key-file=${file("sa.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--authorization-mode=Node,RBAC",
    "--allow-privileged=true",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--etcd-compaction-interval=0",
  ];
  const overridden = new Set(extraFlags.map((flag) => flag.split("=")[0]));
  const kept = argv.filter((flag) => !overridden.has(flag.split("=")[0]));
  const { values } = parseFlags(kubeApiserver.flags, [...kept, ...extraFlags]);
  const shown = process.env["COX_TEST_LOG"];
  const log = ownLog ?? (shown === undefined ? discardLogger : newLogger({ verbosity: Number(shown) }));
  const featureGates = newFeatureGates(kubeApiserver.name, values["feature-gates"]);
  // Port 0 is supported for tests only; as a flag it is rejected.
  const config = configFromFlags({ ...values, "secure-port": values["secure-port"] || 6443 });
  const server: RunningApiserver = await startApiserver({ ...config, flags: values }, { log, featureGates, aroundEtcd });
  const client = newClient({ host: server.url, ca: ca.certPem, token: adminToken, qps: -1, burst: 0, userAgent: "test" });
  const http = newHttp(server.url, ca.certPem);
  let stopped: Promise<void> | undefined;
  const stop = (graceMs = 0): Promise<void> => {
    stopped ??= (async () => {
      http.close();
      client.close();
      await server.stop(graceMs);
      rmSync(tokenFile, { force: true });
    })();
    return stopped;
  };
  t?.after(() => stop());
  return {
    ready: (signal) => server.ready(signal),
    url: server.url,
    port: server.port,
    ca: ca.certPem,
    adminToken,
    prefix,
    etcdEndpoint: etcd.endpoint,
    client,
    request: (method, path, body, headers = {}) =>
      http.request(method, path, body, { authorization: `Bearer ${adminToken}`, ...headers }),
    async clientCertificate(commonName, organizations = []) {
      const pair = await newCertificate({ commonName, organizations, usages: ["client"], ca });
      return { cert: pair.certPem, key: pair.keyPem };
    },
    stop,
  };
}

/** An HTTP/2 connection with an optional client certificate. */
export function newHttp(url: string, ca: string, certificate?: { cert: string; key: string }) {
  let session: ClientHttp2Session | undefined;
  const connection = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connectHttp2(url, { ca, ...certificate });
      session.on("error", () => {});
      session.unref();
    }
    return session;
  };
  return {
    request(method: string, path: string, body?: unknown, headers: SentHeaders = {}): Promise<TestResponse> {
      const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
      const payload =
        body === undefined ? undefined : typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const type = payload === undefined || sent["content-type"] !== undefined ? {} : { "content-type": "application/json" };
      return new Promise((resolve, reject) => {
        const endStream = payload === undefined;
        const stream = connection().request({ ":method": method, ":path": path, ...type, ...sent }, { endStream });
        stream.once("error", reject);
        // A lost connection closes the stream without an error event.
        stream.once("close", () => reject(new Error("the connection was closed before the response was complete")));
        stream.once("response", (received) => {
          const chunks: Buffer[] = [];
          stream.on("data", (chunk: Buffer) => chunks.push(chunk));
          stream.once("end", () => {
            const text = Buffer.concat(chunks).toString("utf8");
            const { ":status": code = 0, ...rest } = received;
            resolve({ code, headers: rest, text, body: parsed(text, String(rest["content-type"] ?? "")) });
          });
        });
        if (payload !== undefined) stream.end(payload);
      });
    },
    close(): void {
      session?.destroy();
    },
  };
}

function parsed(text: string, contentType: string): unknown {
  if (!contentType.startsWith("application/json")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads a key or certificate file of the servers that tests start. */
export async function readTestFile(name: "sa.key" | "sa.pub" | "ca.crt"): Promise<string> {
  const { directory } = await sharedCertificates();
  return readFileSync(join(directory, name), "utf8");
}
