/** Effects of the --tls-* flags on the handshake, seen from clients. */
import assert from "node:assert/strict";
import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import { waitFor } from "../testing/wait-for.ts";
import {
  type KeyPair,
  newCa,
  newCertificate,
  newCertificateRequest,
  newServiceAccountKey,
  signCertificateRequest,
  subjectOf,
} from "./certificates.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "./https-server.ts";
import { cipherSuites, parseSniCertKey, type TlsOptions } from "./tls-options.ts";

let ca: KeyPair;
let serving: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "ca" });
  serving = await newCertificate({ commonName: "main", dnsNames: ["localhost"], usages: ["server"], ca });
});

async function start(t: TestContext, tls: TlsOptions, more: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls,
    handler: (exchange) => exchange.respond(200, {}, "ok"),
    log: discardLogger,
    ...more,
  });
  t.after(() => server.close());
  return server;
}

async function handshake(server: HttpServer, options: ConnectionOptions = {}) {
  const socket = connect({ host: "127.0.0.1", port: server.port, rejectUnauthorized: false, ...options });
  await once(socket, "secureConnect");
  const { commonName } = subjectOf(socket.getPeerX509Certificate() as X509Certificate);
  const seen = { version: socket.getProtocol(), cipher: socket.getCipher().name, commonName };
  socket.destroy();
  return seen;
}

const nodeVersions = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] as const;
const anySecurity = { ciphers: "DEFAULT:@SECLEVEL=0" };

for (const [least, name] of ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"].entries()) {
  test(`--tls-min-version=${name} refuses what is older and serves that and newer`, async (t) => {
    const server = await start(t, { cert: serving.certPem, key: serving.keyPem, minVersion: name });
    for (const [i, version] of nodeVersions.entries()) {
      const attempt = handshake(server, { minVersion: version, maxVersion: version, ...anySecurity });
      if (i < least) await assert.rejects(attempt, /alert protocol version/, version);
      else assert.equal((await attempt).version, version);
    }
  });
}

test("an unknown --tls-min-version is refused", async (t) => {
  for (const minVersion of ["VersionTLS14", "TLSv1.2", "constructor"])
    await assert.rejects(start(t, { cert: serving.certPem, key: serving.keyPem, minVersion }), {
      message: `unknown tls version "${minVersion}"`,
    });
});

test("without --tls-min-version TLS 1.2 is the minimum", async (t) => {
  const server = await start(t, { cert: serving.certPem, key: serving.keyPem });
  await assert.rejects(handshake(server, { maxVersion: "TLSv1.1", minVersion: "TLSv1.1", ...anySecurity }));
  assert.equal((await handshake(server, { maxVersion: "TLSv1.2" })).version, "TLSv1.2");
});

test("each of the 19 preferred suites is served when it alone is requested", async (t) => {
  const names = Object.keys(cipherSuites);
  assert.equal(names.length, 19);
  const rsa = await rsaPair();
  for (const name of names) {
    const pair = name.includes("_RSA_") ? rsa : serving;
    const server = await start(t, { cert: pair.certPem, key: pair.keyPem, cipherSuites: [name] });
    const isTls13 = !name.includes("_WITH_");
    const ciphers = `${cipherSuites[name]}${isTls13 ? "" : ":@SECLEVEL=0"}`;
    const { cipher } = await handshake(server, { ciphers, ...(!isTls13 && { maxVersion: "TLSv1.2" }) });
    assert.equal(cipher, cipherSuites[name], name);
  }
});

async function rsaPair(): Promise<KeyPair> {
  const { csrPem, keyPem } = await newCertificateRequest({ commonName: "main", keyPem: newServiceAccountKey().keyPem });
  const usages = ["digital signature", "key encipherment", "server auth"];
  const now = Date.now();
  const validity = { notBefore: new Date(now - 60_000), notAfter: new Date(now + 3_600_000) };
  return { certPem: await signCertificateRequest({ csrPem, ca, usages, ...validity }), keyPem };
}

/** Writes a certificate and a key file. @returns the value for --tls-sni-cert-key */
async function pairFiles(directory: string, name: string, dnsNames: string[]): Promise<string> {
  const pair = await newCertificate({ commonName: name, dnsNames, usages: ["server"], ca });
  const [cert, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  writeFileSync(key, pair.keyPem);
  writeFileSync(cert, pair.certPem);
  return `${cert},${key}`;
}

test("--tls-sni-cert-key: exact before wildcard, written before the certificate's own, earlier before later", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-sni-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const make = (name: string, dnsNames: string[] = []) => pairFiles(directory, name, dnsNames);
  const flags = [
    await make("own", ["exact.example.com", "*.example.org", "both.example.net"]),
    `${await make("wild")}:*.example.com`,
    `${await make("written")}:exact.example.com,both.example.net`,
    `${await make("late")}:exact.example.com`,
    await make("late-own", ["*.example.org"]),
    await make("192.0.2.1"),
    `${await make("hidden", ["localhost", "far.example.io"])}:other.example.io`,
  ];
  const server = await start(t, { cert: serving.certPem, key: serving.keyPem, sni: flags.map(parseSniCertKey) });
  for (const [servername, want] of [
    ["exact.example.com", "written"],
    ["EXACT.example.com", "written"],
    ["other.example.com", "wild"],
    ["a.other.example.com", "main"],
    ["x.example.org", "own"],
    ["both.example.net", "written"],
    ["own", "own"],
    ["localhost", "main"],
    ["late", "main"],
    ["far.example.io", "hidden"],
    ["example.com", "main"],
  ] as const) {
    assert.equal((await handshake(server, { servername })).commonName, want, servername);
  }
  assert.equal((await handshake(server)).commonName, "main", "without a name");
});

test("--tls-sni-cert-key: a client without a server name gets the certificate of the address, also a renewed one", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-sni-address-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const first = await pairFiles(directory, "first", ["first.example.com"]);
  const flags = [
    `${first}:127.0.0.2`,
    `${await pairFiles(directory, "second", [])}:127.0.0.3,::1,127.0.0.2`,
    // An IP address counts only when listed explicitly.
    await pairFiles(directory, "127.0.0.4", []),
  ];
  const options = { cert: serving.certPem, key: serving.keyPem, sni: flags.map(parseSniCertKey) };
  // The machine may lack IPv6.
  const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
  const server = await start(t, options, { bindAddress: hasIpv6 ? "::" : "0.0.0.0" });
  const shown = async (host: string, servername?: string) =>
    (await handshake(server, { host, ...(servername === undefined ? {} : { servername }) })).commonName;
  for (const [host, want] of [
    ["127.0.0.1", "main"],
    ["127.0.0.2", "first"],
    ["127.0.0.3", "second"],
    ...(hasIpv6 ? ([["::1", "second"]] as const) : []),
    ["127.0.0.4", "main"],
  ] as const) {
    assert.equal(await shown(host), want, host);
  }
  assert.equal(await shown("127.0.0.3", "first.example.com"), "first", "a name counts more than the address");
  assert.equal(await shown("127.0.0.2", "localhost"), "main", "so does a name of the default certificate");
  const [certFile = "", keyFile = ""] = first.split(",");
  const renewed = await newCertificate({ commonName: "renewed", usages: ["server"], ca });
  writeFileSync(keyFile, renewed.keyPem);
  writeFileSync(certFile, renewed.certPem);
  await waitFor(async () => (await shown("127.0.0.2")) === "renewed");
  assert.equal(await shown("127.0.0.3"), "second");
});

for (const { text, want } of [
  { text: "a.crt,a.key", want: { certFile: "a.crt", keyFile: "a.key", names: [] } },
  { text: " a.crt , a.key : *.x.io , ::1,y", want: { certFile: "a.crt", keyFile: "a.key", names: ["*.x.io", "::1", "y"] } },
]) {
  test(`--tls-sni-cert-key=${text}`, () => assert.deepEqual(parseSniCertKey(text), want));
}
for (const { text, want } of [
  { text: "a.crt,a.key:", want: "empty names list is not allowed" },
  { text: "a.crt", want: "expected comma separated certificate and key file paths" },
  { text: "a.crt:x", want: "expected comma separated certificate and key file paths" },
  { text: "a.crt,a.key,b.key", want: "expected comma separated certificate and key file paths" },
]) {
  test(`--tls-sni-cert-key=${text} is refused`, () => assert.throws(() => parseSniCertKey(text), { message: want }));
}

test("a certificate that changes on disk is served without a restart and without a call", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-renewal-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const [certFile = "", keyFile = ""] = (await pairFiles(directory, "main", [])).split(",");
  const server = await start(t, { certFile, keyFile });
  assert.equal((await handshake(server)).commonName, "main");
  const renewed = await newCertificate({ commonName: "renewed", usages: ["server"], ca });
  writeFileSync(keyFile, renewed.keyPem);
  writeFileSync(certFile, renewed.certPem);
  await waitFor(async () => (await handshake(server)).commonName === "renewed");
});

test("a plaintext HTTP request gets 400, other plaintext nothing", async (t) => {
  let failed = 0;
  const server = await start(t, { cert: serving.certPem, key: serving.keyPem }, { onHandshakeError: () => failed++ });
  const answerTo = async (bytes: string): Promise<string> => {
    const socket = connectTcp({ host: "127.0.0.1", port: server.port });
    socket.write(bytes, "latin1");
    return (await socket.setEncoding("latin1").toArray()).join("");
  };
  const page = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
  const requested = ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /api HTTP/1.0\r\n\r\n", "HEAD /healthz HTTP/1.1\r\n\r\n"];
  assert.deepEqual(await Promise.all(requested.map(answerTo)), [page, page, page]);
  assert.equal(failed, 0);
  assert.ok(!(await answerTo("\x00\x01\x02\x03\x04\x05 no request")).includes("HTTP"));
  assert.equal(failed, 1);
  await waitFor(() => server.connections === 0, { what: "all of them to be gone" });
  await handshake(server);
});

test("of more unfinished handshakes of an address than are allowed the oldest is closed; finished ones do not count", async (t) => {
  const handshakeErrors: string[] = [];
  const server = await start(
    t,
    { cert: serving.certPem, key: serving.keyPem },
    { mostUnfinishedHandshakes: 2, onHandshakeError: (err) => void handshakeErrors.push(err.message) },
  );
  const closed: number[] = [];
  const halfOpen = async (number: number) => {
    const socket = connectTcp({ host: "127.0.0.1", port: server.port });
    t.after(() => void socket.destroy());
    socket.on("error", () => {});
    socket.once("close", () => closed.push(number));
    await once(socket, "connect");
    socket.write(Buffer.from("16030100c8010000c40303", "hex"));
    return socket;
  };
  const open = [];
  for (let i = 0; i < 3; i++) {
    const socket = connect({ host: "127.0.0.1", port: server.port, rejectUnauthorized: false });
    t.after(() => void socket.destroy());
    await once(socket, "secureConnect");
    open.push(socket);
  }
  const first = await halfOpen(1);
  await halfOpen(2);
  await waitFor(() => server.connections === 5, { what: "all connections" });
  assert.deepEqual(closed, []);
  await halfOpen(3);
  await waitFor(() => closed.length === 1, { what: "the end of the oldest" });
  await waitFor(() => handshakeErrors.length === 1, { what: "the error of the oldest" });
  assert.equal(first.destroyed, true);
  await halfOpen(4);
  await waitFor(() => closed.length === 2, { what: "the end of the second" });
  assert.deepEqual(closed, [1, 2]);
  assert.deepEqual(
    open.map((socket) => socket.destroyed),
    [false, false, false],
  );
  assert.equal((await handshake(server)).commonName, "main");
  await waitFor(() => closed.length === 3, { what: "the end of the third, for which the handshake made no room" });
});

test("an unfinished handshake that its client ends makes room for another", async (t) => {
  const server = await start(t, { cert: serving.certPem, key: serving.keyPem }, { mostUnfinishedHandshakes: 1 });
  for (let i = 0; i < 3; i++) {
    const socket = connectTcp({ host: "127.0.0.1", port: server.port });
    socket.on("error", () => {});
    await once(socket, "connect");
    await waitFor(() => server.connections === 1, { what: "the connection" });
    socket.destroy();
    await waitFor(() => server.connections === 0, { what: "its end" });
  }
  const patient = connectTcp({ host: "127.0.0.1", port: server.port });
  t.after(() => void patient.destroy());
  await once(patient, "connect");
  await waitFor(() => server.connections === 1, { what: "the last connection" });
  assert.equal(patient.destroyed, false);
});
