/** What a service takes of the ranges, keeps and gives back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { allocateClusterIps, newClusterIpAllocator, releaseClusterIps } from "./cluster-ip.ts";
import { allocateNodePorts, newNodePortAllocator, nodePortsOf } from "./node-port.ts";
import { RangeStorage } from "./testing.ts";

function addresses() {
  const etcd = new RangeStorage();
  const v4 = newClusterIpAllocator("10.0.0.0/28", () => etcd.storage);
  const v6 = newClusterIpAllocator("fd00::/124", () => etcd.storage, true);
  const allocate = (clusterIPs: string[], { fixed = [] as string[], dryRun = false } = {}) => {
    const service = { metadata: { name: "s" }, spec: { clusterIPs, ipFamilies: ["IPv4", "IPv6"] } } as unknown as Service;
    const allocators = new Map([v4, v6].map((one) => [one.family, one]));
    return allocateClusterIps(service, allocators, fixed, dryRun).then((transaction) => ({ ...transaction, service }));
  };
  return { v4, v6, allocate };
}

test("a service whose second address is taken gives the first one back", async () => {
  const { v4, v6, allocate } = addresses();
  await v6.range.take(v6.offsetOf("fd00::9"), false);
  await assert.rejects(allocate(["10.0.0.9", "fd00::9"]), /failed to allocate IP fd00::9: provided IP is already allocated/);
  await v4.range.take(v4.offsetOf("10.0.0.9"), false);
});

test("a write that fails gives both addresses back, a dry run none of what others have taken since", async () => {
  const { allocate } = addresses();
  const wanted = ["10.0.0.9", "fd00::9"];
  const { revert } = await allocate(wanted);
  await revert();
  const dry = await allocate(wanted, { dryRun: true });
  await allocate(wanted);
  const chosen = await allocate(["10.0.0.8", ""]); // one that is free
  await dry.revert();
  await assert.rejects(allocate(wanted), /already allocated/);
  await chosen.revert();
  await allocate(chosen.service.spec.clusterIPs ?? []);
});

test("addresses that a service has are kept, both: they are neither taken nor given back", async () => {
  const { v4, v6, allocate } = addresses();
  const fixed = ["10.0.0.9", "fd00::9"];
  await v6.range.take(v6.offsetOf("fd00::9"), false); // when the service was made
  const { service, revert } = await allocate(fixed, { fixed });
  assert.deepEqual(service.spec.clusterIPs, fixed);
  await revert();
  await v4.range.take(v4.offsetOf("10.0.0.9"), false);
  await assert.rejects(v6.range.take(v6.offsetOf("fd00::9"), false), /already allocated/);
});

test("a deleted service gives its addresses of both families back; a headless one has none", async () => {
  const { v4, v6, allocate } = addresses();
  await allocate(["10.0.0.9", "fd00::9"]);
  await releaseClusterIps(["None", "10.0.0.9", "fd00::9", "192.0.2.1"], [v4, v6]);
  await allocate(["10.0.0.9", "fd00::9"]);
});

test("neither the network's own address nor, in IPv4, the broadcast address is given out", () => {
  const { v4, v6 } = addresses();
  assert.deepEqual(
    ["10.0.0.0", "10.0.0.1", "10.0.0.14", "10.0.0.15"].map((ip) => v4.contains(ip)),
    [false, true, true, false],
  );
  assert.deepEqual(
    ["fd00::", "fd00::1", "fd00::f", "fd00::10"].map((ip) => v6.contains(ip)),
    [false, true, true, false],
  );
});

type Port = { port?: number; protocol?: string; nodePort?: number };
function ports(to: number) {
  const etcd = new RangeStorage();
  const allocator = newNodePortAllocator({ from: 30_000, to }, () => etcd.storage);
  const allocate = (of: Port[], { dryRun = false, healthCheck = false } = {}) => {
    const service = {
      metadata: { name: "s" },
      spec: { ports: of.map((one) => ({ port: 80, protocol: "TCP", ...one })) },
    } as Service;
    return allocateNodePorts(service, allocator, [], { ports: true, healthCheck }, dryRun).then((transaction) => ({
      ...transaction,
      service,
      chosen: service.spec.ports?.map(({ nodePort }) => nodePort),
    }));
  };
  return { allocate };
}

test("a port that is asked for is chosen for no other port of the service, whatever their order", async () => {
  const { allocate } = ports(30_001);
  for (let i = 0; i < 20; i++) {
    const { chosen, revert } = await allocate([{ port: 80 }, { port: 81, nodePort: 30_000 }]);
    assert.deepEqual(chosen, [30_001, 30_000]);
    await revert();
  }
});

test("a dry run chooses no port twice and takes none; a write that fails gives back what was chosen for it", async () => {
  const { allocate } = ports(30_002);
  const wanted = [{ port: 1 }, { port: 2 }, { port: 3 }];
  for (const dryRun of [true, false, true, false]) {
    if (dryRun) assert.deepEqual((await allocate(wanted, { dryRun })).chosen?.toSorted(), [30_000, 30_001, 30_002]);
    else await (await allocate(wanted)).revert();
  }
});

test("two ports share a node port when their protocols differ, not when they are the same", async () => {
  const { allocate } = ports(30_009);
  const shared = await allocate([{ protocol: "TCP" }, { protocol: "UDP" }]);
  assert.equal(new Set(shared.chosen).size, 1);
  const apart = await allocate([{ protocol: "TCP" }, { protocol: "TCP" }]);
  assert.equal(new Set(apart.chosen).size, 2);
});

test("the last port of the range belongs to it, the next one does not", async () => {
  const { allocate } = ports(30_001);
  await allocate([{ nodePort: 30_001 }]);
  await assert.rejects(allocate([{ nodePort: 30_002 }]), /The range of valid ports is 30000-30001/);
});

test("the port for health checks is one of the service's node ports", async () => {
  const { allocate } = ports(30_009);
  const { service } = await allocate([{ nodePort: 30_004 }], { healthCheck: true });
  const { healthCheckNodePort } = service.spec;
  assert.deepEqual(nodePortsOf(service), [30_004, healthCheckNodePort]);
});
