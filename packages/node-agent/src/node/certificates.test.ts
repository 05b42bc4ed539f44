import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { notFound, serviceUnavailable, tooManyRequests } from "@coxswain/apimachinery/objects/errors/status-error";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { bootstrapKubeconfig, rotateCertificate, servingCertificateFile } from "./certificates.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-certificates-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

type Said = { status?: object } | Error;

/** A joining node; `says` lists the responses to reads of the request's status, the last one repeated. */
async function joining(t: TestContext, says: Said[], cluster: object = { server: "https://api.example:6443" }) {
  const dir = await tempDir(t);
  const bootstrap = join(dir, "bootstrap.conf");
  const config = { clusters: [{ name: "c", cluster }], contexts: [{ name: "c", context: { cluster: "c", user: "u" } }] };
  await writeFile(
    bootstrap,
    JSON.stringify({ ...config, "current-context": "c", users: [{ name: "u", user: { token: "a.b" } }] }),
  );
  let created = 0;
  let closed = 0;
  const client = {
    raw: async () => ({ status: 200, body: Buffer.from("ok") }),
    create: async () => ({ metadata: { name: `csr-${++created}` } }),
    async get() {
      const [said] = says.length > 1 ? says.splice(0, 1) : says;
      if (said instanceof Error) throw said;
      return said;
    },
    close: () => void closed++,
  } as unknown as Client;
  const clock = newFakeClock();
  const path = join(dir, "node/kubelet.conf");
  const options = { nodeName: "n1", certDir: join(dir, "pki"), rotates: true, clock, log: discardLogger };
  const startedMs = clock.monotonic();
  let outcome: string | undefined;
  void bootstrapKubeconfig(path, bootstrap, options, new AbortController().signal, () => client).then(
    () => {
      outcome = "joined";
    },
    (err: Error) => {
      outcome = err.message;
    },
  );
  await waitFor(async () => {
    if (outcome === undefined) await clock.advance(10_000);
    return outcome !== undefined;
  });
  return { path, outcome, created: () => created, closed: () => closed, tookMs: clock.monotonic() - startedMs };
}

const signed = (conditions: object[], certificate = "PEM"): Said => ({
  status: { conditions, certificate: Buffer.from(certificate).toString("base64") },
});
const approved = { type: "Approved", status: "True" };

for (const { name, says, want } of [
  {
    name: "denied, though it was approved before",
    says: [signed([approved, { type: "Denied", reason: "Unknown", message: "not one of ours" }])],
    want: "certificate signing request csr-1 is denied, reason: Unknown: not one of ours",
  },
  {
    name: "failed without a word of why",
    says: [signed([{ type: "Failed" }])],
    want: "certificate signing request csr-1 is failed, reason: : ",
  },
  { name: "gone", says: [notFound({ group: "x", resource: "csrs" }, "csr-1")], want: 'csrs.x "csr-1" not found' },
]) {
  test(`a certificate request that is ${name} ends the attempt, closes the client and writes no kubeconfig`, async (t) => {
    const { path, outcome, closed } = await joining(t, says);
    assert.equal(outcome, want);
    assert.equal(closed(), 1);
    await assert.rejects(readFile(path), { code: "ENOENT" });
  });
}

test("a certificate request without a response is abandoned after 15 minutes", async (t) => {
  const { outcome, tookMs } = await joining(t, [{ status: { conditions: [approved] } }]);
  assert.equal(outcome, "certificate signing request csr-1 was not signed in time");
  assert.ok(tookMs > 15 * 60_000 && tookMs < 17 * 60_000, String(tookMs));
});

test("the same certificate request is read again after the API server was unreachable or overloaded", async (t) => {
  const says = [
    new Error("connect ECONNREFUSED"),
    serviceUnavailable("busy"),
    tooManyRequests("too many", 1),
    {},
    signed([], "early"),
    signed([approved], "PEM"),
  ];
  const { path, outcome, created, closed } = await joining(t, says);
  assert.deepEqual([outcome, created(), closed()], ["joined", 1, 1]);
  const { certFile } = await loadKubeconfig(path);
  assert.match(await readFile(certFile ?? "", "utf8"), /^PEM\n-----BEGIN/);
});

test("the written kubeconfig has the server and CA of the bootstrap kubeconfig", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const dir = await tempDir(t);
  await writeFile(join(dir, "ca.crt"), ca.certPem);
  const server = "https://api.example:6443";
  const written = async (cluster: object) =>
    readFile((await joining(t, [signed([approved])], { server, ...cluster })).path, "utf8");
  const data = Buffer.from(ca.certPem).toString("base64");
  const whole = await written({ "certificate-authority-data": data, "tls-server-name": "other.test" });
  assert.match(whole, /^apiVersion: v1$/m);
  assert.match(whole, /^kind: Config$/m);
  assert.match(whole, /tls-server-name: other\.test/);
  assert.ok(whole.includes("certificate-authority-data:"));
  assert.doesNotMatch(whole, /insecure|a\.b/, "nor the rights that were lent");
  assert.match(await written({ "certificate-authority": join(dir, "ca.crt") }), /certificate-authority: .*\/ca\.crt/);
  assert.match(await written({ "insecure-skip-tls-verify": true }), /insecure-skip-tls-verify: true/);
});

test("a kubeconfig with an expired certificate, or without one, is replaced", async (t) => {
  const dir = await tempDir(t);
  const day = 24 * 3_600_000;
  const ca = await newCa({ commonName: "ca" });
  const { path } = await joining(t, [signed([approved])]);
  const usable = async (...issued: number[]) => {
    const clock = newFakeClock(Date.now());
    const { certFile } = await loadKubeconfig(path);
    const pems = issued.map(async (now) => {
      const pair = await newCertificate({ commonName: "n1", usages: ["client"], ca, validDays: 1, now });
      return pair.certPem + pair.keyPem;
    });
    await writeFile(certFile ?? "", (await Promise.all(pems)).join(""));
    const options = { nodeName: "n1", certDir: join(dir, "pki"), rotates: true, clock, log: discardLogger };
    const none = (): never => {
      throw new Error("connects");
    };
    const bootstrap = join(dir, "none.conf");
    return bootstrapKubeconfig(path, bootstrap, options, new AbortController().signal, none).then(
      () => true,
      () => false,
    );
  };
  assert.equal(await usable(Date.now()), true);
  assert.equal(await usable(Date.now() - 2 * day), false);
  assert.equal(await usable(Date.now(), Date.now() - 2 * day), false, "the second of a chain is expired");
  assert.equal(await usable(), false, "without a certificate");
});

test("a failed renewal is retried after 30 seconds, and the current certificate stays in use", async (t) => {
  const dir = await tempDir(t);
  const ca = await newCa({ commonName: "ca" });
  const own = await newCertificate({ commonName: "self", usages: ["server"], ca });
  await writeFile(join(dir, "kubelet-server-self-signed.pem.tmp"), "what a crash left", { mode: 0o644 });
  const file = await servingCertificateFile(dir, async () => ({ cert: own.certPem, key: own.keyPem }));
  const before = await readFile(file, "utf8");
  assert.equal(before, own.certPem + own.keyPem);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  let tries = 0;
  const client = {
    async create() {
      tries++;
      throw new Error("connect ECONNREFUSED");
    },
  } as unknown as Client;
  const clock = newFakeClock();
  const stop = new AbortController();
  const onRotated = () => assert.fail("nothing was rotated");
  const said: string[] = [];
  const metrics = { current: () => undefined, rotated: onRotated, renewalFailed: () => void said.push("failed") };
  const options = { nodeName: "n1", certDir: dir, clock, log: discardLogger, purpose: "server" as const, onRotated, metrics };
  const running = rotateCertificate(client, options, stop.signal);
  for (const round of [1, 2]) {
    await waitFor(() => clock.waiting > 0 && tries === round, { what: `try ${round}` });
    await clock.advance(29_999);
    assert.equal(tries, round);
    await clock.advance(1);
  }
  assert.equal(await readFile(file, "utf8"), before);
  assert.deepEqual(said.slice(0, 2), ["failed", "failed"]);
  assert.deepEqual((await readdir(dir)).toSorted(), ["kubelet-server-current.pem", "kubelet-server-self-signed.pem"]);
  stop.abort();
  await running;
});

test("an agent that stops during a renewal counts and logs no failure", async (t) => {
  const dir = await tempDir(t);
  const own = await newCertificate({ commonName: "self", usages: ["server"], ca: await newCa({ commonName: "ca" }) });
  await servingCertificateFile(dir, async () => ({ cert: own.certPem, key: own.keyPem }));
  const asked = Promise.withResolvers<void>();
  const client = {
    async create(_resource: unknown, _request: unknown, { signal }: { signal: AbortSignal }) {
      asked.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  } as unknown as Client;
  const stop = new AbortController();
  const never = () => assert.fail("it has stopped");
  await Promise.all([
    rotateCertificate(
      client,
      {
        nodeName: "n1",
        certDir: dir,
        clock: newFakeClock(),
        log: { ...discardLogger, error: never },
        purpose: "server",
        onRotated: never,
        metrics: { current: () => undefined, rotated: never, renewalFailed: never },
      },
      stop.signal,
    ),
    asked.promise.then(() => stop.abort()),
  ]);
});

test("a certificate is checked every hour, and renewed once, at the time that was drawn for it", async (t) => {
  const dir = await tempDir(t);
  const ca = await newCa({ commonName: "ca" });
  const begun = Date.now();
  const clock = newFakeClock(begun);
  const own = await newCertificate({ commonName: "system:node:n1", usages: ["client"], ca, validDays: 1 });
  await writeFile(join(dir, "own.pem"), own.certPem + own.keyPem);
  await symlink(join(dir, "own.pem"), join(dir, "kubelet-client-current.pem"));
  await symlink("nowhere", join(dir, "kubelet-client-current.pem.new")); // left over from an interrupted renewal
  const next = await newCertificate({ commonName: "system:node:n1", usages: ["client"], ca, validDays: 100 });
  const requests: CertificateSigningRequest[] = [];
  const client = {
    async create(_: unknown, request: CertificateSigningRequest) {
      requests.push(request);
      return { ...request, metadata: { name: "csr-1" } };
    },
    get: async () => signed([approved], next.certPem),
  } as unknown as Client;
  let rotated = 0;
  const onRotated = () => void rotated++;
  const stop = new AbortController();
  let drawn = 0;
  const random = () => (drawn++ === 0 ? 1 : 0);
  const options = { nodeName: "n1", certDir: dir, clock, log: discardLogger, purpose: "client" as const, onRotated, random };
  let hasEnded = false;
  const running = rotateCertificate(client, options, stop.signal).finally(() => {
    hasEnded = true;
  });
  const nextLook = async (): Promise<void> => {
    await waitFor(() => hasEnded || clock.waiting === 1);
    assert.ok(!hasEnded);
  };
  await nextLook();
  assert.equal(clock.nextDue, begun + 3_600_000);
  // Due after 90 per cent of a day; the validity begins some minutes before the certificate was issued.
  for (let hours = 0; rotated === 0 && hours < 23; hours++) {
    await clock.advance((clock.nextDue ?? 0) - clock.now());
    await nextLook();
  }
  const hours = (clock.now() - begun) / 3_600_000;
  assert.ok(hours > 20 && hours < 22, String(hours));
  assert.deepEqual(
    [rotated, drawn, requests.length, requests[0]?.spec.signerName],
    [1, 2, 1, "kubernetes.io/kube-apiserver-client-kubelet"],
  );
  assert.ok((await readFile(join(dir, "kubelet-client-current.pem"), "utf8")).startsWith(next.certPem));
  stop.abort();
  await running;
});
