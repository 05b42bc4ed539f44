/** etcd behind proxies: end-to-end TLS, a proxy that is killed and restarted, a member that the proxy cannot reach. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startConnectProxy, startKonnectivityServer } from "../testing/egress-proxies.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { startTlsEtcd } from "../testing/tls-etcd.ts";

/** Addresses that are reachable through the proxy only. */
const [away, here] = ["192.0.2.50:2379", "192.0.2.51:2379"];

for (const { proxyProtocol, startProxy, labels } of [
  { proxyProtocol: "HTTPConnect", startProxy: startConnectProxy, labels: 'protocol="http_connect",transport="uds"' },
  { proxyProtocol: "GRPC", startProxy: startKonnectivityServer, labels: 'protocol="grpc",transport="uds"' },
]) {
  test(`etcd is reached by ${proxyProtocol} over TLS, and again when the proxy was killed; no watch misses anything`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "cox-egress-etcd-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const socket = join(directory, "proxy.sock");
    const config = join(directory, "egress.yaml");
    const connection = `{proxyProtocol: ${proxyProtocol}, transport: {uds: {udsName: ${socket}}}}`;
    writeFileSync(config, `kind: EgressSelectorConfiguration\negressSelections: [{name: etcd, connection: ${connection}}]\n`);
    const etcd = await startTlsEtcd(t, ["192.0.2.50", "192.0.2.51"]);
    const start = () => startProxy({ at: socket, portOf: (target) => (target === here ? etcd.port : undefined) });
    const proxy = await start();
    t.after(() => proxy.stop());
    const server = await startTestServer(t, [
      `--etcd-servers=https://${away},https://${here}`,
      `--etcd-cafile=${etcd.files.ca}`,
      `--etcd-certfile=${etcd.files.cert}`,
      `--etcd-keyfile=${etcd.files.key}`,
      "--etcd-healthcheck-timeout=500ms",
      `--egress-selector-config-file=${config}`,
    ]);
    const path = "/api/v1/namespaces/default/configmaps";
    const create = (name: string) => server.request("POST", path, { metadata: { name } });
    const seen: string[] = [];
    const watching = new AbortController();
    t.after(() => watching.abort());
    const watched = (async () => {
      for await (const { type, object } of server.client.watch(
        configMaps,
        { namespace: "default" },
        { signal: watching.signal },
      )) {
        if (type === "ADDED") seen.push(object.metadata?.name ?? "");
      }
    })().catch(() => {});
    assert.equal((await create("before")).code, 201);
    await waitFor(() => seen.includes("before"), { what: "the event of the watch" });
    assert.ok(proxy.requested.includes(here));

    await proxy.stop();
    rmSync(socket, { force: true });
    const sick = await waitFor(async () => [await server.request("GET", "/readyz?verbose")].find(({ code }) => code === 500), {
      what: "the server not to be ready",
    });
    assert.match(sick.text, /^\[-\]etcd failed: reason withheld$/m);

    const successor = await start();
    t.after(() => successor.stop());
    await waitFor(async () => (await server.request("GET", "/readyz")).code === 200, { what: "the server to be ready again" });
    assert.equal((await create("after")).code, 201);
    await waitFor(() => seen.includes("after"), { what: "the watch to go on" });
    assert.deepEqual(
      seen.filter((name) => name !== "kube-root-ca.crt"),
      ["before", "after"],
    );
    watching.abort();
    await watched;
    const { text } = await server.request("GET", "/metrics");
    assert.match(text, new RegExp(`^apiserver_egress_dialer_dial_duration_seconds_count\\{${labels}\\} [1-9]`, "m"));
    assert.match(text, new RegExp(`^apiserver_egress_dialer_dial_failure_count\\{${labels},stage="connect"\\} [1-9]`, "m"));
    await server.stop(); // while etcd is available for the final writes
  });
}
