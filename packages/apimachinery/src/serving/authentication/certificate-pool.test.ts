import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { newCa, newCertificate } from "../certificates.ts";
import { parseBundle, verifyClient } from "./certificate-pool.ts";

const ca = await newCa({ commonName: "ca" });
const otherCa = await newCa({ commonName: "ca" });
const authorities = parseBundle(ca.certPem, "test");

async function leaf(usages: ("client" | "server")[], signer = ca): Promise<X509Certificate> {
  const { certPem } = await newCertificate({ commonName: "jane", organizations: ["a", "b"], usages, ca: signer });
  return new X509Certificate(certPem);
}

test("accepts a client certificate of the authority, until the first of the chain expires", async () => {
  const certificate = await leaf(["client"]);
  const until = verifyClient(certificate, authorities, Date.now());
  const ends = [certificate, ...authorities].map(({ validTo }) => Date.parse(validTo));
  assert.equal(until, Math.min(...ends));
});

test("refuses a certificate that may only serve", async () => {
  assert.throws(() => verifyClient(certificateOf, authorities, Date.now()), /incompatible key usage/);
});
const certificateOf = await leaf(["server"]);

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

test("a bundle without certificates is an error", () => {
  assert.throws(() => parseBundle("hello", "/etc/ca.crt"), /\/etc\/ca.crt/);
});
