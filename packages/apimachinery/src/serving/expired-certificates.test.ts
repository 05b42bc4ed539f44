import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { newClient } from "../client/client.ts";
import { loadKubeconfig } from "../client/kubeconfig.ts";
import { nodes } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newLogger } from "../process/logging/logger.ts";
import { waitFor } from "../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate } from "./certificates.ts";
import { newExpiryLog } from "./expired-certificates.ts";
import { startHttpServer } from "./https-server.ts";

const dayMs = 86_400_000;
const past = { validDays: 5, now: Date.now() - 10 * dayMs };
let ca: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "ca", now: Date.now() - 20 * dayMs });
});

/** Starts a server without client authorities and collects its log. */
async function start(t: TestContext, serving: KeyPair) {
  const folder = mkdtempSync(join(tmpdir(), "cox-expired-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certFile, keyFile] = [join(folder, "serving.crt"), join(folder, "serving.key")];
  writeFileSync(certFile, serving.certPem);
  writeFileSync(keyFile, serving.keyPem);
  const lines: string[] = [];
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Unauthorized",
    message: "Unauthorized",
    code: 401,
  };
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { certFile, keyFile, clientCa: ca.certPem },
    handler: (exchange) => exchange.respond(401, { "content-type": "application/json" }, JSON.stringify(status)),
    log: newLogger({ write: (line) => lines.push(line) }),
  });
  t.after(() => server.close());
  return { host: `https://127.0.0.1:${server.port}`, certFile, keyFile, folder, lines };
}

const servingNow = () => newCertificate({ commonName: "server", ips: ["127.0.0.1"], usages: ["server"], ca });

test("an expired serving certificate is named by the client and in the server's log, until it is renewed", async (t) => {
  const expired = await newCertificate({ commonName: "old-server", ips: ["127.0.0.1"], usages: ["server"], ca, ...past });
  const { host, certFile, keyFile, lines } = await start(t, expired);
  const client = newClient({ host, ca: ca.certPem });
  t.after(() => client.close());
  await assert.rejects(
    client.list(nodes),
    /x509: certificate has expired or is not yet valid: current time \S+Z is after \S+Z \(subject CN=old-server\)/,
  );
  const line = lines.find((text) => text.includes("Clients cannot trust this server"));
  assert.match(line ?? "", /serving certificate has expired.*subject CN=old-server, file \S+serving\.crt/);
  const fresh = await servingNow();
  writeFileSync(keyFile, fresh.keyPem);
  writeFileSync(certFile, fresh.certPem);
  await waitFor(async () => /Unauthorized/.test(await client.list(nodes).then(String, String)), {
    what: "the renewed certificate",
  });
});

test("a 401 names the client's expired certificate and its file", async (t) => {
  const { host, folder } = await start(t, await servingNow());
  const pair = await newCertificate({ commonName: "system:kube-scheduler", usages: ["client"], ca, ...past });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const file = join(folder, "scheduler.conf");
  const write = (cert: KeyPair) =>
    writeFileSync(
      file,
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
        clusters: [{ name: "c", cluster: { server: host, "certificate-authority-data": base64(ca.certPem) } }],
        users: [{ name: "u", user: { "client-certificate-data": base64(cert.certPem), "client-key-data": base64(cert.keyPem) } }],
      }),
    );
  write(pair);
  const client = newClient(await loadKubeconfig(file));
  t.after(() => client.close());
  await assert.rejects(client.list(nodes), {
    code: 401,
    message: new RegExp(
      `^Unauthorized: client certificate has expired or is not yet valid: .* \\(subject CN=system:kube-scheduler, file ${file}\\)$`,
    ),
  });
  write(await newCertificate({ commonName: "system:kube-scheduler", usages: ["client"], ca }));
  const renewed = newClient(await loadKubeconfig(file));
  t.after(() => renewed.close());
  await assert.rejects(renewed.list(nodes), { code: 401, message: "Unauthorized" });
});

test("a certificate that expires while the server runs is logged within the hour, at most once a minute", async () => {
  const clock = newFakeClock();
  const { certPem } = await newCertificate({
    commonName: "x",
    usages: ["server"],
    ca: await newCa({ commonName: "a", now: clock.now() }),
    validDays: 1,
    now: clock.now(),
  });
  const lines: string[] = [];
  const log = newLogger({ write: (line) => lines.push(line), clock });
  const expiry = newExpiryLog(() => [{ certificate: new X509Certificate(certPem), file: "/a.crt" }], log, clock);
  expiry.look();
  assert.deepEqual(lines, []);
  await clock.advance(dayMs + 3_600_000);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /subject CN=x, file \/a\.crt/);
  expiry.look();
  expiry.look();
  assert.equal(lines.length, 1);
  await clock.advance(60_000);
  expiry.look();
  assert.equal(lines.length, 2);
  expiry.close();
  await clock.advance(2 * 3_600_000);
  assert.equal(lines.length, 2);
});

test("a certificate that has expired is logged at a reload, and none after the server was closed", async (t) => {
  const clock = newFakeClock(Date.now());
  const folder = mkdtempSync(join(tmpdir(), "cox-expired-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certFile, keyFile] = [join(folder, "serving.crt"), join(folder, "serving.key")];
  const write = ({ certPem, keyPem }: KeyPair): void => {
    writeFileSync(certFile, certPem);
    writeFileSync(keyFile, keyPem);
  };
  write(await servingNow());
  const lines: string[] = [];
  const server = await startHttpServer({
    ...{ port: 0, bindAddress: "127.0.0.1", tls: { certFile, keyFile }, clock },
    handler: (exchange) => exchange.respond(200, {}, ""),
    log: newLogger({ write: (line) => void (line.includes("Clients cannot trust this server") && lines.push(line)), clock }),
  });
  write(await newCertificate({ commonName: "old-server", usages: ["server"], ca, ...past }));
  server.reloadCertificates();
  assert.equal(lines.length, 1);
  await server.close();
  await clock.advance(3 * 3_600_000);
  assert.equal(lines.length, 1);
});

test("all certificates that have expired are named, with their files", async () => {
  const clock = newFakeClock(Date.now());
  const made = await Promise.all(
    ["one", "two"].map((commonName) => newCertificate({ commonName, usages: ["server"], ca, ...past })),
  );
  const lines: string[] = [];
  const log = newLogger({ write: (line) => lines.push(line), clock });
  const served = made.map(({ certPem }, i) => ({ certificate: new X509Certificate(certPem), file: `/${i}.crt` }));
  newExpiryLog(() => served, log, clock).close();
  assert.match(
    lines.join(""),
    /serving certificate .*subject CN=one, file \/0\.crt\); certificate .*subject CN=two, file \/1\.crt\)/,
  );
});
