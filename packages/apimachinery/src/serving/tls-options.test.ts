import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { connect } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import { newCa, newCertificate } from "./certificates.ts";
import { startHttpServer } from "./https-server.ts";
import { cipherSuites, insecureCipherSuites, opensslCiphers } from "./tls-options.ts";

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
