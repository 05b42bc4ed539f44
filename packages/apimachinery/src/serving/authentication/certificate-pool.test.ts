import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import { type TestContext, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { discardLogger } from "../../process/logging/logger.ts";
import { type KeyPair, newCa, newCertificate, newCertificateRequest, signCertificateRequest } from "../certificates.ts";
import { startHttpServer } from "../https-server.ts";
import { newCertificatePool, parseBundle, peerCertificate, verifyClient } from "./x509.ts";

const ca = await newCa({ commonName: "ca" });
const otherCa = await newCa({ commonName: "ca" });
const authorities = parseBundle(ca.certPem, "test");

async function leaf(usages: ("client" | "server")[], signer = ca): Promise<X509Certificate> {
  const { certPem } = await newCertificate({ commonName: "jane", organizations: ["a", "b"], usages, ca: signer });
  return new X509Certificate(certPem);
}

test("accepts a client certificate of the authority until the first certificate of its chain expires", async () => {
  const certificate = await leaf(["client"]);
  const until = verifyClient(certificate, authorities, Date.now());
  const ends = [certificate, ...authorities].map(({ validTo }) => Date.parse(validTo));
  assert.equal(until, Math.min(...ends));
});

test("refuses a certificate for server authentication only", async () => {
  assert.throws(() => verifyClient(certificateOf, authorities, Date.now()), /incompatible key usage/);
});
const certificateOf = await leaf(["server"]);

for (const usages of [["any"], ["server auth", "client auth"], ["digital signature"]]) {
  test(`accepts a certificate for ${usages.join(" and ")}`, async () => {
    const { csrPem } = await newCertificateRequest({ commonName: "jane" });
    const [notBefore, notAfter] = [new Date(Date.now() - 60_000), new Date(Date.now() + 3_600_000)];
    const pem = await signCertificateRequest({ csrPem, ca, usages, notBefore, notAfter });
    verifyClient(new X509Certificate(pem), authorities, Date.now());
  });
}

test("refuses a certificate of another authority of the same name", async () => {
  const certificate = await leaf(["client"], otherCa);
  assert.throws(() => verifyClient(certificate, authorities, Date.now()), /unknown authority/);
});

test("refuses a certificate after its end and before its begin", async () => {
  const certificate = await leaf(["client"]);
  assert.throws(() => verifyClient(certificate, authorities, Date.parse(certificate.validTo) + 1000), /expired/);
  assert.throws(() => verifyClient(certificate, authorities, Date.parse(certificate.validFrom) - 1000), /not yet valid/);
});

test("a certificate cannot sign others because the authority signed it", async () => {
  const pair = await newCertificate({ commonName: "jane", usages: ["client"], ca });
  const forged = await newCertificate({ commonName: "admin", organizations: ["system:masters"], usages: ["client"], ca: pair });
  assert.throws(() => verifyClient(new X509Certificate(forged.certPem), authorities, Date.now()), /unknown authority/);
});

test("an authority or an intermediate that is not for clients signs no client", async () => {
  const between = await newCa({ commonName: "between", signedBy: ca });
  const { certPem } = await newCertificate({ commonName: "jane", usages: ["client"], ca: between });
  const [jane, issuer] = [new X509Certificate(certPem), new X509Certificate(between.certPem)];
  Object.defineProperty(jane, "issuerCertificate", { value: issuer });
  for (const limited of [issuer, authorities[0] as X509Certificate]) {
    const of = (...oids: string[]) => Object.defineProperty(limited, "keyUsage", { configurable: true, value: oids });
    for (const oids of [[], ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"], ["2.5.29.37.0"]]) {
      of(...oids);
      verifyClient(jane, authorities, Date.now());
    }
    of("1.3.6.1.5.5.7.3.1");
    assert.throws(() => verifyClient(jane, authorities, Date.now()), /unknown authority/);
    of();
  }
});

test("a bundle without certificates is an error", () => {
  assert.throws(() => parseBundle("hello", "/etc/ca.crt"), /\/etc\/ca.crt/);
});

test("a new CA bundle replaces the old one, an invalid one does not", async () => {
  const pool = newCertificatePool(ca.certPem, "test");
  const [own, others] = [await leaf(["client"]), await leaf(["client"], otherCa)];
  pool.verifyClient(own, Date.now());
  assert.throws(() => pool.replace("half a file"), /test: /);
  pool.replace(ca.certPem);
  assert.equal(pool.version, 1, "the same one is no other");
  pool.replace(otherCa.certPem);
  assert.equal(pool.version, 2);
  pool.verifyClient(others, Date.now());
  assert.throws(() => pool.verifyClient(own, Date.now()), /unknown authority/);
});

/** The pool's verdict on a client that presents this chain over TLS. */
async function verdictOver(t: TestContext, chain: readonly KeyPair[], root: KeyPair): Promise<string> {
  const serving = await newCertificate({ commonName: "server", ips: ["127.0.0.1"], usages: ["server"], ca });
  const pool = newCertificatePool(root.certPem, "test");
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert: serving.certPem, key: serving.keyPem, requestClientCertificate: true },
    log: discardLogger,
    handler: (exchange) => {
      let verdict = "good";
      try {
        pool.verifyClient(peerCertificate(exchange.tls as TLSSocket) as X509Certificate, Date.now());
      } catch (err) {
        verdict = (err as Error).message;
      }
      exchange.respond(200, {}, verdict);
    },
  });
  t.after(() => server.close(0));
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: server.port, ca: ca.certPem, agent: false };
    const cert = chain.map(({ certPem }) => certPem).join("");
    const sent = request({ ...options, cert, key: (chain[0] as KeyPair).keyPem }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.once("end", () => resolve(text));
    });
    sent.once("error", reject);
    sent.end();
  });
}

test("verifies a client's intermediates within each authority's path length", async (t) => {
  const root = await newCa({ commonName: "root" });
  const strict = await newCa({ commonName: "strict", pathLength: 0 });
  const between = await newCa({ commonName: "between", signedBy: root });
  const below = await newCa({ commonName: "below", signedBy: between });
  const underStrict = await newCa({ commonName: "under strict", signedBy: strict });
  const person = (signer: KeyPair) => newCertificate({ commonName: "jane", usages: ["client"], ca: signer });
  assert.equal(await verdictOver(t, [await person(between), between], root), "good");
  assert.equal(await verdictOver(t, [await person(below), below, between], root), "good");
  assert.equal(await verdictOver(t, [await person(strict)], strict), "good");
  const unknown = "x509: certificate signed by unknown authority";
  assert.equal(await verdictOver(t, [await person(below), below], root), unknown, "a link is missing");
  assert.equal(await verdictOver(t, [await person(underStrict), underStrict], strict), unknown, "no intermediates are allowed");
  assert.equal(await verdictOver(t, [await person(between), between], strict), unknown);
});

test("a client that resumes a TLS session is verified again", async (t) => {
  const root = await newCa({ commonName: "root" });
  const between = await newCa({ commonName: "between", signedBy: root });
  const person = await newCertificate({ commonName: "jane", usages: ["client"], ca: between });
  const serving = await newCertificate({ commonName: "server", ips: ["127.0.0.1"], usages: ["server"], ca });
  const pool = newCertificatePool(root.certPem, "test");
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert: serving.certPem, key: serving.keyPem, requestClientCertificate: true },
    log: discardLogger,
    handler: (exchange) => {
      pool.verifyClient(peerCertificate(exchange.tls as TLSSocket) as X509Certificate, Date.now());
      exchange.respond(200, {}, "good");
    },
  });
  t.after(() => server.close(0));
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    let session: Buffer | undefined;
    for (const time of ["first", "second"]) {
      const text = await new Promise<string>((resolve, reject) => {
        const cert = person.certPem + between.certPem;
        const to = { host: "127.0.0.1", port: server.port, ca: ca.certPem, cert, key: person.keyPem, maxVersion };
        const socket = connect({ ...to, ...(session === undefined ? {} : { session }), ALPNProtocols: ["http/1.1"] });
        let received = "";
        socket.on("session", (next: Buffer) => {
          session = next;
        });
        socket.on("data", (chunk) => {
          received += chunk;
        });
        socket.once("error", reject);
        socket.once("close", () => resolve(received));
        socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      });
      assert.match(text, /^HTTP\/1\.1 200 /, `${maxVersion}, ${time} time`);
    }
  }
});
