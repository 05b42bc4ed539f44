import "reflect-metadata"; // needed by @peculiar/x509
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { before, test } from "node:test";
import * as x509 from "@peculiar/x509";
import {
  alternativeNamesOf,
  type KeyPair,
  newCa,
  newCertificate,
  newCertificateRequest,
  newServiceAccountKey,
  parseCertificateRequest,
  renewCertificate,
  signCertificateRequest,
  subjectOf,
} from "./certificates.ts";

let ca: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "kubernetes" });
});

test("a signed certificate verifies with its authority and has its names and groups", async () => {
  const pair = await newCertificate({
    commonName: "system:node:n1",
    organizations: ["system:nodes", "b, O=x"],
    dnsNames: ["localhost"],
    ips: ["127.0.0.1", "::1"],
    usages: ["server", "client"],
    ca,
  });
  const certificate = new X509Certificate(pair.certPem);
  const authority = new X509Certificate(ca.certPem);
  assert.ok(certificate.verify(authority.publicKey));
  assert.ok(certificate.checkIssued(authority));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(pair.keyPem)));
  assert.ok(authority.ca);
  assert.equal(certificate.checkIP("::1"), "::1");
  assert.equal(certificate.checkHost("localhost"), "localhost");
  assert.deepEqual(subjectOf(certificate), { commonName: "system:node:n1", organizations: ["system:nodes", "b, O=x"] });
});

test("a certificate from a request has its subject, names and key, and the given usages", async () => {
  const { csrPem, keyPem } = await newCertificateRequest({
    commonName: "system:node:n1",
    organizations: ["system:nodes"],
    dnsNames: ["n1"],
    ips: ["10.0.0.1"],
  });
  assert.deepEqual(await parseCertificateRequest(csrPem), {
    commonName: "system:node:n1",
    organizations: ["system:nodes"],
    dnsNames: ["n1"],
    ips: ["10.0.0.1"],
    emails: [],
    uris: [],
  });
  const times = { notBefore: new Date("2022-01-01T00:00:00Z"), notAfter: new Date("2032-01-01T00:00:00Z") };
  const pem = await signCertificateRequest({ csrPem, ca, usages: ["digital signature", "client auth"], ...times });
  const certificate = new X509Certificate(pem);
  assert.ok(certificate.verify(new X509Certificate(ca.certPem).publicKey));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(keyPem)));
  assert.deepEqual(subjectOf(certificate), { commonName: "system:node:n1", organizations: ["system:nodes"] });
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
  await assert.rejects(signCertificateRequest({ csrPem, ca, usages: ["party"], ...times }), /unrecognized usage/);
});

test("all usages and names of a request are signed", async () => {
  const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: "CN=a",
    keys: { privateKey, publicKey } as never, // cast: the library declares the keys of browsers
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: "dns", value: "a" },
        { type: "ip", value: "10.0.0.1" },
        { type: "email", value: "a@b" },
        { type: "url", value: "spiffe://c/d" },
      ]),
    ],
  });
  const usages = ["digital signature", "content commitment", "key encipherment", "server auth", "client auth"];
  const times = { notBefore: new Date("2022-01-01T00:00:00Z"), notAfter: new Date("2032-01-01T00:00:00Z") };
  const pem = await signCertificateRequest({ csrPem: request.toString("pem"), ca, usages, ...times });
  const signed = new X509Certificate(pem);
  assert.equal(signed.subjectAltName, "DNS:a, IP Address:10.0.0.1, email:a@b, URI:spiffe://c/d");
  assert.deepEqual(signed.keyUsage.toSorted(), ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  const { digitalSignature, nonRepudiation, keyEncipherment } = x509.KeyUsageFlags;
  const extension = new x509.X509Certificate(pem).getExtension(x509.KeyUsagesExtension);
  assert.equal(extension?.usages, digitalSignature | nonRepudiation | keyEncipherment);
});

for (const { name, organization } of [
  { name: "the hexadecimal form of another", organization: "#0c0e73797374656d3a6d617374657273" },
  { name: "an escaped form of another", organization: "system\\:masters" },
  { name: "a quoted form of another", organization: '"system:masters"' },
  { name: "a list of two", organization: "devs+O=system:masters" },
]) {
  test(`an organization is signed literally, not interpreted as ${name}`, async () => {
    const { csrPem } = await newCertificateRequest({ commonName: "jane", organizations: [organization] });
    assert.deepEqual((await parseCertificateRequest(csrPem)).organizations, [organization]);
    const times = { notBefore: new Date("2022-01-01T00:00:00Z"), notAfter: new Date("2032-01-01T00:00:00Z") };
    const certificate = new X509Certificate(await signCertificateRequest({ csrPem, ca, usages: ["client auth"], ...times }));
    assert.deepEqual(subjectOf(certificate), { commonName: "jane", organizations: [organization] });
    assert.ok(certificate.checkIssued(new X509Certificate(ca.certPem)));
  });
}

test("refuses a request with an invalid signature", async () => {
  const { csrPem } = await newCertificateRequest({ commonName: "a" });
  const der = Buffer.from(csrPem.replace(/-----[^-]+-----|\n/g, ""), "base64");
  der[der.length - 1] = (der[der.length - 1] as number) ^ 1;
  const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  await assert.rejects(parseCertificateRequest(forged), /does not match its key/);
  await assert.rejects(parseCertificateRequest("-----BEGIN CERTIFICATE-----\n"), /PEM block type/);
});

test("makes RSA keys for tokens", () => {
  const { keyPem, pubPem } = newServiceAccountKey();
  assert.match(keyPem, /^-----BEGIN RSA PRIVATE KEY-----/);
  assert.match(pubPem, /^-----BEGIN PUBLIC KEY-----/);
});

test("refuses a request whose signature does not match its key, also where the library throws", async () => {
  const { csrPem } = await newCertificateRequest({ commonName: "system:node:a" });
  const der = Buffer.from(csrPem.replace(/-----[^-]+-----|\s/g, ""), "base64");
  const pem = (bytes: Buffer): string =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  const changed = Buffer.from(der);
  changed[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
  // A negative number of 33 bytes: longer than the curve's, which the library copies without a check.
  const long = Buffer.from(
    "MIIBDzCBtgIBADAvMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFjAUBgNVBAMMDXN5c3RlbTpub2RlOmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQCG2EPvyab3hvNm+USW/VU5jrMlke7CdtMIYIkK8NGhtLGlcriM14e9WdsqLSABbeRebzGEW4Zic/Gf6YxURf9oCUwIwYJKoZIhvcNAQkOMRYwFDASBgNVHREECzAJggFhhwTAAAIBMAoGCCqGSM49BAMCA0gAMEUCIYDGIWe5fPZBxG7Nk8aUHyhqd3O31T/yk9AX6SBpZNtEywIgFwhoV7o1yDgHNZhY67eabWlYZ0kx5J0j/Yqq7gwQ8iQ=",
    "base64",
  );
  for (const bytes of [changed, long]) await assert.rejects(parseCertificateRequest(pem(bytes)), /does not match its key/);
});

test("a renewed certificate keeps its key, subject, usages and names, gets the new names, and ends no later than its authority", async () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const ca = await newCa({ commonName: "ca", validDays: 100, now });
  const options = { commonName: "node", organizations: ["o"], dnsNames: ["a.test"], ips: ["192.0.2.1"], ca, now };
  const { certPem, keyPem } = await newCertificate({ ...options, usages: ["server", "client"], validDays: 10 });
  const later = now + 5 * 86_400_000;
  const names = { dnsNames: ["a.test", "b.test"], ips: ["192.0.2.2"] };
  const renewed = await renewCertificate({ certPem, ca, ...names, validDays: 30, now: later });
  const [before, after] = [new X509Certificate(certPem), new X509Certificate(renewed)];
  assert.ok(after.checkPrivateKey(createPrivateKey(keyPem)));
  assert.ok(after.verify(new X509Certificate(ca.certPem).publicKey));
  assert.deepEqual([after.subject, after.keyUsage], [before.subject, before.keyUsage]);
  assert.notEqual(after.serialNumber, before.serialNumber);
  assert.deepEqual(alternativeNamesOf(renewed), { dnsNames: ["a.test", "b.test"], ips: ["192.0.2.1", "192.0.2.2"] });
  assert.equal(after.validToDate.getTime(), later + 30 * 86_400_000);
  const longest = new X509Certificate(await renewCertificate({ certPem, ca, validDays: 365, now: later }));
  assert.equal(longest.validToDate.getTime(), new X509Certificate(ca.certPem).validToDate.getTime());
  const { certPem: beyond } = await newCertificate({ ...options, usages: ["server"], validDays: 365 });
  assert.equal(new X509Certificate(beyond).validToDate.getTime(), now + 100 * 86_400_000);
});

test("a certificate is valid from five minutes ago on, and an authority may limit the authorities below it", async () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const limited = await newCa({ commonName: "ca", now, pathLength: 0, validDays: 400 });
  const { certPem } = await newCertificate({ commonName: "a", usages: ["client"], ca: limited, now });
  assert.equal(new X509Certificate(certPem).validFromDate.getTime(), now - 300_000);
  const der = new X509Certificate(limited.certPem).raw.toString("hex");
  assert.ok(der.includes("30060101ff020100"), "CA, with a path length of 0");
  await assert.rejects(
    newCertificate({ commonName: "a", ips: ["node"], usages: ["server"], ca: limited }),
    /"node" is no IP address/,
  );
});
