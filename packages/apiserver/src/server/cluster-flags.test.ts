/** Flags about the cluster: the service `kubernetes`, external names, garbage collection. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const service = "/api/v1/namespaces/default/services/kubernetes";
const endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
const slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

async function addressesOf(server: TestServer): Promise<string[]> {
  const { body } = await server.request("GET", endpoints);
  return (body.subsets ?? []).flatMap(({ addresses }: { addresses: { ip: string }[] }) => addresses.map(({ ip }) => ip));
}

for (const type of ["lease", "master-count"]) {
  test(`--endpoint-reconciler-type=${type}: each server adds its address to the endpoints, and takes it away when it stops`, async (t) => {
    const shared = [`--etcd-prefix=/test-${randomUUID()}`, `--endpoint-reconciler-type=${type}`, "--apiserver-count=2"];
    const first = await startTestServer(t, [...shared, "--advertise-address=192.0.2.11"]);
    const second = await startTestServer(t, [...shared, "--advertise-address=192.0.2.12"]);
    assert.deepEqual(await addressesOf(first), ["192.0.2.11", "192.0.2.12"]);
    await second.stop();
    await waitFor(async () => (await addressesOf(first)).join() === "192.0.2.11", { what: "one address" });
    const { body } = await first.request("GET", slice);
    assert.deepEqual(
      body.endpoints.map(({ addresses }: { addresses: string[] }) => addresses),
      [["192.0.2.11"]],
    );
  });
}

test("--endpoint-reconciler-type=master-count: --apiserver-count=1 leaves the address of the last server alone", async (t) => {
  const shared = [`--etcd-prefix=/test-${randomUUID()}`, "--endpoint-reconciler-type=master-count"];
  const first = await startTestServer(t, [...shared, "--advertise-address=192.0.2.11"]);
  await startTestServer(t, [...shared, "--advertise-address=192.0.2.12"]);
  assert.deepEqual(await addressesOf(first), ["192.0.2.12"]);
});

test("--endpoint-reconciler-type=none: the service exists and its endpoints are not written", async (t) => {
  const server = await startTestServer(t, ["--endpoint-reconciler-type=none"]);
  assert.equal((await server.request("GET", service)).code, 200);
  assert.equal((await server.request("GET", endpoints)).code, 404);
  assert.equal((await server.request("GET", slice)).code, 404);
});

test("--kubernetes-service-node-port makes the service kubernetes a NodePort, and 0 one without", async (t) => {
  const prefix = `--etcd-prefix=/test-${randomUUID()}`;
  const open = await startTestServer(t, [prefix, "--kubernetes-service-node-port=30443"]);
  const { spec } = (await open.request("GET", service)).body;
  assert.equal(spec.type, "NodePort");
  hasFields(spec.ports, [{ name: "https", port: 443, nodePort: 30443 }]);
  await open.stop();
  const closed = await startTestServer(t, [prefix]);
  const after = (await closed.request("GET", service)).body.spec;
  assert.equal(after.type, "ClusterIP");
  assert.equal(after.ports[0].nodePort, undefined);
});

test("--external-hostname is the name in the URLs that the server publishes", async (t) => {
  const server = await startTestServer(t, ["--external-hostname=api.example.com"]);
  const { serverAddressByClientCIDRs } = (await server.request("GET", "/api")).body;
  // The port is the one of the flag, which is 0 in this test.
  assert.deepEqual(serverAddressByClientCIDRs, [{ clientCIDR: "0.0.0.0/0", serverAddress: "api.example.com:0" }]);
  const { jwks_uri } = (await server.request("GET", "/.well-known/openid-configuration")).body;
  assert.equal(new URL(jwks_uri).hostname, "api.example.com");
});

test("--enable-garbage-collector=false deletes at once whatever is requested for dependents", async (t) => {
  const configMaps = "/api/v1/namespaces/default/configmaps";
  for (const enabled of [true, false]) {
    const server = await startTestServer(t, [`--enable-garbage-collector=${enabled}`]);
    for (const propagationPolicy of ["Orphan", "Foreground"]) {
      const name = propagationPolicy.toLowerCase();
      await server.request("POST", configMaps, { metadata: { name } });
      await server.request("DELETE", `${configMaps}/${name}`, { propagationPolicy });
      const { code } = await server.request("GET", `${configMaps}/${name}`);
      assert.equal(code, enabled ? 200 : 404, `${propagationPolicy}, ${enabled}`);
    }
  }
});
