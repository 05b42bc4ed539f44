import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { pathLengthOf, subjectOf } from "./certificate-fields.ts";
import { newCa, newCertificate } from "./certificates.ts";

test("reads how many intermediates an authority allows", async () => {
  for (const pathLength of [undefined, 0, 1, 127, 128, 300]) {
    const { certPem } = await newCa({ commonName: "ca", ...(pathLength !== undefined && { pathLength }) });
    assert.equal(pathLengthOf(new X509Certificate(certPem)), pathLength);
  }
});

test("a certificate of no authority allows any number, and has a subject", async () => {
  const ca = await newCa({ commonName: "ca", pathLength: 0 });
  const pair = await newCertificate({ commonName: "jane", organizations: ["a", "b"], usages: ["client"], ca });
  const certificate = new X509Certificate(pair.certPem);
  assert.equal(pathLengthOf(certificate), undefined);
  assert.deepEqual(subjectOf(certificate), { commonName: "jane", organizations: ["a", "b"] });
});
