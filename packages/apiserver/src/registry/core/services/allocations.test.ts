/** Numbers that a service takes from the ranges, keeps, and releases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { ClusterIpMetrics } from "../../config.ts";
import type { RegistryServices } from "../../generic/resource.ts";
import type { StrategyContext } from "../../generic/strategy.ts";
import { allocateClusterIps, newClusterIpAllocator, releaseClusterIps } from "./cluster-ip.ts";
import { allocateNodePorts, newNodePortAllocator, nodePortsOf } from "./node-port.ts";
import { newServiceAllocators, newServiceStrategy } from "./strategy.ts";
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
  return { etcd, v4, v6, allocate };
}

test("a service whose second address is taken gives the first one back", async () => {
  const { v4, v6, allocate } = addresses();
  await v6.range.take(v6.offsetOf("fd00::9"), false);
  await assert.rejects(allocate(["10.0.0.9", "fd00::9"]), {
    message:
      'Service "s" is invalid: spec.clusterIPs: Invalid value: []string{"10.0.0.9", "fd00::9"}: failed to allocate IP fd00::9: provided IP is already allocated',
  });
  await v4.range.take(v4.offsetOf("10.0.0.9"), false);
});

test("a write that fails gives both addresses back, a dry run none of what others have taken since", async () => {
  const { allocate } = addresses();
  const wanted = ["10.0.0.9", "fd00::9"];
  const { revert } = await allocate(wanted);
  await revert();
  const dry = await allocate(wanted, { dryRun: true });
  await allocate(wanted);
  const chosen = await allocate(["10.0.0.8", ""]); // a free address
  await dry.revert();
  await assert.rejects(allocate(wanted), /already allocated/);
  await chosen.revert();
  await allocate(chosen.service.spec.clusterIPs ?? []);
});

test("addresses that a service has are kept, both: they are neither taken nor given back", async () => {
  const { v4, v6, allocate } = addresses();
  const fixed = ["10.0.0.9", "fd00::9"];
  await v6.range.take(v6.offsetOf("fd00::9"), false); // allocated when the service was created
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

test("a range holds no address of the other family, though its number is the same", () => {
  const { v4 } = addresses();
  assert.deepEqual([v4.contains("10.0.0.9"), v4.contains("::a00:9")], [true, false]);
});

test("of a large IPv6 range 65,535 addresses are given out, the first of them", () => {
  const { contains } = newClusterIpAllocator("fd00::/64", () => new RangeStorage().storage);
  assert.deepEqual(["fd00::1", "fd00::ffff", "fd00::1:0"].map(contains), [true, true, false]);
});

test("an etcd that is away is reported as that, and not as an address or port that is taken", async () => {
  const away = { message: "etcd is away" };
  const { etcd, allocate } = addresses();
  etcd.isAway = true;
  for (const wanted of [["10.0.0.9"], [""]]) await assert.rejects(allocate(wanted), away);
  const numbers = ports(30_001);
  numbers.etcd.isAway = true;
  for (const port of [{ nodePort: 30_001 }, {}]) await assert.rejects(numbers.allocate([port]), away);
});

type Port = { port?: number; protocol?: string; nodePort?: number };
function ports(to: number) {
  const etcd = new RangeStorage();
  const allocator = newNodePortAllocator({ from: 30_000, to }, () => etcd.storage);
  const allocate = (of: Port[], { dryRun = false, healthCheck = false, held = [] as number[], spec = {} } = {}) => {
    const service = {
      metadata: { name: "s" },
      spec: { ports: of.map((one) => ({ port: 80, protocol: "TCP", ...one })), ...spec },
    } as Service;
    return allocateNodePorts(service, allocator, held, { ports: true, shared: true, healthCheck }, dryRun).then(
      (transaction) => ({
        ...transaction,
        service,
        chosen: service.spec.ports?.map(({ nodePort }) => nodePort),
      }),
    );
  };
  return { etcd, allocate };
}

test("a requested port is chosen for no other port of the service, whatever their order", async () => {
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

test("a dry run takes no requested port, and is refused one that is taken", async () => {
  const { allocate } = ports(30_001);
  await allocate([{ nodePort: 30_000 }], { dryRun: true });
  await allocate([{ nodePort: 30_000 }]);
  await assert.rejects(allocate([{ nodePort: 30_000 }], { dryRun: true }), /provided port is already allocated/);
});

test("two ports share a node port when their protocols differ, not when they are the same", async () => {
  const { allocate } = ports(30_009);
  const shared = await allocate([{ protocol: "TCP" }, { protocol: "UDP" }]);
  assert.equal(new Set(shared.chosen).size, 1);
  const apart = await allocate([{ protocol: "TCP" }, { protocol: "TCP" }]);
  assert.equal(new Set(apart.chosen).size, 2);
});

test("one node port may be requested for two protocols; it is taken, and given back, once", async () => {
  const { allocate } = ports(30_009);
  const shared = [
    { protocol: "TCP", nodePort: 30_004 },
    { protocol: "UDP", nodePort: 30_004 },
  ];
  const { chosen, revert } = await allocate(shared);
  assert.deepEqual(chosen, [30_004, 30_004]);
  await assert.rejects(allocate(shared), /provided port is already allocated/);
  await revert();
  await allocate(shared);
});

test("the last port of the range belongs to it, the next one does not", async () => {
  const { allocate } = ports(30_001);
  await allocate([{ nodePort: 30_001 }]);
  await assert.rejects(allocate([{ nodePort: 30_002 }]), /The range of valid ports is 30000-30001/);
});

test("a second port outside the range is refused by its path, on an update, too, and the first one is given back", async () => {
  const { allocate } = ports(30_001);
  for (const { nodePort, held } of [
    { nodePort: 29_999, held: [] },
    { nodePort: 30_002, held: [30_001] },
  ]) {
    await assert.rejects(allocate([{ nodePort: 30_000 }, { nodePort }], { held }), {
      code: 422,
      message: `Service "s" is invalid: spec.ports[1].nodePort: Invalid value: ${nodePort}: provided port is not in the valid range. The range of valid ports is 30000-30001`,
    });
    await (await allocate([{ nodePort: 30_000 }])).revert();
  }
});

test("ports outside the range that a service has are kept", async () => {
  const { etcd, allocate } = ports(30_001);
  const held = [29_999, 30_002];
  const { chosen } = await allocate(
    held.map((nodePort) => ({ nodePort })),
    { held },
  );
  assert.deepEqual([chosen, etcd.stored.size], [held, 0]);
});

for (const { name, healthCheckNodePort, nodePorts, message } of [
  {
    name: "outside the range",
    healthCheckNodePort: 30_002,
    nodePorts: [],
    message:
      "failed to allocate requested HealthCheck NodePort 30002: provided port is not in the valid range. The range of valid ports is 30000-30001",
  },
  {
    name: "that is one of the service's node ports",
    healthCheckNodePort: 30_001,
    nodePorts: [30_001],
    message: "failed to allocate requested HealthCheck NodePort 30001: provided port is already allocated",
  },
  {
    name: "where none is left",
    healthCheckNodePort: undefined,
    nodePorts: [30_000, 30_001],
    message: "failed to allocate a HealthCheck NodePort 0: range is full",
  },
]) {
  test(`a port for health checks ${name} is an internal error, and node ports are given back`, async () => {
    const { allocate } = ports(30_001);
    const wanted = nodePorts.map((nodePort) => ({ nodePort }));
    for (const dryRun of [true, false]) {
      const failed = allocate(wanted, { healthCheck: true, dryRun, spec: { healthCheckNodePort } });
      await assert.rejects(failed, { code: 500, message: `Internal error occurred: ${message}` });
    }
    await allocate(wanted);
  });
}

test("a full range of ports or of addresses is an internal error that says of what", async () => {
  const { allocate } = ports(30_000);
  await allocate([{}]);
  await assert.rejects(allocate([{}]), {
    code: 500,
    message: "Internal error occurred: failed to allocate a nodePort: range is full",
  });
  for (const [cidr, family] of [
    ["10.0.0.0/32", "IPv4"],
    ["10.0.0.0/31", "IPv4"],
    ["fd00::/128", "IPv6"],
  ] as const) {
    const none = newClusterIpAllocator(cidr, () => new RangeStorage().storage);
    const service = { metadata: { name: "s" }, spec: { ipFamilies: [family] } } as unknown as Service;
    await assert.rejects(allocateClusterIps(service, new Map([[family, none]]), [], false), {
      code: 500,
      message: "Internal error occurred: failed to allocate a serviceIP: range is full",
    });
  }
});

test("of a family without a range no address is allocated, and the other one is", async () => {
  const { v6 } = addresses();
  const spec = { clusterIPs: ["10.0.0.9", "fd00::9"], ipFamilies: ["IPv4", "IPv6"] };
  const service = { metadata: { name: "s" }, spec } as unknown as Service;
  await allocateClusterIps(service, new Map([["IPv6", v6]]), [], false);
  assert.deepEqual([service.spec.clusterIP, service.spec.clusterIPs], ["fd00::9", ["fd00::9"]]);
});

test("a range that is no CIDR block, and no range at all, are refused", () => {
  const storage = () => new RangeStorage().storage;
  assert.throws(() => newClusterIpAllocator("10.0.0.1", storage), {
    message: '--service-cluster-ip-range: "10.0.0.1" is not a CIDR block',
  });
  const config = { services: () => ({}) as RegistryServices, nodePortRange: { from: 30_000, to: 30_009 } };
  assert.throws(() => newServiceAllocators({ ...config, serviceClusterIpRange: [] }), {
    message: "no range of cluster IPs: --service-cluster-ip-range is empty",
  });
});

test("the port for health checks is one of the service's node ports", async () => {
  const { allocate } = ports(30_009);
  const { service } = await allocate([{ nodePort: 30_004 }], { healthCheck: true });
  const { healthCheckNodePort } = service.spec;
  assert.deepEqual(nodePortsOf(service), [30_004, healthCheckNodePort]);
});

function services() {
  const etcd = new RangeStorage();
  const deleted: string[] = [];
  const endpoints = {
    async delete({ namespace }: StrategyContext, name: string) {
      await new Promise(setImmediate); // takes longer than what else is to do
      deleted.push(`${namespace}/${name}`);
      throw new Error("etcd is away");
    },
  };
  const store = (_group: string, resource: string) => (resource === "endpoints" ? endpoints : { storage: etcd.storage });
  const strategy = newServiceStrategy({
    services: () => ({ store }) as unknown as RegistryServices,
    serviceClusterIpRange: ["10.0.0.0/28", "fd00::/124"],
    nodePortRange: { from: 30_000, to: 30_009 },
  });
  const aService = (clusterIPs: string[], nodePorts: number[], spec: object = {}) => {
    const ports = nodePorts.map((nodePort, i) => ({ port: 80 + i, protocol: "TCP", nodePort }));
    const ipFamilies = clusterIPs.map((ip) => (ip.includes(":") ? "IPv6" : "IPv4"));
    return { metadata: { name: "s" }, spec: { type: "NodePort", clusterIPs, ipFamilies, ports, ...spec } } as unknown as Service;
  };
  const begin = async (next: Service, current?: Service, dryRun = false) => {
    const ctx = { dryRun } as StrategyContext;
    const begun = await (current ? strategy.beginUpdate?.(next, current, ctx) : strategy.beginCreate?.(next, ctx));
    assert.ok(begun);
    return begun;
  };
  /** Whether each address and port can be allocated to another service, which is deleted at once. */
  const free = async (clusterIPs: string[], nodePorts: number[]) => {
    const canHave = (service: Service) =>
      begin(service).then(
        async ({ revert }) => {
          await revert();
          return true;
        },
        () => false,
      );
    const found: Record<string, boolean> = {};
    for (const ip of clusterIPs) found[ip] = await canHave(aService([ip], [], { type: "ClusterIP" }));
    for (const port of nodePorts) found[port] = await canHave(aService(["None"], [port]));
    return found;
  };
  const remove = (last: Service) => strategy.afterDelete?.(last, { dryRun: false } as StrategyContext);
  return { aService, begin, free, remove, deleted, etcd };
}

const both = ["10.0.0.9", "fd00::9"];

test("an update gives back what it leaves out, when it is written, and keeps the rest", async () => {
  const { aService, begin, free } = services();
  const current = aService(both, [30_001, 30_000, 30_009]);
  await begin(current);
  const update = await begin(aService(["10.0.0.9"], [30_001]), current);
  const all = { "10.0.0.9": false, "fd00::9": false, 30001: false, 30000: false, 30009: false };
  assert.deepEqual(await free(both, [30_001, 30_000, 30_009]), all, "before the write");
  await update.commit();
  assert.deepEqual(await free(both, [30_001, 30_000, 30_009]), { ...all, "fd00::9": true, 30000: true, 30009: true });
});

test("the dry run of an update gives nothing back", async () => {
  const { aService, begin, free } = services();
  const current = aService(both, [30_001, 30_002]);
  await begin(current);
  const update = await begin(aService(["10.0.0.9"], [30_001]), current, true);
  await update.commit();
  assert.deepEqual(await free(both, [30_001, 30_002]), { "10.0.0.9": false, "fd00::9": false, 30001: false, 30002: false });
});

test("a service that is not written gives back addresses and ports; so does one whose second port is taken", async () => {
  const { aService, begin, free } = services();
  const unwritten = await begin(aService(both, [30_001, 30_002]));
  await unwritten.revert();
  const all = { "10.0.0.9": true, "fd00::9": true, 30001: true, 30002: true };
  assert.deepEqual(await free(both, [30_001, 30_002]), all);
  await begin(aService(["None"], [30_002]));
  await assert.rejects(begin(aService(both, [30_001, 30_002])), /provided port is already allocated/);
  assert.deepEqual(await free(both, [30_001, 30_002]), { ...all, 30002: false });
});

test("a deleted service gives back what it had, also when its endpoints cannot be deleted", async () => {
  const { aService, begin, free, remove, deleted } = services();
  const service = aService(both, [30_000, 30_009]);
  service.metadata.namespace = "web";
  await begin(service);
  await remove(service);
  assert.deepEqual(deleted, ["web/s"]);
  assert.deepEqual(await free(both, [30_000, 30_009]), { "10.0.0.9": true, "fd00::9": true, 30000: true, 30009: true });
});

test("a load balancer that becomes local gets a port for health checks, and gives it back when it is so no more", async () => {
  const { aService, begin, free } = services();
  const current = aService(["10.0.0.9"], [30_001], { type: "LoadBalancer" });
  await begin(current);
  const local = aService(["10.0.0.9"], [30_001], { type: "LoadBalancer", externalTrafficPolicy: "Local" });
  await (await begin(local, current)).commit();
  const { healthCheckNodePort } = local.spec;
  assert.ok(healthCheckNodePort && healthCheckNodePort !== 30_001);
  assert.deepEqual(await free([], [healthCheckNodePort]), { [healthCheckNodePort]: false });
  await (await begin(structuredClone(current), local)).commit();
  assert.deepEqual(await free([], [30_001, healthCheckNodePort]), { 30001: false, [healthCheckNodePort]: true });
});

test("a local load balancer without node ports gets a port for health checks alone, and keeps it", async () => {
  const { aService, begin, free } = services();
  const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local", allocateLoadBalancerNodePorts: false };
  const local = aService(["10.0.0.9"], [0], spec);
  await (await begin(local)).commit();
  const { healthCheckNodePort = 0, ports: given } = local.spec;
  assert.deepEqual([given?.[0]?.nodePort, healthCheckNodePort >= 30_000], [0, true]);
  await (await begin(structuredClone(local), local)).commit();
  assert.deepEqual(await free([], [healthCheckNodePort]), { [healthCheckNodePort]: false });
});

test("of an update no two ports share a node port that it does not say, as upstream", async () => {
  const { aService, begin } = services();
  const next = aService(["10.0.0.9"], [30_004, 0, 0]);
  for (const [i, port] of next.spec.ports!.entries()) Object.assign(port, { port: 53, protocol: ["TCP", "UDP", "SCTP"][i] });
  await begin(next, aService(["10.0.0.9"], [30_004]));
  assert.equal(new Set(nodePortsOf(next)).size, 3);
  const created = structuredClone(next);
  for (const port of created.spec.ports!) delete port.nodePort;
  await begin(Object.assign(created, { spec: { ...created.spec, clusterIPs: ["None"] } }));
  assert.equal(nodePortsOf(created).length, 1);
});

test("a load balancer without node ports has those that it requests, and gives them back", async () => {
  const { aService, begin, free, remove } = services();
  const spec = { type: "LoadBalancer", allocateLoadBalancerNodePorts: false };
  const service = aService(["10.0.0.9"], [0, 30_004], spec);
  await (await begin(service)).commit();
  assert.deepEqual([nodePortsOf(service), await free([], [30_004])], [[30_004], { 30004: false }]);
  await assert.rejects(begin(aService([], [30_004], spec)), {
    message: 'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 30004: provided port is already allocated',
  });
  await remove(service);
  assert.deepEqual(await free([], [30_004]), { 30004: true });
});

test("ports of a former range are given up without a write to the range", async () => {
  const { aService, begin, remove, etcd } = services();
  const current = aService(["None"], [29_999, 30_010]);
  await (await begin(aService(["None"], [], { type: "ClusterIP" }), current)).commit();
  await remove(current);
  assert.equal(etcd.stored.size, 0);
});

test("a range of either family is the primary one where it comes first, and each has the metrics", async () => {
  const etcd = new RangeStorage();
  const store = () => ({ storage: etcd.storage });
  const clusterIpMetrics: ClusterIpMetrics = { used() {}, allocated() {}, failed() {} };
  const { allocators } = newServiceAllocators({
    services: () => ({ store }) as unknown as RegistryServices,
    serviceClusterIpRange: ["fd00::/124", "10.0.0.0/28"],
    nodePortRange: { from: 30_000, to: 30_009 },
    clusterIpMetrics,
  });
  assert.deepEqual([...allocators.keys()], ["IPv6", "IPv4"]);
  for (const one of allocators.values()) {
    assert.equal(one.metrics, clusterIpMetrics);
    await one.range.take(0, false);
  }
  const stored = ["serviceips", "secondaryserviceips"].map((key) => (etcd.stored.get(key) as { range?: string }).range);
  assert.deepEqual(stored, ["fd00::/124", "10.0.0.0/28"]);
});

test("allocated and free addresses, allocations and failures are counted by network, of dry runs only requests from elsewhere", async () => {
  const etcd = new RangeStorage();
  const counted: unknown[][] = [];
  const metrics: ClusterIpMetrics = {
    used: (...count) => counted.push(["used", ...count]),
    allocated: (...count) => counted.push(["allocated", ...count]),
    failed: (...count) => counted.push(["failed", ...count]),
  };
  const allocator = newClusterIpAllocator("10.0.0.5/29", () => etcd.storage, false, metrics);
  const allocate = (clusterIP: string, dryRun = false) => {
    const service = { metadata: { name: "s" }, spec: { clusterIPs: [clusterIP], ipFamilies: ["IPv4"] } } as unknown as Service;
    return allocateClusterIps(service, new Map([["IPv4", allocator]]), [], dryRun);
  };
  const countedBy = async (step: Promise<unknown>) => {
    await step.catch(() => undefined);
    return counted.splice(0);
  };
  const network = "10.0.0.0/29";
  const used = (count: number) => ["used", network, count, 6 - count];
  assert.deepEqual(await countedBy(allocate("10.0.0.1")), [used(1), ["allocated", network]]);
  assert.deepEqual(await countedBy(allocate("")), [used(2), ["allocated", network]]);
  assert.deepEqual(await countedBy(allocate("10.0.0.1")), [["failed", network]]);
  assert.deepEqual(await countedBy(allocate("10.1.0.1")), [["failed", network]]);
  assert.deepEqual(await countedBy(allocator.range.release([0])), [used(1)]);
  assert.deepEqual(await countedBy(allocate("10.0.0.1", true)), []);
  assert.deepEqual(await countedBy(allocate("", true)), []);
  await allocate("10.0.0.1");
  counted.splice(0);
  assert.deepEqual(await countedBy(allocate("10.0.0.1", true)), []);
  assert.deepEqual(await countedBy(allocate("10.1.0.1", true)), [["failed", network]]);
});

test("a range has neither its network's address nor, in IPv4, the broadcast address, and of IPv6 the first 65,535", () => {
  const storage = () => new RangeStorage().storage;
  const v4 = newClusterIpAllocator("10.0.0.0/30", storage);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((last) => v4.contains(`10.0.0.${last}`)),
    [false, true, true, false, false],
  );
  const v6 = newClusterIpAllocator("fd00::/64", storage);
  assert.deepEqual(
    ["", "1", "ffff", "1:0"].map((last) => v6.contains(`fd00::${last}`)),
    [false, true, true, false],
  );
  const small = newClusterIpAllocator("fd00::/126", storage);
  assert.deepEqual(
    ["", "1", "3", "4"].map((last) => small.contains(`fd00::${last}`)),
    [false, true, true, false],
  );
});
