import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import type { AgentConfig } from "../agent-config.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { type ListenOptions, listen } from "./listen.ts";

/** Starts the servers of a configuration, with certificates from a test CA. */
async function listening(t: TestContext, config: Partial<AgentConfig>, health: () => string | undefined = () => undefined) {
  const dir = await mkdtemp(join(tmpdir(), "cox-listen-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const ca = await newCa({ commonName: "clients" });
  await writeFile(join(dir, "ca.crt"), ca.certPem);
  const clock = newFakeClock();
  const requested: (string | undefined)[] = [];
  const given = {
    address: "127.0.0.1",
    port: 0,
    readOnlyPort: 0,
    healthzPort: 0,
    healthzBindAddress: "127.0.0.1",
    enableServer: true,
    enableDebuggingHandlers: true,
    enableSystemLogHandler: true,
    tlsCertFile: "",
    tlsPrivateKeyFile: "",
    certDir: join(dir, "pki"),
    rotateServerCertificates: false,
    tlsSniCertKeys: [],
    tlsMinVersion: "",
    tlsCipherSuites: [],
    clientCaFile: join(dir, "ca.crt"),
    ...config,
  } as unknown as AgentConfig;
  const context = {
    runtime: newFakeRuntime(clock),
    metrics: newMetricsRegistry(),
    probeMetrics: newMetricsRegistry(),
    podLogsDir: dir,
    cgroupParentOf: () => "",
    sandboxImage: "pause",
    pods: () => [],
    podByName: () => undefined,
    statusOf: () => undefined,
    stats: {},
    machine: { cpuCount: 1, memoryBytes: 1 },
    config: () => ({}),
    health,
    now: () => clock.now(),
  } as unknown as ListenOptions["context"];
  const auth: ListenOptions["auth"] = {
    async check(exchange) {
      requested.push(exchange.tls?.getPeerX509Certificate()?.subject);
      return { allowed: true, user: { name: "anybody", uid: "", groups: [], extra: {} } };
    },
  };
  const log = newLogger({ write: () => undefined });
  const options: ListenOptions = { config: given, context, auth, nodeName: "node1", ips: ["192.0.2.7"], clock, log };
  const open = async () => {
    const opened = await listen(options);
    t.after(() => opened.close());
    return opened;
  };
  return { ca, dir, open, requested };
}

/** The server's certificate and cipher in a TLS handshake. */
function shake(port: number, options: ConnectionOptions = {}): Promise<{ cipher: string; names: string; subject: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }, () => {
      const { subjectaltname = "", subject } = socket.getPeerCertificate();
      resolve({ cipher: socket.getCipher().name, names: subjectaltname, subject: String(subject.CN) });
      socket.end();
    });
    socket.on("error", reject);
  });
}

function get(port: number, path: string, own: RequestOptions = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false, ...own }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (piece) => {
        body += piece;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    })
      .on("error", reject)
      .end();
  });
}

test("a self-signed certificate names the node and its addresses", async (t) => {
  const { port } = await (await listening(t, {})).open();
  const { names } = await shake(port);
  assert.deepEqual(names.split(", ").toSorted(), ["DNS:node1", "IP Address:127.0.0.1", "IP Address:192.0.2.7"]);
});

for (const field of ["tlsCertFile", "tlsPrivateKeyFile"])
  test(`the server does not start with ${field} alone`, async (t) => {
    const { open } = await listening(t, {});
    await assert.rejects((await listening(t, { [field]: "/none.pem" })).open());
    await open();
  });

test("only the configured cipher suites and TLS versions are accepted", async (t) => {
  const only = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
  const both = [only, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"];
  const { port } = await (await listening(t, { tlsCipherSuites: both })).open();
  assert.match((await shake(port, { maxVersion: "TLSv1.2" })).cipher, /AES256-GCM-SHA384/);
  await assert.rejects(
    shake(port, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256" }),
  );
  const { port: newest } = await (await listening(t, { tlsMinVersion: "VersionTLS13" })).open();
  await assert.rejects(shake(newest, { maxVersion: "TLSv1.2" }));
  await shake(newest);
});

test("the certificate is chosen by the requested server name", async (t) => {
  const { ca, dir, open } = await listening(t, {});
  const files = await Promise.all(
    ["first", "second"].map(async (name) => {
      const pair = await newCertificate({ commonName: name, dnsNames: [`${name}.test`], usages: ["server"], ca });
      await writeFile(join(dir, `${name}.crt`), pair.certPem);
      await writeFile(join(dir, `${name}.key`), pair.keyPem);
      return `${join(dir, `${name}.crt`)},${join(dir, `${name}.key`)}`;
    }),
  );
  await open();
  const [certFile = "", keyFile = ""] = (files[0] ?? "").split(",");
  const named = await listening(t, { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, tlsSniCertKeys: [files[1] ?? ""] });
  const { port } = await named.open();
  assert.equal((await shake(port)).subject, "first");
  assert.equal((await shake(port, { servername: "second.test" })).subject, "second");
});

test("without debugging handlers /runningpods/, /logs/ and profiles are not served", async (t) => {
  const { port } = await (await listening(t, { enableDebuggingHandlers: false })).open();
  assert.equal((await get(port, "/debug/pprof/")).status, 404);
  assert.deepEqual(await get(port, "/runningpods/"), { status: 405, body: "Debug endpoints are disabled.\n" });
  assert.deepEqual(await get(port, "/logs/"), { status: 405, body: "Debug endpoints are disabled.\n" });
  const { port: debugging } = await (await listening(t, {})).open();
  assert.equal((await get(debugging, "/debug/pprof/")).status, 200);
  assert.equal((await get(debugging, "/runningpods/")).status, 200);
});

test("/logs/ serves the machine's log folder, unless enableSystemLogHandler is off", async (t) => {
  const { port } = await (await listening(t, {})).open();
  assert.match((await get(port, "/logs/")).body, /^<pre>\n/);
  assert.equal((await get(port, "/logs")).status, 404);
  assert.equal((await get(port, "/logs/%2e%2e/")).status, 400);
  const { port: without } = await (await listening(t, { enableSystemLogHandler: false })).open();
  assert.deepEqual(await get(without, "/logs/"), { status: 405, body: "logs endpoint is disabled.\n" });
});

test("the read-only port and that of health are plain HTTP, and everything is closed together", async (t) => {
  const readOnlyPort = await freePort();
  const healthzPort = await freePort();
  const addresses = { address: "127.0.0.1", healthzBindAddress: "127.0.0.2" };
  const { open, requested } = await listening(t, { readOnlyPort, healthzPort, ...addresses }, () => "stuck");
  const opened = await open();
  assert.equal(opened.healthzPort, healthzPort);
  assert.equal((await fetch(`http://127.0.0.1:${readOnlyPort}/pods`)).status, 200);
  assert.equal((await fetch(`http://127.0.0.1:${readOnlyPort}/runningpods/`)).status, 405);
  assert.equal((await fetch(`http://127.0.0.2:${healthzPort}/healthz`)).status, 500, "that of health has its own address");
  assert.deepEqual(requested, [], "neither asks who it is");
  assert.equal((await get(opened.port, "/pods")).status, 200);
  assert.equal(requested.length, 1);
  await opened.close();
  for (const port of [readOnlyPort, healthzPort]) await assert.rejects(fetch(`http://127.0.0.1:${port}/healthz`));
  await assert.rejects(get(opened.port, "/pods"), /ECONNREFUSED/);
});

test("requests are counted by the port that they came to", async (t) => {
  const readOnlyPort = await freePort();
  const { open } = await listening(t, { readOnlyPort });
  const { port } = await open();
  await fetch(`http://127.0.0.1:${readOnlyPort}/pods`);
  await get(port, "/pods");
  const { body } = await get(port, "/metrics");
  const counted = [...body.matchAll(/^kubelet_http_requests_total\{.*path="pods",server_type="(\w+)".*\} (\d+)$/gm)];
  assert.deepEqual(counted.map(([, ...found]) => found.join(" ")).toSorted(), ["readonly 1", "readwrite 1"]);
});

test("with rotation the server has the certificate that was signed last, not its own", async (t) => {
  const { ca, dir, open } = await listening(t, { rotateServerCertificates: true });
  const pair = await newCertificate({ commonName: "signed", usages: ["server"], ca });
  await mkdir(join(dir, "pki"));
  await writeFile(join(dir, "pki/kubelet-server-current.pem"), pair.certPem + pair.keyPem);
  assert.equal((await shake((await open()).port)).subject, "signed");
  const without = await listening(t, {});
  await mkdir(join(without.dir, "pki"));
  await writeFile(join(without.dir, "pki/kubelet-server-current.pem"), pair.certPem + pair.keyPem);
  assert.notEqual((await shake((await without.open()).port)).subject, "signed");
});

test("when one server cannot start, the others are closed", async (t) => {
  const port = await freePort();
  const { open } = await listening(t, { port, readOnlyPort: port });
  await assert.rejects(open(), /EADDRINUSE/);
  await assert.rejects(get(port, "/pods"), /ECONNREFUSED/);
});

test("with the server disabled only the health port is open", async (t) => {
  const { open } = await listening(t, { enableServer: false, port: 10_250 });
  const opened = await open();
  assert.deepEqual([opened.port, opened.healthzPort], [10_250, 0]);
});

test("the server requests a client certificate when a CA file is configured", async (t) => {
  const trusting = await listening(t, {});
  const pair = await newCertificate({ commonName: "admin", usages: ["client"], ca: trusting.ca });
  const own = { cert: pair.certPem, key: pair.keyPem };
  await get((await trusting.open()).port, "/pods", own);
  assert.match(trusting.requested.join(), /admin/);
  const other = await listening(t, { clientCaFile: "" });
  await get((await other.open()).port, "/pods", own);
  assert.deepEqual(other.requested, [undefined]);
});
