/** What a server leaves behind when it stops, and what its start flags allow while it is not complete. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { EtcdError } from "../storage/etcd/errors.ts";
import { launchTestServer, startTestServer } from "../testing/start-test-server.ts";
import { startTlsPeer } from "../testing/tls-peer.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-stopped-"));
after(() => rmSync(directory, { recursive: true }));

/** In a folder of its own, since folders are watched. */
function file(name: string, text: string): string {
  const folder = join(directory, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "file"), text, { mode: 0o600 });
  return join(folder, "file");
}

/** Sockets of this process, and the folders that it watches. */
function held(): { sockets: number; folders: number } {
  const links = readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [{ fd, to: readlinkSync(`/proc/self/fd/${fd}`) }];
    } catch {
      return []; // the descriptor that lists the others
    }
  });
  const watches = links
    .filter(({ to }) => to.includes("inotify"))
    .map(({ fd }) => readFileSync(`/proc/self/fdinfo/${fd}`, "utf8").match(/^inotify /gm)?.length ?? 0);
  return {
    sockets: links.filter(({ to }) => to.startsWith("socket:")).length,
    folders: watches.reduce((sum, count) => sum + count, 0),
  };
}

test("a server that has stopped has no connection and watches no file", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const { certPem, keyPem } = await newCertificate({ commonName: "client", usages: ["client"], ca });
  const flags = [
    `--client-ca-file=${file("client-ca", ca.certPem)}`,
    `--requestheader-client-ca-file=${file("requestheader", ca.certPem)}`,
    ...["proxy-client-cert-file", "kubelet-client-certificate", "etcd-certfile"].map(
      (flag) => `--${flag}=${file(flag, certPem)}`,
    ),
    ...["proxy-client-key-file", "kubelet-client-key", "etcd-keyfile"].map((flag) => `--${flag}=${file(flag, keyPem)}`),
  ];
  await startEtcd();
  const first = await startTestServer(t); // what all servers of the process share is there after the first
  await first.stop();
  const before = held();
  const server = await startTestServer(t, flags);
  assert.ok(held().folders >= before.folders + 8, `${held().folders} folders are watched`);
  await server.stop();
  await waitFor(() => held().folders === before.folders, { what: "the watches of files to end" });
  await waitFor(() => held().sockets <= before.sockets, { what: "the connections to end" });
});

test("events that a webhook has not answered are waited for, also by a server that stops at once", async (t) => {
  const wanted = Promise.withResolvers<void>();
  const lost: string[] = [];
  const log: Logger = { ...discardLogger, error: (message) => void lost.push(message), named: () => log };
  const release = Promise.withResolvers<void>();
  const peer = await startTlsPeer(t, async ({ body }) => {
    for (const { auditID } of JSON.parse(body).items) if (auditID === "last") wanted.resolve();
    await release.promise;
    return { body: {} };
  });
  const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
  const server = await startTestServer(
    t,
    [
      `--audit-policy-file=${file("policy", policy)}`,
      `--audit-webhook-config-file=${peer.kubeconfig()}`,
      "--audit-webhook-batch-max-size=1",
    ],
    log,
  );
  await server.request("GET", "/version", undefined, { "audit-id": "last" });
  await wanted.promise;
  const stopped = server.stop(0);
  await waitFor(
    async () =>
      server.request("GET", "/version").then(
        () => false,
        () => true,
      ),
    { what: "the port to be closed" },
  );
  release.resolve();
  await stopped;
  await settle();
  assert.deepEqual(lost, []);
});

for (const [period, code] of [
  ["1h", 200],
  ["0", 500],
] as const) {
  test(`--livez-grace-period=${period}: a server whose roles cannot be written has /livez with ${code}`, async (t) => {
    const server = await launchTestServer(t, [`--livez-grace-period=${period}`], undefined, (client) => ({
      ...client,
      async txn(request) {
        if (request.success.some((op) => "key" in op && op.key.includes("/clusterroles/")))
          throw new EtcdError("unavailable", "no roles");
        return client.txn(request);
      },
    }));
    const hook = "poststarthook/rbac/bootstrap-roles";
    await waitFor(async () => (await server.request("GET", `/readyz/${hook}`)).code === 500, { what: "the hook to be there" });
    assert.equal((await server.request("GET", `/livez/${hook}`)).code, code);
  });
}
