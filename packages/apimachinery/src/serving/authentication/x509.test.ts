/** Who a client's certificate says it is, how long that holds, and what bundles of authorities do when they change. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { waitFor } from "../../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate } from "../certificates.ts";
import type { Exchange } from "../exchange.ts";
import { type CertificatePool, newCertificatePool, parseBundle, verifyClient, watchedCertificatePool, x509 } from "./x509.ts";

const dayMs = 86_400_000;
const start = Date.parse("2026-01-01T00:00:00Z");
const ca = await newCa({ commonName: "ca", now: start });
const otherCa = await newCa({ commonName: "other", now: start });

async function leaf(commonName: string, organizations: string[] = [], signer = ca): Promise<X509Certificate> {
  const options = { commonName, organizations, usages: ["client"] as const, ca: signer, now: start, validDays: 10 };
  return new X509Certificate((await newCertificate(options)).certPem);
}

/** An authenticator that trusts `ca`, a minute after the certificates were made. */
function authenticating() {
  const clock = newFakeClock(start + 60_000);
  const pool = newCertificatePool(ca.certPem, "test");
  const trust: { clientCa: CertificatePool | undefined } = { clientCa: pool };
  const observed: number[] = [];
  const authenticate = x509(trust, clock, (seconds) => observed.push(seconds));
  /** A connection; cast: no other part of it is read. */
  const over = (certificate?: X509Certificate): Exchange =>
    ({ tls: { getPeerX509Certificate: () => certificate } }) as unknown as Exchange;
  return { clock, pool, trust, observed, authenticate, over };
}

test("a client is the CommonName of its certificate, in all its Organizations", async () => {
  const { authenticate, over } = authenticating();
  assert.deepEqual(await authenticate(over(await leaf("jane", ["a", "b"]))), { user: { name: "jane", groups: ["a", "b"] } });
  assert.equal(await authenticate(over(await leaf("", ["system:masters"]))), undefined, "no CommonName, no user");
  assert.equal(await authenticate(over()), undefined, "no certificate");
  assert.equal(await authenticate({} as Exchange), undefined, "no TLS");
});

test("a connection's verdict ends with its certificate, at its last moment", async () => {
  const { clock, authenticate, over } = authenticating();
  const connection = over(await leaf("jane"));
  const name = async () => (await authenticate(connection))?.user.name;
  await name();
  await clock.advanceTo(start + 10 * dayMs);
  assert.equal(await name(), "jane");
  await clock.advance(1000);
  await assert.rejects(name(), /x509: certificate has expired/);
});

test("a connection is verified again when the authorities change, are others or are none", async () => {
  const { pool, trust, authenticate, over } = authenticating();
  const connection = over(await leaf("jane"));
  const verdict = () => authenticate(connection).then((result) => result?.user.name ?? "nobody", String);
  const unknown = "Error: x509: certificate signed by unknown authority";
  assert.equal(await verdict(), "jane");
  pool.replace(otherCa.certPem);
  assert.equal(await verdict(), unknown);
  trust.clientCa = newCertificatePool(ca.certPem, "test");
  assert.equal(await verdict(), "jane");
  trust.clientCa = newCertificatePool(otherCa.certPem, "test");
  assert.equal(await verdict(), unknown, "a bundle of the same version");
  trust.clientCa = undefined;
  assert.equal(await verdict(), "nobody");
});

/** A pool that counts what it verifies. */
function counting(pool: CertificatePool) {
  let verified = 0;
  const verifyClient = (...args: Parameters<CertificatePool["verifyClient"]>): number => {
    verified++;
    return pool.verifyClient(...args);
  };
  return { pool: { ...pool, version: 1, verifyClient }, verified: () => verified };
}

test("a certificate that many connections have is verified once, for each chain that it comes with", async () => {
  const { clock, trust, pool } = authenticating();
  const counted = counting(pool);
  trust.clientCa = counted.pool;
  const observed: number[] = [];
  const authenticate = x509(trust, clock, (seconds) => observed.push(seconds));
  const over = (certificate: X509Certificate) => ({ tls: { getPeerX509Certificate: () => certificate } }) as unknown as Exchange;
  const options = { commonName: "jane", usages: ["client"] as const, now: start, validDays: 10 };
  const pair = await newCertificate({ ...options, ca });
  for (const certificate of [sent(pair), sent(pair), sent(pair, ca)]) {
    assert.equal((await authenticate(over(certificate)))?.user.name, "jane");
  }
  assert.deepEqual([counted.verified(), observed.length], [2, 3]);
  const foreign = await leaf("eve", [], otherCa);
  await assert.rejects(authenticate(over(foreign)), /unknown authority/);
  pool.replace(ca.certPem + otherCa.certPem);
  assert.equal((await authenticate(over(foreign)))?.user.name, "eve", "a refusal is not kept");
  await clock.advanceTo(start + 10 * dayMs + 1000);
  await assert.rejects(authenticate(over(sent(pair))), /has expired/);
});

test("the verdicts on the last 256 chains are kept", async () => {
  const { trust, pool, authenticate, over } = authenticating();
  const counted = counting(pool);
  trust.clientCa = counted.pool;
  const pem = (await leaf("jane")).toString();
  const numbered = (n: number): X509Certificate =>
    Object.defineProperty(new X509Certificate(pem), "fingerprint256", { value: String(n) });
  const verifiedFor = async (n: number): Promise<number> => {
    const before = counted.verified();
    await authenticate(over(numbered(n)));
    return counted.verified() - before;
  };
  for (let n = 0; n < 256; n++) assert.equal(await verifiedFor(n), 1);
  assert.equal(await verifiedFor(0), 0, "the first is still known");
  assert.equal(await verifiedFor(256), 1);
  assert.deepEqual([await verifiedFor(1), await verifiedFor(255)], [0, 0]);
  assert.equal(await verifiedFor(0), 1, "the oldest was dropped");
});

test("each request tells how long its certificate is still good, also one that is over or not trusted", async () => {
  const { clock, authenticate, observed, over } = authenticating();
  const connection = over(await leaf("jane"));
  await authenticate(connection);
  await clock.advance(1000);
  await authenticate(connection);
  await assert.rejects(authenticate(over(await leaf("jane", [], otherCa))), /unknown authority/);
  const left = 10 * 86_400 - 60;
  assert.deepEqual(observed.splice(0), [left, left - 1, left - 1]);
  await authenticate(over());
  assert.deepEqual(observed, []);
  await clock.advanceTo(start + 10 * dayMs + 5000);
  await assert.rejects(authenticate(connection));
  assert.deepEqual(observed, [-5]);
});

/** A certificate whose `issuerCertificate` chain is as the client sent it. */
function sent(pair: KeyPair, ...issuers: KeyPair[]): X509Certificate {
  const certificate = new X509Certificate(pair.certPem);
  const [next, ...rest] = issuers;
  Object.defineProperty(certificate, "issuerCertificate", { value: next && sent(next, ...rest) });
  return certificate;
}

test("a verdict holds no longer than each certificate of the chain, and an authority signs only in its time", async () => {
  const root = await newCa({ commonName: "root", now: start, validDays: 30 });
  const between = await newCa({ commonName: "between", signedBy: root, now: start, validDays: 20 });
  const brief = await newCa({ commonName: "between", signedBy: root, now: start, validDays: 5, keyPem: between.keyPem });
  const options = { commonName: "jane", usages: ["client"] as const, now: start, validDays: 10 };
  const person = await newCertificate({ ...options, ca: between });
  const authorities = parseBundle(root.certPem, "test");
  const now = start + dayMs;
  assert.equal(verifyClient(sent(person, between), authorities, now), start + 10 * dayMs, "the client's own end");
  assert.equal(verifyClient(sent(person, brief), authorities, now), start + 5 * dayMs, "the end of the intermediate");
  assert.throws(() => verifyClient(sent(person, brief), authorities, start + 6 * dayMs), /has expired/);
  const direct = sent(await newCertificate({ ...options, ca: root }));
  const first = parseBundle((await newCa({ commonName: "root", keyPem: root.keyPem, now: start, validDays: 2 })).certPem, "test");
  assert.equal(verifyClient(direct, first, now), start + 2 * dayMs, "the end of the authority");
  assert.throws(() => verifyClient(direct, first, start + 3 * dayMs), /unknown authority/);
  assert.equal(
    verifyClient(direct, [...first, ...authorities], start + 3 * dayMs),
    start + 10 * dayMs,
    "the second one is in its time",
  );
});

/** A bundle in a file, with the number of changes told. */
function watched(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "cox-pool-"));
  const path = join(folder, "ca.crt");
  writeFileSync(path, ca.certPem);
  let changes = 0;
  const pool = watchedCertificatePool(path, () => changes++);
  t.after(() => {
    pool.close();
    rmSync(folder, { recursive: true });
  });
  return { pool, write: (text: string) => writeFileSync(path, text), path, changes: () => changes };
}

test("a watched bundle follows its file, and stays as it was while the file is invalid", async (t) => {
  const { pool, write, changes } = watched(t);
  const [own, others] = [await leaf("jane"), await leaf("jane", [], otherCa)];
  pool.verifyClient(own, start + 1000);
  write("half a file");
  write(otherCa.certPem);
  await waitFor(() => pool.version === 2, { what: "the new authorities" });
  assert.equal(pool.pem, otherCa.certPem);
  pool.verifyClient(others, start + 1000);
  assert.throws(() => pool.verifyClient(own, start + 1000), /unknown authority/);
  assert.equal(changes(), 1, "half a file is no change");
});
