import "reflect-metadata";
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import * as x509 from "@peculiar/x509";
import { alternativeNamesOf } from "./certificates.ts";
import { pairOfTemporaryAuthority } from "./temporary-authority.ts";

const names = { authority: "a-ca@1", commonName: "node-ä@1", dnsNames: ["node-1", "localhost"], ips: ["127.0.0.1", "fd00::1:2"] };

test("a pair has the names, usages and key of a serving certificate that its authority has signed", () => {
  const { caPem, certPem, keyPem } = pairOfTemporaryAuthority({ ...names, validDays: 2 });
  const [ca, own] = [new X509Certificate(caPem), new X509Certificate(certPem)];
  assert.deepEqual([ca.subject, ca.issuer, own.subject, own.issuer], ["CN=a-ca@1", "CN=a-ca@1", "CN=node-ä@1", "CN=a-ca@1"]);
  assert.deepEqual([own.verify(ca.publicKey), own.checkIssued(ca), ca.verify(ca.publicKey)], [true, true, true]);
  assert.deepEqual([ca.ca, own.ca, own.checkPrivateKey(createPrivateKey(keyPem))], [true, false, true]);
  assert.deepEqual(alternativeNamesOf(certPem), { dnsNames: names.dnsNames, ips: names.ips });
  assert.deepEqual(own.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
  const minutes = (date: Date): number => Math.round((date.getTime() - Date.now()) / 60_000);
  assert.deepEqual([minutes(own.validFromDate), minutes(own.validToDate)], [-5, 2 * 1440]);
  assert.notEqual(ca.serialNumber, own.serialNumber);
});

test("the library that issues other certificates reads the same extensions", () => {
  const { caPem, certPem } = pairOfTemporaryAuthority({ ...names, validDays: 2 });
  const [ca, own] = [new x509.X509Certificate(caPem), new x509.X509Certificate(certPem)];
  const critical = (certificate: x509.X509Certificate): string[] =>
    Array.from(certificate.extensions, (one) => `${one.type}${one.critical ? " critical" : ""}`);
  assert.deepEqual(critical(ca), ["2.5.29.19 critical", "2.5.29.15 critical", "2.5.29.14"]);
  assert.deepEqual(critical(own), ["2.5.29.15 critical", "2.5.29.37", "2.5.29.19 critical", "2.5.29.35", "2.5.29.17"]);
  const { digitalSignature, keyEncipherment, keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const usages = [ca, own].map((one) => one.getExtension(x509.KeyUsagesExtension)?.usages);
  assert.deepEqual(usages, [digitalSignature | keyEncipherment | keyCertSign | cRLSign, digitalSignature | keyEncipherment]);
  const keyId = ca.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
  assert.match(keyId ?? "", /^[0-9a-f]{40}$/);
  assert.equal(own.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId, keyId);
});

test("a certificate that ends after 2049 has a longer form of its end", () => {
  const own = new X509Certificate(pairOfTemporaryAuthority({ ...names, validDays: 36_500 }).certPem);
  const years = (own.validToDate.getTime() - Date.now()) / 86_400_000 / 365;
  assert.ok(Math.abs(years - 100) < 0.01, `${years} years`);
});

test("without alternative names the certificate has no extension for them", () => {
  const own = new X509Certificate(pairOfTemporaryAuthority({ ...names, dnsNames: [], ips: [], validDays: 1 }).certPem);
  assert.equal(own.subjectAltName, undefined);
});

for (const wrong of [{ ips: ["node-1"] }, { ips: ["fe80::1%eth0"] }, { dnsNames: ["nöde"] }]) {
  test(`${JSON.stringify(wrong)} cannot be in a certificate: an error`, () => {
    assert.throws(() => pairOfTemporaryAuthority({ ...names, ...wrong, validDays: 1 }), /"[^"]+" is no (IP address|DNS name)/);
  });
}

test("200 names, whose lengths take several bytes, are all in the certificate", () => {
  const dnsNames = Array.from({ length: 200 }, (_, index) => `host-${index}.example.org`);
  const { certPem } = pairOfTemporaryAuthority({ ...names, dnsNames, validDays: 1 });
  assert.deepEqual(alternativeNamesOf(certPem).dnsNames, dnsNames);
});
