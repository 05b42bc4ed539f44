import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ApiserverConfig } from "../config.ts";
import { WatchedCertificates } from "./certificates.ts";

const ca = await newCa({ commonName: "first" });
const other = await newCa({ commonName: "second" });
const [pair, next] = [
  await newCertificate({ commonName: "a", usages: ["client"], ca }),
  await newCertificate({ commonName: "b", usages: ["client"], ca }),
];
const none = {
  ...{ "client-ca-file": "", "requestheader-client-ca-file": "", "proxy-client-cert-file": "", "proxy-client-key-file": "" },
  ...{ "kubelet-client-certificate": "", "kubelet-client-key": "", "etcd-certfile": "", "etcd-keyfile": "" },
};

function files(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "cox-certificates-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
}

function watched(t: TestContext, flags: object) {
  const clock = newFakeClock();
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const certificates = new WatchedCertificates({ ...none, ...flags } as unknown as ApiserverConfig["flags"], clock, log);
  t.after(() => certificates.close());
  /** Lets time pass. */
  const until = (isRead: () => boolean) =>
    waitFor(
      async () => {
        await clock.advance(60_000);
        return isRead();
      },
      { what: "the new files" },
    );
  return { certificates, clock, until, errors };
}

for (const { flag, pem } of [
  { flag: "client-ca-file", pem: (of: WatchedCertificates) => of.authenticationInfo().clientCa },
  { flag: "requestheader-client-ca-file", pem: (of: WatchedCertificates) => of.authenticationInfo().requestHeader?.ca },
]) {
  test(`authorities of --${flag} are read again and announced, not after the close`, async (t) => {
    const write = files(t);
    const { certificates, clock, until } = watched(t, { [flag]: write("ca.crt", ca.certPem) });
    let announced = 0;
    certificates.onAuthorities(() => announced++);
    assert.equal(pem(certificates), ca.certPem);
    write("ca.crt", other.certPem);
    await until(() => announced > 0);
    assert.equal(pem(certificates), other.certPem);
    certificates.close();
    assert.equal(clock.waiting, 0);
  });
}

for (const { cert, key, of } of [
  { cert: "proxy-client-cert-file", key: "proxy-client-key-file", of: "proxy" },
  { cert: "kubelet-client-certificate", key: "kubelet-client-key", of: "kubelet" },
  { cert: "etcd-certfile", key: "etcd-keyfile", of: "etcd" },
] as const) {
  test(`the certificate of --${cert} is read again once its key fits, not after the close`, async (t) => {
    const write = files(t);
    const flags = { [cert]: write("tls.crt", pair.certPem), [key]: write("tls.key", pair.keyPem) };
    const { certificates, clock, until, errors } = watched(t, flags);
    assert.deepEqual(certificates[of].current, { cert: pair.certPem, key: pair.keyPem });
    write("tls.crt", next.certPem);
    await until(() => errors.length > 0 || certificates[of].current?.cert === next.certPem);
    assert.deepEqual(certificates[of].current, { cert: pair.certPem, key: pair.keyPem }, "the former pair, until both are there");
    write("tls.key", next.keyPem);
    await until(() => certificates[of].current?.cert === next.certPem);
    certificates.close();
    assert.equal(clock.waiting, 0);
  });
}

test("without the flags there is no certificate, and nothing is watched", (t) => {
  const { certificates, clock } = watched(t, {});
  assert.deepEqual(certificates.authenticationInfo(), { clientCa: undefined, requestHeader: undefined });
  assert.deepEqual(
    [certificates.proxy.current, certificates.kubelet.current, certificates.etcd.current],
    [undefined, undefined, undefined],
  );
  assert.equal(clock.waiting, 0);
});
