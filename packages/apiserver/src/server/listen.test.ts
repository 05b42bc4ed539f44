/** The flags of the HTTPS listener, each observed by a client of it. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { HeaderMemory } from "@coxswain/apimachinery/transport/http2/server/input";
import { configFromFlags } from "../config.ts";
import { kubeApiserver } from "../flags.ts";
import { listen } from "./listen.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-listen-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const ca = await newCa({ commonName: "ca" });
const caFile = join(directory, "ca.crt");
writeFileSync(caFile, ca.certPem);

/** A listener of these flags on the address of `--bind-address`. */
async function listening(t: TestContext, flags: string[], { port = 0, handler = answer as ExchangeHandler } = {}) {
  const config = configFromFlags(
    parseFlags(kubeApiserver.flags, [
      "--etcd-servers=http://127.0.0.1:2379",
      "--service-account-issuer=https://issuer",
      "--service-account-key-file=/x.pub",
      "--service-account-signing-key-file=/x.key",
      "--bind-address=127.0.0.1",
      "--advertise-address=192.0.2.1",
      "--service-cluster-ip-range=10.9.0.0/24",
      `--cert-dir=${directory}`,
      ...flags,
    ]).values,
  );
  const metrics = newMetricsRegistry({});
  const free = { ...config, flags: { ...config.flags, "secure-port": port } }; // the flag does not allow 0
  const server = await listen(free, handler, discardLogger, metrics, new Turns(), new HeaderMemory());
  t.after(() => server.close());
  return { server, metrics };
}

const answer: ExchangeHandler = (exchange) => exchange.respond(200, {}, "");

/** A TLS connection, once it is established. @throws when the handshake fails */
async function connected(t: TestContext, port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  t.after(() => socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

test("without a certificate one is made in --cert-dir, for all names and addresses of the service and of this server", async (t) => {
  const { server } = await listening(t, []);
  const socket = await connected(t, server.port);
  const { raw } = socket.getPeerCertificate();
  const own = new X509Certificate(raw);
  assert.equal(own.fingerprint256, new X509Certificate(readFileSync(join(directory, "apiserver.crt"))).fingerprint256);
  const names = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost", hostname().toLowerCase()];
  for (const name of names) assert.ok(own.checkHost(name), name);
  for (const ip of ["192.0.2.1", "127.0.0.1", "10.9.0.1"]) assert.ok(own.checkIP(ip), ip);
});

test("--tls-min-version and --tls-cipher-suites choose what a client gets; a handshake that fails is counted", async (t) => {
  const suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
  const old = await listening(t, [`--tls-cipher-suites=${suite}`]);
  const socket = await connected(t, old.server.port, { maxVersion: "TLSv1.2" });
  assert.match(socket.getCipher().name, /AES256-GCM-SHA384$/);
  const others = { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256" } as const;
  await assert.rejects(connected(t, old.server.port, others));
  const strict = await listening(t, ["--tls-min-version=VersionTLS13"]);
  assert.equal((await connected(t, strict.server.port)).getProtocol(), "TLSv1.3");
  await assert.rejects(connected(t, strict.server.port, { maxVersion: "TLSv1.2" }));
  for (const { metrics } of [old, strict]) {
    const counted = async (): Promise<boolean> => /^apiserver_tls_handshake_errors_total 1$/m.test(await metrics.render());
    await waitFor(counted, { what: "the failed handshake" });
  }
});

for (const flag of ["client-ca-file", "requestheader-client-ca-file"]) {
  test(`--${flag}: a client is asked for its certificate`, async (t) => {
    let shown: string | undefined;
    const handler: ExchangeHandler = (exchange) => {
      shown = exchange.tls?.getPeerX509Certificate()?.subject;
      exchange.respond(200, {}, "");
    };
    const { server } = await listening(t, [`--${flag}=${caFile}`], { handler });
    const { certPem, keyPem } = await newCertificate({ commonName: "client", usages: ["client"], ca });
    const socket = await connected(t, server.port, { cert: certPem, key: keyPem });
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    assert.equal(shown, "CN=client");
  });
}

test("--permit-port-sharing: a second server listens on the port of the first, and not without the flag", async (t) => {
  const first = await listening(t, ["--permit-port-sharing"]);
  const { port } = first.server;
  assert.equal((await listening(t, ["--permit-port-sharing"], { port })).server.port, port);
  const alone = await listening(t, []);
  await assert.rejects(listening(t, [], { port: alone.server.port }), { code: "EADDRINUSE" });
});

for (const { flags, want } of [
  { flags: [], want: 250 },
  { flags: ["--http2-max-streams-per-connection=1"], want: 1 },
]) {
  test(`a connection may have ${want} streams with ${flags[0] ?? "no flag"}`, async (t) => {
    const { server } = await listening(t, flags);
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
    t.after(() => session.destroy());
    const [settings] = await once(session, "remoteSettings");
    assert.equal(settings.maxConcurrentStreams, want);
  });
}

test("an answer that its client does not read for --request-timeout ends the connection", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let answered = false;
  const handler: ExchangeHandler = (exchange) => {
    exchange.respond(200, {}, Buffer.alloc(64 * 1024 * 1024));
    answered = true;
  };
  const { server } = await listening(t, ["--request-timeout=1ms"], { handler });
  const socket = await connected(t, server.port);
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => answered, { what: "the answer" });
  await waitFor(
    () => {
      t.mock.timers.tick(5_000);
      return server.active === 0;
    },
    { what: "the end of the exchange" },
  );
});
