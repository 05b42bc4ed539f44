import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { newSigningPairReader } from "./signing-pair.ts";

function pairIn(t: { after(fn: () => void): void }) {
  const folder = mkdtempSync(join(tmpdir(), "cox-pair-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = { cert: join(folder, "ca.crt"), key: join(folder, "ca.key") };
  const errors: string[] = [];
  const read = newSigningPairReader(files, { ...discardLogger, error: (message) => void errors.push(message) });
  const write = ({ certPem, keyPem }: { certPem: string; keyPem: string }): void => {
    writeFileSync(files.cert, certPem);
    writeFileSync(files.key, keyPem);
  };
  return { files, read, write, errors };
}

test("without a pair from before, files that are missing or no pair are an error each time", async (t) => {
  const { read, write, errors } = pairIn(t);
  await assert.rejects(read(), /ENOENT/);
  const [one, other] = [await newCa({ commonName: "a" }), await newCa({ commonName: "b" })];
  write({ certPem: one.certPem, keyPem: other.keyPem });
  await assert.rejects(read(), /error reading CA cert file ".*ca\.crt": private key does not match public key/);
  write({ certPem: one.certPem + other.certPem, keyPem: one.keyPem });
  await assert.rejects(read(), /error reading CA cert file ".*ca\.crt": expected 1 certificate, found 2/);
  write(one);
  assert.equal((await read()).certPem, one.certPem);
  assert.deepEqual(errors, []);
});

test("a bundle that replaces a pair is reported, and the pair is used on until there is another", async (t) => {
  const { read, write, errors } = pairIn(t);
  const [one, other] = [await newCa({ commonName: "a" }), await newCa({ commonName: "b", validDays: 1 })];
  write(one);
  const first = await read();
  assert.equal(await read(), first, "the same files are not parsed again");
  write({ certPem: other.certPem + one.certPem, keyPem: other.keyPem });
  assert.equal(await read(), first);
  assert.deepEqual(errors, ["cannot reload the signing key pair; using the previous one"]);
  write(other);
  const next = await read();
  assert.equal(next.keyPem, other.keyPem);
  assert.ok(next.notAfter < first.notAfter, "with the other's end");
});
