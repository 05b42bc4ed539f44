import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { certificateSigningRequests, leases, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "../agent-config.ts";
import { newBackground } from "../background.ts";
import type { ApiConnection } from "./api-connection.ts";
import { servingCertificateFile } from "./certificates.ts";
import { joinCluster } from "./join-cluster.ts";

/** A node that joins; `certDir` is an empty folder, so that the rotation of a certificate fails at once. */
function joining(t: TestContext, more: Partial<AgentConfig> = {}, certFile?: (certDir: string) => string) {
  const names = { dnsNames: ["n1.example"], ips: ["192.0.2.77"] };
  const certDir = mkdtempSync(join(tmpdir(), "cox-join-"));
  t.after(() => rmSync(certDir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const background = newBackground({ clock, log: discardLogger });
  t.after(() => background.stop());
  const metrics = newMetricsRegistry();
  const events: string[] = [];
  const heard: (string | undefined)[] = [];
  const config = {
    ...{ certDir, registerNode: true, rotateCertificates: false, rotateServerCertificates: false },
    ...{ nodeStatusUpdateFrequencyMs: 10_000, nodeStatusReportFrequencyMs: 300_000, nodeLeaseDurationSeconds: 40 },
    ...more,
  } as AgentConfig;
  const registration = joinCluster({
    ...{ config, background, clock, metrics, nodeName: "n1", log: discardLogger, names },
    api: { heartbeat: client, certFile: certFile?.(certDir) } as unknown as ApiConnection,
    notify: { node: (...event) => void events.push(event.join(" ")), pod: () => undefined },
    initial: (): Node => ({ metadata: { name: "n1" }, spec: {} }),
    status: async (current) => ({ ...current }),
    onUpdate: (node) => void heard.push(node.metadata.uid),
  });
  return { clock, client, metrics, events, heard, registration, certDir };
}

test("the request for a serving certificate has the node's names and addresses", async (t) => {
  const { client, clock, certDir } = joining(t, { rotateServerCertificates: true });
  const { certPem: cert, keyPem: key } = await newCa({ commonName: "self" });
  await servingCertificateFile(certDir, async () => ({ cert, key }));
  const requests = () => client.list<CertificateSigningRequest>(certificateSigningRequests);
  const request = await waitFor(
    async () => {
      await clock.advance(10_000);
      return (await requests()).items[0]?.spec;
    },
    { what: "the request" },
  );
  assert.equal(request.signerName, "kubernetes.io/kubelet-serving");
  const pem = Buffer.from(request.request ?? "", "base64").toString();
  const der = Buffer.from(pem.replaceAll(/-----.*-----/g, ""), "base64");
  for (const name of ["n1.example", Buffer.from([192, 0, 2, 77])]) assert.ok(der.includes(name), String(name));
});

test("a node that joins is registered, then has a lease of its own; the start is an event", async (t) => {
  const { clock, client, events, heard } = joining(t);
  const lease = () => client.object<Lease>(leases, "kube-node-lease/n1");
  await waitFor(() => lease() !== undefined && heard.length > 0);
  await clock.advance(10_000);
  await waitFor(() => lease()?.metadata.ownerReferences !== undefined, { what: "the owner" });
  const { uid } = client.object<Node>(nodes, "n1")?.metadata ?? {};
  assert.ok(uid);
  assert.deepEqual(lease()?.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "n1", uid }]);
  assert.equal(lease()?.spec?.leaseDurationSeconds, 40);
  assert.equal(heard[0], uid);
  assert.equal(events[0], "Normal Starting Starting kubelet.");
});

for (const { statusMs, leaseSeconds, wantMs } of [
  { statusMs: 10_000, leaseSeconds: 40, wantMs: 10_000 },
  { statusMs: 60_000, leaseSeconds: 4, wantMs: 4_000 },
]) {
  test(`a heartbeat without an answer ends after ${wantMs} ms with reports every ${statusMs} ms and leases of ${leaseSeconds} s`, async (t) => {
    const config = { registerNode: false, nodeStatusUpdateFrequencyMs: statusMs, nodeLeaseDurationSeconds: leaseSeconds };
    const { clock, client } = joining(t, config);
    let aborted = 0;
    client.get = ((_: unknown, __: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborted++;
          reject(signal.reason);
        });
      })) as typeof client.get;
    await settle();
    await clock.advance(wantMs - 1);
    const before = aborted;
    await clock.advance(1);
    assert.ok(before === 0 && aborted > 0, `${before} ${aborted}`);
  });
}

for (const { about, more, certFile, want } of [
  { about: "no rotation", more: {}, certFile: "own.pem", want: [] },
  { about: "a client certificate of its own", more: { rotateCertificates: true }, certFile: "own.pem", want: ["client"] },
  { about: "a client certificate from elsewhere", more: { rotateCertificates: true }, certFile: "../other/own.pem", want: [] },
  { about: "no client certificate", more: { rotateCertificates: true }, certFile: undefined, want: [] },
  { about: "a rotated serving certificate", more: { rotateServerCertificates: true }, certFile: undefined, want: ["server"] },
]) {
  test(`a node with ${about} renews: ${want.join() || "nothing"}`, async (t) => {
    const path = certFile === undefined ? undefined : (certDir: string) => join(certDir, certFile);
    const { clock, metrics } = joining(t, more, path);
    const failed = async (series: string): Promise<number> =>
      Number(new RegExp(`^${series} (\\d+)$`, "m").exec(String(await metrics.render()))?.[1] ?? 0);
    const seen = async () => [
      ...((await failed("kubelet_certificate_manager_client_expiration_renew_errors")) > 0 ? ["client"] : []),
      ...((await failed("kubelet_server_expiration_renew_errors")) > 0 ? ["server"] : []),
    ];
    await waitFor(() => clock.waiting >= 2 + want.length);
    assert.deepEqual(await seen(), want);
  });
}
