import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newClient } from "@coxswain/apimachinery/client/client";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices, nodes, pods, roleBindings, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { delegatedAuthentication } from "@coxswain/apimachinery/serving/delegated/authentication";
import { delegatedAuthorization } from "@coxswain/apimachinery/serving/delegated/authorization";
import { openTrust } from "@coxswain/apimachinery/serving/delegated/trust";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newScraper } from "@coxswain/cluster-services/metrics-api/kubelets";
import { register } from "@coxswain/cluster-services/metrics-api/register";
import { startMetricsServer } from "@coxswain/cluster-services/metrics-api/server";
import { newUsageStore } from "@coxswain/cluster-services/metrics-api/usage-store";
import { type AddOns, startAddOns } from "./add-ons.ts";

/** A cluster IP of the server's range: a loopback address. */
const address = "127.0.10.200";

/** Answers /metrics/resource with usage that grows by half a core; 500 while `state.fails`. */
async function startKubelet(t: TestContext) {
  const ca = await newCa({ commonName: "kubelet-ca" });
  const pair = await newCertificate({ commonName: "n1", ips: ["127.0.0.1"], usages: ["server"], ca });
  const state = { fails: false, seconds: 0 };
  const started = Date.now() - 60_000;
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    if (request.url !== "/metrics/resource" || state.fails) return void response.writeHead(500).end("no");
    state.seconds += 15;
    const at = started + state.seconds * 1000;
    const sample = (name: string, labels: string, value: number): string => `${name}${labels} ${value} ${at}\n`;
    let text = sample("node_cpu_usage_seconds_total", "", state.seconds);
    text += sample("node_memory_working_set_bytes", "", 2 ** 30);
    for (const [pod, share] of [
      ["web", 0.5],
      ["idle", 0.001],
    ] as const) {
      const labels = `{container="main",namespace="default",pod="${pod}"}`;
      text += sample("container_cpu_usage_seconds_total", labels, state.seconds * share);
      text += sample("container_memory_working_set_bytes", labels, 20 * 2 ** 20);
    }
    response.end(text);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => void server.close().closeAllConnections());
  return { state, ca: ca.certPem, port: (server.address() as AddressInfo).port };
}

async function serve(t: TestContext, addOns: AddOns) {
  const { client, clock, log, metrics, signal, informers } = addOns;
  const nodeInformer = informers.for<Node>(nodes);
  const podInformer = informers.for<KubeObject>(pods, { metadataOnly: true });
  await informers.waitForSync(signal);
  const flags = {
    "client-ca-file": "",
    "authentication-skip-lookup": false,
    "authentication-tolerate-lookup-failure": false,
    "requestheader-client-ca-file": "",
    "requestheader-allowed-names": [],
    "requestheader-username-headers": [],
    "requestheader-group-headers": [],
    "requestheader-extra-headers-prefix": [],
  };
  const trust = await openTrust({ flags, client, clock, log, signal });
  const ca = await newCa({ commonName: "metrics-ca" });
  const dnsNames = ["coxswain-metrics.kube-system.svc"];
  const pair = await newCertificate({ commonName: "metrics", dnsNames, usages: ["server"], ca });
  const store = newUsageStore();
  const server = await startMetricsServer({
    address,
    port: 0,
    cert: pair.certPem,
    key: pair.keyPem,
    authenticate: delegatedAuthentication({ trust, client, tokenTtlMs: 0, anonymous: true, clock, metrics }),
    authorize: delegatedAuthorization({
      ...{ client, clock, metrics, authorizedTtlMs: 0, unauthorizedTtlMs: 0 },
      alwaysAllowGroups: ["system:masters"],
      alwaysAllowPaths: [],
    }),
    inventory: { nodes: nodeInformer.lister, pods: podInformer.lister },
    ...{ store, log, clock },
  });
  t.after(() => server.close());
  return {
    store,
    ca,
    port: server.port,
    podsKnown: () => podInformer.lister.list().length,
    list: () => nodeInformer.lister.list(),
  };
}

test("kubectl top shows nodes and pods through the aggregator, to those who may see them", async (t) => {
  const addOns = await startAddOns(t);
  const { server, client, clock, log, metrics, signal, kubectl, create } = addOns;
  const kubelet = await startKubelet(t);
  const resources = { cpu: "2", memory: "4Gi" };
  await create(nodes, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1" },
    status: {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
      allocatable: resources,
      capacity: resources,
    },
  });
  const container = { name: "main", image: "busybox" };
  for (const name of ["web", "idle", "unmeasured"]) {
    const metadata = { name, namespace: "default", labels: { app: name } };
    await create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [container] } });
  }
  const { store, ca, port, podsKnown, list } = await serve(t, addOns);
  const where = { namespace: "kube-system", name: "coxswain-metrics" };
  const spec = { clusterIP: address, ports: [{ name: "https", port }] };
  await create(services, { apiVersion: "v1", kind: "Service", metadata: where, spec });
  const registration = { address: "192.0.2.1", port, servicePort: port };
  await register(client, { ...registration, caPem: ca.certPem }, signal);
  // A second process with another authority takes over.
  await register(client, { ...registration, address: "192.0.2.2", caPem: "other" }, signal);
  await register(client, { ...registration, caPem: ca.certPem }, signal);
  const newKubeletClient = (url: string) => newClient({ host: url, ca: kubelet.ca, qps: -1 });
  const scraper = newScraper({ nodes: list, newClient: newKubeletClient, ...{ store, clock, log, metrics } });
  await waitFor(async (seen) => {
    const { status } = await client.get<{ status?: { conditions?: { type: string; status: string }[] } }>(apiServices, {
      name: "v1beta1.metrics.k8s.io",
    });
    return seen(status)?.conditions?.some(({ type, status }) => type === "Available" && status === "True");
  });

  await waitFor(() => list().length === 1 && podsKnown() === 3);
  await scraper.round(signal);
  await assert.rejects(kubectl("top", "pods"), /metrics not available yet|no metrics/i);
  await scraper.round(signal);
  const table = async (...args: string[]) =>
    (await kubectl("top", ...args, "--no-headers"))
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
  assert.deepEqual(await table("nodes"), [["n1", "1000m", "50%", "1024Mi", "25%"]]);
  assert.deepEqual(await table("pods", "--sort-by=cpu"), [
    ["web", "500m", "20Mi"],
    ["idle", "1m", "20Mi"],
  ]);
  assert.deepEqual(await table("pods", "--containers", "-l", "app=web"), [["web", "main", "500m", "20Mi"]]);
  assert.match(await kubectl("get", "podmetrics.metrics.k8s.io"), /NAME +CPU +MEMORY +WINDOW\nidle +1m +20Mi +15s/i);
  await waitFor(async () => (await server.request("GET", "/openapi/v2")).text.includes("v1beta1.PodMetrics"));
  assert.match(await kubectl("explain", "podmetrics"), /window/);

  const path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
  const asJane = { authorization: "Bearer user-token" };
  const { code, body } = await server.request("GET", path, undefined, asJane);
  assert.equal(code, 403, body.message);
  const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:aggregated-metrics-reader" };
  await create(roleBindings, { metadata: { name: "jane", namespace: "default" }, subjects, roleRef });
  await waitFor(async () => (await server.request("GET", path, undefined, asJane)).code === 200);
  // Only clients that come through the API server are authenticated.
  const direct = newClient({
    host: `https://${address}:${port}`,
    ca: ca.certPem,
    serverName: "coxswain-metrics.kube-system.svc",
    qps: -1,
  });
  t.after(() => direct.close());
  const forged = await direct.raw("GET", path, { headers: { "x-remote-user": "admin", "x-remote-group": "system:masters" } });
  assert.equal(forged.status, 403);

  kubelet.state.fails = true;
  await scraper.round(signal);
  const { body: gone } = await server.request("GET", path);
  assert.deepEqual(gone.items, []);
});
