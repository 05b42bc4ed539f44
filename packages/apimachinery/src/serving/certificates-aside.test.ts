/** Imports nothing of the certificate library, so that it would be seen where it does not belong. */
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { newCertificateRequestAside, pairOfTemporaryAuthority } from "./certificates-aside.ts";

/** What the library adds to this thread's Reflect when it is loaded. */
const isLoadedHere = (): boolean => "getMetadata" in Reflect;

test("a certificate request and a serving pair are made without loading the library in this thread", async () => {
  const { csrPem, keyPem } = await newCertificateRequestAside({ commonName: "system:node:a", ips: ["192.0.2.1"] });
  assert.match(csrPem, /^-----BEGIN CERTIFICATE REQUEST-----/);
  assert.equal(createPrivateKey(keyPem).asymmetricKeyType, "ec");
  const names = { authority: "a-ca", commonName: "a", dnsNames: ["localhost"], ips: [], validDays: 1 };
  assert.ok(new X509Certificate((await pairOfTemporaryAuthority(names)).certPem).checkHost("localhost"));
  assert.equal(isLoadedHere(), false);
});

test("what cannot be in a request is refused", async () => {
  await assert.rejects(newCertificateRequestAside({ commonName: "a", ips: ["nowhere"] }), /"nowhere" is no IP address/);
});
