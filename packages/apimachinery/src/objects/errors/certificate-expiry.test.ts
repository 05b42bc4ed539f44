import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { before, test } from "node:test";
import { type KeyPair, newCa, newCertificate } from "../../serving/certificates.ts";
import { expiredOf, expiryText } from "./certificate-expiry.ts";

const dayMs = 86_400_000;
const from = Date.parse("2026-01-01T00:00:00Z");
const to = from + 2 * dayMs;
let ca: KeyPair;
let leaf: X509Certificate;
before(async () => {
  ca = await newCa({ commonName: "ca", now: from, validDays: 10 });
  const options = { commonName: "web", organizations: ["team"], usages: ["client"], ca, now: from, validDays: 2 } as const;
  leaf = new X509Certificate((await newCertificate(options)).certPem);
});

test("a certificate is valid from its first to its last moment", () => {
  // The certificate may begin somewhat earlier than asked, for clocks that are behind.
  const [first, last] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  assert.deepEqual([expiryText(leaf, first), expiryText(leaf, last)], [undefined, undefined]);
  assert.match(
    expiryText(leaf, first - 1) ?? "",
    /^certificate has expired or is not yet valid: current time \S+Z is before \S+Z \(/,
  );
  assert.match(
    expiryText(leaf, last + 1) ?? "",
    /^certificate has expired or is not yet valid: current time \S+Z is after \S+Z \(/,
  );
});

test("the text has both times without fraction, the whole subject on one line, and the file", () => {
  const end = new Date(leaf.validTo).toISOString().replace(".000Z", "Z");
  const text = `certificate has expired or is not yet valid: current time 2027-01-01T00:00:00Z is after ${end}`;
  const now = Date.parse("2027-01-01T00:00:00.7Z");
  assert.equal(expiryText(leaf, now), `${text} (subject ${leaf.subject.replace("\n", ", ")})`);
  assert.match(leaf.subject, /^(O=team\nCN=web|CN=web\nO=team)$/);
  assert.equal(expiryText(leaf, now, "/a.crt")?.endsWith(", file /a.crt)"), true);
});

test("the first certificate of a chain that is not valid is reported, an issuer after those it signed", () => {
  const issuer = new X509Certificate(ca.certPem);
  // A peer's certificate has its issuer only in a TLS connection; a root is its own.
  Object.defineProperty(issuer, "issuerCertificate", { value: issuer });
  Object.defineProperty(leaf, "issuerCertificate", { value: issuer });
  assert.equal(expiredOf(leaf, from + dayMs), undefined);
  assert.match(expiredOf(leaf, to + 5 * dayMs) ?? "", /CN=web/);
  Object.defineProperty(issuer, "validTo", { value: new Date(from).toUTCString() });
  assert.match(expiredOf(leaf, from + dayMs) ?? "", /\(subject CN=ca\)$/);
  assert.equal(expiredOf(undefined, from), undefined);
});
