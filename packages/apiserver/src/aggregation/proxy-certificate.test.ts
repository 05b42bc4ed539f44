import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { readKeyPair, watchedProxyCertificate } from "./proxy-certificate.ts";

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

test("files that do not match leave the pair before them, which is logged; matching ones replace it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-key-pair-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [cert, key] = [join(folder, "cert"), join(folder, "key")];
  const ca = await newCa({ commonName: "ca" });
  const [first, second] = [
    await newCertificate({ commonName: "proxy", usages: ["client"], ca }),
    await newCertificate({ commonName: "proxy", usages: ["client"], ca }),
  ];
  writeFileSync(cert, first.certPem);
  writeFileSync(key, first.keyPem);
  const lines: string[] = [];
  const clock = newFakeClock();
  const watched = watchedProxyCertificate(cert, key, clock, newLogger({ verbosity: 0, write: (line) => void lines.push(line) }));
  t.after(() => watched.close());
  const reread = async (file: string, text: string, logged: string): Promise<void> => {
    writeFileSync(file, text);
    lines.length = 0;
    await clock.advance(60_000);
    await waitFor(() => lines.some((line) => line.includes(logged)), { what: logged });
  };
  await reread(cert, second.certPem, "cannot reload a client certificate; keeping the previous one");
  assert.deepEqual(watched.current, { cert: first.certPem, key: first.keyPem });
  await reread(key, second.keyPem, "reloaded a client certificate");
  assert.deepEqual(watched.current, { cert: second.certPem, key: second.keyPem });
  watched.close();
  assert.equal(clock.waiting, 0);
});

for (const [cert, key] of [
  ["", "key"],
  ["cert", ""],
] as const) {
  test(`there is no pair with ${cert === "" ? "a key" : "a certificate"} alone`, () => {
    const clock = newFakeClock();
    assert.equal(watchedProxyCertificate(cert, key, clock, newLogger({ write() {} })).current, undefined);
    assert.equal(clock.waiting, 0);
  });
}
