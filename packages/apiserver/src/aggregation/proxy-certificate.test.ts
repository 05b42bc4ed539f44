import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { readKeyPair } from "./proxy-certificate.ts";

test("a certificate is read with its own key alone, not while one of the files is empty", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-key-pair-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const ca = await newCa({ commonName: "ca" });
  const [own, other] = [
    await newCertificate({ commonName: "proxy", usages: ["client"], ca }),
    await newCertificate({ commonName: "other", usages: ["client"], ca }),
  ];
  const [cert, key] = [file("cert", own.certPem), file("key", own.keyPem)];
  assert.deepEqual(readKeyPair(cert, key), { cert: own.certPem, key: own.keyPem });
  assert.throws(() => readKeyPair(cert, file("other", other.keyPem)), /key values mismatch/);
  const none = file("none", "\n");
  assert.throws(() => readKeyPair(cert, none), /failed to find any PEM data in key input/);
  assert.throws(() => readKeyPair(none, key), /failed to find any PEM data in certificate input/);
  assert.throws(() => readKeyPair(join(folder, "absent"), key), /ENOENT/);
});
