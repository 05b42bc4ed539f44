import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";

const series = [
  "kube_apiserver_clusterip_allocator_allocated_ips",
  "kube_apiserver_clusterip_allocator_available_ips",
  "kube_apiserver_clusterip_allocator_allocation_total",
  "kube_apiserver_clusterip_allocator_allocation_errors_total",
];

test("allocated and free cluster IPs are shown by range, with attempts to allocate one; of dry runs only those outside of the range count", async (t) => {
  const server = await startTestServer(t, ["--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.7.0.5/28"]);
  const path = "/api/v1/namespaces/default/services";
  const create = async (name: string, clusterIP: string, query = ""): Promise<number> => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name }, spec: { ports: [{ port: 80 }], clusterIP } };
    return (await server.request("POST", `${path}${query}`, service)).code;
  };
  const counts = async (): Promise<number[]> => {
    const { text } = await server.request("GET", "/metrics");
    return series.map((name) => Number(new RegExp(`^${name}\\{cidr="10\\.7\\.0\\.0/28"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0));
  };
  const [used = 0, free = 0, allocations = 0, errors = 0] = await counts();
  assert.equal(used + free, 14);
  assert.equal(await create("a", "10.7.0.9"), 201);
  assert.equal(await create("dry", "10.7.0.8", "?dryRun=All"), 201);
  assert.equal(await create("dry", "10.7.0.9", "?dryRun=All"), 422);
  assert.deepEqual(await counts(), [used + 1, free - 1, allocations + 1, errors]);
  assert.equal(await create("taken", "10.7.0.9"), 422);
  assert.equal(await create("outside", "10.9.0.9"), 422);
  assert.equal((await server.request("DELETE", `${path}/a`)).code, 200);
  assert.deepEqual(await counts(), [used, free, allocations + 1, errors + 2]);
  assert.equal(await create("dry", "10.9.0.9", "?dryRun=All"), 422);
  assert.deepEqual(await counts(), [used, free, allocations + 1, errors + 3]);
});
