import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { selfSignedPair } from "./self-signed.ts";

const names = { pairName: "kubelet", host: "node-1", dnsNames: ["node-1", "localhost"], ips: ["127.0.0.1"] };

test("a pair is made once, for its names, with a key that only its owner reads, and is used again", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "cox-pair-"));
  t.after(() => rmSync(parent, { recursive: true }));
  const certDir = join(parent, "pki");
  const files = { certFile: join(certDir, "kubelet.crt"), keyFile: join(certDir, "kubelet.key") };
  assert.deepEqual(await selfSignedPair({ certDir, ...names }), files);
  assert.deepEqual(
    [certDir, files.keyFile, files.certFile].map((file) => statSync(file).mode & 0o777),
    [0o755, 0o600, 0o644],
  );
  const [text, key] = [readFileSync(files.certFile, "utf8"), readFileSync(files.keyFile, "utf8")];
  const [own = "", authority = ""] = text.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  const [certificate, ca] = [new X509Certificate(own), new X509Certificate(authority)];
  assert.deepEqual([certificate.checkIssued(ca), certificate.ca, ca.ca], [true, false, true]);
  assert.match(certificate.subject, /^CN=node-1@\d+$/m);
  assert.match(ca.subject, /^CN=node-1-ca@\d+$/m);
  assert.deepEqual(
    [certificate.checkHost("localhost"), certificate.checkHost("node-1"), certificate.checkIP("127.0.0.1")],
    ["localhost", "node-1", "127.0.0.1"],
  );
  const days = (certificate.validToDate.getTime() - Date.now()) / 86_400_000;
  assert.ok(days > 364 && days <= 365.1, `${days} days`);

  assert.deepEqual(await selfSignedPair({ certDir, ...names, host: "other" }), files);
  assert.deepEqual([readFileSync(files.certFile, "utf8"), readFileSync(files.keyFile, "utf8")], [text, key]);

  rmSync(files.keyFile);
  writeFileSync(files.certFile, "a certificate without its key");
  await selfSignedPair({ certDir, ...names });
  assert.ok(new X509Certificate(readFileSync(files.certFile)).checkHost("node-1"));
  assert.notEqual(readFileSync(files.keyFile, "utf8"), key);
});

test("without a folder the pair is in memory only", async () => {
  const pair = await selfSignedPair({ certDir: "", ...names });
  assert.ok("cert" in pair);
  assert.match(pair.key, /^-----BEGIN (EC )?PRIVATE KEY-----/);
  assert.equal(pair.cert.match(/BEGIN CERTIFICATE/g)?.length, 2, "its own and its authority's");
});
