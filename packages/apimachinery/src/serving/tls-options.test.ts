import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import { newCa, newCertificate } from "./certificates.ts";
import { startHttpServer } from "./https-server.ts";
import { cipherSuites, filesOf, insecureCipherSuites, opensslCiphers } from "./tls-options.ts";

for (const name of Object.keys(insecureCipherSuites)) {
  const removed = name.includes("RC4") || name.includes("3DES");
  const fate = removed ? "is refused by its name" : "can be chosen";
  test(`${name} ${fate}`, () => {
    if (removed) assert.throws(() => opensslCiphers([name]), new RegExp(`^Error: Cipher suite ${name} is not available`));
    else assert.match(opensslCiphers([name]) as string, new RegExp(`:${insecureCipherSuites[name]}$`));
  });
}

test("an unknown suite is refused with the reason", () => {
  for (const name of ["TLS_MOON", "constructor", ""])
    assert.throws(() => opensslCiphers([name]), { message: `Cipher suite ${name} not supported or doesn't exist` });
  assert.equal(opensslCiphers([]), undefined);
});

test("the files of all certificates and authorities are watched, each once", () => {
  const sni = ["a", "b"].map((name) => ({ certFile: `${name}.crt`, keyFile: "shared.key" }));
  const options = { certFile: "own.crt", keyFile: "shared.key", clientCaFile: "", clientCaFiles: ["one.ca", "two.ca"], sni };
  assert.deepEqual(filesOf(options), ["own.crt", "shared.key", "one.ca", "two.ca", "a.crt", "b.crt"]);
});

test("a client without a server name gets the certificate that is given for the server's address, over IPv4 and IPv6", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-sni-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const ca = await newCa({ commonName: "ca" });
  const filesFor = async (commonName: string) => {
    const { certPem, keyPem } = await newCertificate({ commonName, dnsNames: [commonName], usages: ["server"], ca });
    const files = { certFile: join(folder, `${commonName}.crt`), keyFile: join(folder, `${commonName}.key`) };
    writeFileSync(files.certFile, certPem);
    writeFileSync(files.keyFile, keyPem);
    return files;
  };
  const sni = [
    { ...(await filesFor("four")), names: ["127.0.0.1"] },
    { ...(await filesFor("six")), names: ["::1"] },
  ];
  const server = await startHttpServer({
    ...{ port: 0, bindAddress: "::", tls: { ...(await filesFor("own")), sni }, log: discardLogger },
    handler: (exchange) => exchange.respond(200, {}, "ok"),
  });
  t.after(() => server.close());
  for (const [host, want] of [
    ["127.0.0.1", "four"],
    ["::1", "six"],
    ["127.0.0.2", "own"],
  ] as const) {
    const socket = connect({ port: server.port, host, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    assert.equal(socket.getPeerX509Certificate()?.subject, `CN=${want}`, host);
    socket.destroy();
  }
});

for (const { suite, warns } of [
  { suite: "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", warns: true },
  { suite: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", warns: false },
]) {
  test(`serves ${suite} ${warns ? "with" : "without"} a warning`, async (t) => {
    const ca = await newCa({ commonName: "ca" });
    const pair = await newCertificate({ commonName: "server", dnsNames: ["localhost"], usages: ["server"], ca });
    const warnings: string[] = [];
    const server = await startHttpServer({
      port: 0,
      bindAddress: "127.0.0.1",
      tls: { cert: pair.certPem, key: pair.keyPem, cipherSuites: [suite] },
      handler: (exchange) => exchange.respond(200, {}, "ok"),
      log: { ...discardLogger, warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`) },
    });
    t.after(() => server.close());
    const socket = connect({
      port: server.port,
      host: "127.0.0.1",
      ca: ca.certPem,
      servername: "localhost",
      maxVersion: "TLSv1.2",
    });
    await once(socket, "secureConnect");
    assert.equal(socket.getCipher().name, { ...cipherSuites, ...insecureCipherSuites }[suite]);
    socket.destroy();
    assert.deepEqual(warnings, warns ? [`Use of insecure cipher detected. {"cipher":"${suite}"}`] : []);
  });
}
