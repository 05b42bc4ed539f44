import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { leases, namespaces, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import { type DaemonProcess, startDaemon, startKubelet, type TestContext } from "../framework/daemon-process.ts";

const definitions: ResourceRef = {
  group: "apiextensions.k8s.io",
  version: "v1",
  resource: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};

async function define(server: TestServer, count: number): Promise<void> {
  const one = (i: number) => {
    const names = { plural: `things${i}`, singular: `thing${i}`, kind: `Thing${i}`, listKind: `Thing${i}List` };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const spec = {
      group: "example.com",
      scope: "Namespaced",
      names,
      versions: [{ name: "v1", served: true, storage: true, schema }],
    };
    return server.client.create(definitions, { metadata: { name: `${names.plural}.example.com` }, spec });
  };
  for (let i = 0; i < count; i++) await one(i);
}

const startManager = (t: TestContext, server: TestServer): Promise<DaemonProcess> =>
  startDaemon(t, server, {
    packageName: "controller-manager",
    user: "system:kube-controller-manager",
    flags: (kubeconfig) => [
      `--kubeconfig=${kubeconfig}`,
      "--secure-port=0",
      "--use-service-account-credentials=true",
      "--leader-elect-lease-duration=4s",
      "--leader-elect-renew-deadline=3s",
      "--leader-elect-retry-period=1s",
    ],
  });

/** Waits until the lease was renewed this often by the same holder, while the process runs. */
async function keepsLeading(
  server: TestServer,
  name: string,
  daemon: DaemonProcess,
  renewals: number,
  namespace = "kube-system",
): Promise<void> {
  const seen = new Set<string>();
  const holders = new Set<string>();
  await waitFor(
    async () => {
      assert.equal(daemon.end(), undefined, daemon.log().slice(-2000));
      const lease = await server.client.get<Lease>(leases, { namespace, name }).catch(() => undefined);
      if (!lease?.spec?.holderIdentity || !lease.spec.renewTime) return false;
      holders.add(lease.spec.holderIdentity);
      seen.add(lease.spec.renewTime);
      return seen.size > renewals;
    },
    { what: `${renewals} renewals of ${name}`, intervalMs: 100 },
  );
  assert.equal(holders.size, 1);
}

/** Deleting a namespace requires watches of all resources. */
async function emptiesNamespaces(server: TestServer, name: string): Promise<void> {
  await server.client.create(namespaces, { metadata: { name } });
  await server.client.delete(namespaces, { name });
  await waitFor(
    async () => (await server.client.list(namespaces)).items.every((one) => (one.metadata as { name?: string }).name !== name),
    // With 300 definitions it took 20 s on a busy machine, and more than 60 s on an overloaded one.
    { what: "the end of a namespace", timeoutMs: 300_000 },
  );
}

for (const { streams, count, restarts } of [
  { streams: 10, count: 10, restarts: 1 },
  ...(process.env["COX_TEST_LONG"] === undefined ? [] : [{ streams: 250, count: 300, restarts: 4 }]),
]) {
  test(`with ${count} definitions and ${streams} streams on each connection daemons lead, work, and start again`, async (t) => {
    const server = await startTestServer(t, [`--http2-max-streams-per-connection=${streams}`]);
    await define(server, count);
    const scheduler = await startDaemon(t, server, {
      packageName: "scheduler",
      user: "system:kube-scheduler",
      flags: (kubeconfig) => [`--kubeconfig=${kubeconfig}`, "--secure-port=0"],
    });
    for (let i = 0; i <= restarts; i++) {
      const manager = await startManager(t, server);
      await waitFor(() => manager.log().includes("controllers started"), { what: "the controllers" });
      await emptiesNamespaces(server, `gone${i}`);
      await keepsLeading(server, "kube-controller-manager", manager, 5);
      manager.signal("SIGTERM");
      await waitFor(() => manager.end() !== undefined, { what: "the end of the controller manager" });
    }
    await keepsLeading(server, "kube-scheduler", scheduler, 2);
    await server.client.list(pods);
  });
}

test("a kubelet with more watches than a connection has streams renews its lease", async (t) => {
  const streams = 2;
  const server = await startTestServer(t, [`--http2-max-streams-per-connection=${streams}`]);
  const dir = await mkdtemp(join(tmpdir(), "cox-streams-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const config = join(dir, "config.yaml");
  const settings = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", nodeLeaseDurationSeconds: 4 };
  await writeFile(config, JSON.stringify(settings));
  const kubelet = await startKubelet(t, server, dir, `--config=${config}`);
  const watches = async (): Promise<number> => {
    const { text } = await server.request("GET", "/metrics");
    const found = text.matchAll(/^apiserver_longrunning_requests\{[^}]*verb="WATCH"[^}]*\} (\d+)$/gm);
    return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  await waitFor(async () => (await watches()) > streams, { what: "more watches than a connection has streams" });
  await keepsLeading(server, "n1", kubelet, 3, "kube-node-lease");
});
