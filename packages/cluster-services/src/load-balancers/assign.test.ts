import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Service, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aService } from "../testing/objects.ts";
import { type Assignment, assignAddresses, type Cluster } from "./assign.ts";
import { loadBalancerClass, sharedAddressAnnotation } from "./names.ts";
import { Pool } from "./pool.ts";

interface Extra {
  readonly status?: readonly string[];
  readonly age?: string;
  readonly share?: string;
  readonly namespace?: string;
}

/** A Service of type LoadBalancer with TCP port 80. */
function balanced(
  name: string,
  spec: Partial<ServiceSpec> = {},
  { status = [], age = "2024", share, namespace = "default" }: Extra = {},
): Service {
  const service = aService(name, { type: "LoadBalancer", ...spec }, status);
  service.metadata = {
    ...service.metadata,
    namespace,
    creationTimestamp: `${age}-01-01T00:00:00Z`,
    ...(share !== undefined && { annotations: { [sharedAddressAnnotation]: share } }),
  };
  return service;
}

function aNode(name: string, addresses: Record<string, string>, { ready = "True", labels = {} } = {}): Node {
  return {
    metadata: { name, labels },
    spec: {},
    status: {
      conditions: [{ type: "Ready", status: ready as "True" }],
      addresses: Object.entries(addresses).map(([address, type]) => ({ type, address })),
    },
  };
}

const nodes = [aNode("n2", { "10.0.0.2": "InternalIP" }), aNode("n1", { "10.0.0.1": "InternalIP", n1: "Hostname" })];

function assign(services: readonly Service[], extra: Partial<Cluster> & { pool?: Pool } = {}): Record<string, string> {
  const cluster = {
    nodes,
    services,
    pool: new Pool([]),
    nodesWithEndpoints: () => new Set<string>(),
    reservedPorts: new Set<number>(),
    ...extra,
  };
  const textOf = ({ addresses, problem }: Assignment): string =>
    [...addresses, ...(problem === undefined ? [] : [`${problem.reason}: ${problem.message}`])].join(" ");
  return Object.fromEntries(assignAddresses(cluster).map((one) => [one.service.metadata.name, textOf(one)]));
}
const pool = new Pool(["192.0.2.1-192.0.2.3"]);

test("from the pool the older Service gets the lower address, and each keeps its own", () => {
  const [old, young] = [balanced("old", {}, { age: "2023" }), balanced("young")];
  assert.deepEqual(assign([young, old], { pool }), { old: "192.0.2.1", young: "192.0.2.2" });
  const holder = balanced("young", {}, { status: ["192.0.2.1"] });
  assert.deepEqual(assign([old, holder], { pool }), { old: "192.0.2.2", young: "192.0.2.1" });
});

test("an address that two statuses have stays with the older Service", () => {
  const twice = ["a", "b"].map((name) => balanced(name, {}, { status: ["192.0.2.1"], age: name === "b" ? "2023" : "2024" }));
  assert.deepEqual(assign(twice, { pool }), { a: "192.0.2.2", b: "192.0.2.1" });
});

test("an address outside of the pool, of an earlier one, is replaced", () => {
  assert.deepEqual(assign([balanced("a", {}, { status: ["198.51.100.1"] })], { pool }), { a: "192.0.2.1" });
});

test("loadBalancerIP is honoured, also against an older Service that has named none", () => {
  const asking = balanced("asking", { loadBalancerIP: "192.0.2.1" });
  assert.deepEqual(assign([balanced("old", {}, { age: "2020" }), asking], { pool }), { asking: "192.0.2.1", old: "192.0.2.2" });
  const moved = balanced("moved", { loadBalancerIP: "192.0.2.3" }, { status: ["192.0.2.1"] });
  assert.deepEqual(assign([moved], { pool }), { moved: "192.0.2.3" });
});

test("one that asks for what it cannot have gets nothing, and is given the reason", () => {
  const holder = balanced("holder", {}, { status: ["192.0.2.1"] });
  const result = assign(
    [holder, balanced("thief", { loadBalancerIP: "192.0.2.1" }), balanced("far", { loadBalancerIP: "198.51.100.1" })],
    { pool },
  );
  assert.equal(result["holder"], "192.0.2.1");
  assert.match(
    result["thief"] as string,
    /^AddressInUse: spec\.loadBalancerIP 192\.0\.2\.1 belongs to the Service default\/holder; /,
  );
  assert.equal(result["far"], "AddressNotInPool: spec.loadBalancerIP 198.51.100.1 is not in the pool");
});

test("a Service that asks for a shared address is told which of its Services has the same port", () => {
  const first = balanced("a", { ports: [{ port: 80 }] }, { status: ["192.0.2.1"], share: "x", age: "2020" });
  const second = balanced("b", { ports: [{ port: 443 }] }, { status: ["192.0.2.1"], share: "x", age: "2021" });
  const asking = (ports: ServiceSpec["ports"], share: string): string =>
    assign([first, second, balanced("c", { loadBalancerIP: "192.0.2.1", ports }, { share })], { pool })["c"] ?? "";
  assert.equal(asking([{ port: 81 }], "x"), "192.0.2.1");
  assert.match(asking([{ port: 81 }, { port: 443 }], "x"), /^AddressInUse: .* belongs to the Service default\/b; /);
  assert.match(asking([{ port: 80 }], "x"), /^AddressInUse: .* belongs to the Service default\/a; /);
  assert.match(asking([{ port: 81 }], "y"), /^AddressInUse: .* belongs to the Service default\/a; /);
  assert.equal(asking([{ port: 443, protocol: "UDP" }], "x"), "192.0.2.1", "of another protocol");
});

test("an exhausted pool is reported to the youngest, which gets an address when one is free", () => {
  const all = ["a", "b", "c", "d"].map((name, i) => balanced(name, {}, { age: `${2020 + i}` }));
  assert.equal(assign(all, { pool })["d"], "PoolExhausted: all IPv4 addresses of the pool are taken");
  assert.equal(assign(all.slice(1), { pool })["d"], "192.0.2.3");
});

test("both families come from the pool, where it has them", () => {
  const dual = balanced("dual", { ipFamilies: ["IPv4", "IPv6"] });
  const both = new Pool(["192.0.2.1", "fd00::1-fd00::9"]);
  assert.deepEqual(assign([dual], { pool: both }), { dual: "192.0.2.1 fd00::1" });
  assert.deepEqual(assign([dual], { pool }), { dual: "192.0.2.1 PoolExhausted: the pool has no IPv6 addresses" });
});

const udp = { ports: [{ port: 53, protocol: "UDP" as const }] };
for (const { name, one = {}, other = {}, oneExtra = {}, otherExtra = {}, want } of [
  { name: "the same value share an address", other: udp, want: "192.0.2.1" },
  { name: "a port in common do not", want: "192.0.2.2" },
  {
    name: "a port of two protocols share an address",
    other: { ports: [{ port: 80, protocol: "UDP" as const }] },
    want: "192.0.2.1",
  },
  { name: "another value do not", other: udp, otherExtra: { share: "k2" }, want: "192.0.2.2" },
  { name: "no value do not", other: udp, otherExtra: { share: "" }, oneExtra: { share: "" }, want: "192.0.2.2" },
  { name: "another namespace do not", other: udp, otherExtra: { namespace: "foreign" }, want: "192.0.2.2" },
  { name: "policy Local do not", other: { ...udp, externalTrafficPolicy: "Local" as const }, want: "192.0.2.2" },
  {
    name: "the same value share it when one asks for it",
    other: { ...udp, loadBalancerIP: "192.0.2.3" },
    one: { loadBalancerIP: "192.0.2.3" },
    want: "192.0.2.3",
  },
] as {
  name: string;
  one?: Partial<ServiceSpec>;
  other?: Partial<ServiceSpec>;
  oneExtra?: Extra;
  otherExtra?: Extra;
  want: string;
}[]) {
  test(`Services with ${name}`, () => {
    const first = balanced("first", one, { share: "k", age: "2020", ...oneExtra });
    assert.equal(assign([first, balanced("second", other, { share: "k", ...otherExtra })], { pool })["second"], want);
  });
}

test("Services of other classes and types are left alone", () => {
  const services = [
    balanced("theirs", { loadBalancerClass: "metallb" }),
    balanced("ours", { loadBalancerClass }),
    balanced("port", { type: "NodePort" }),
  ];
  assert.deepEqual(assign(services, { pool }), { ours: "192.0.2.1" });
});

test("without a pool a Service gets the internal addresses of all nodes that are ready", () => {
  const more = [
    ...nodes,
    aNode("n3", { "10.0.0.3": "InternalIP" }, { ready: "Unknown" }),
    aNode("n4", { "10.0.0.4": "InternalIP" }, { labels: { "node.kubernetes.io/exclude-from-external-load-balancers": "" } }),
  ];
  assert.deepEqual(assign([balanced("a")], { nodes: more }), { a: "10.0.0.1 10.0.0.2" });
});

test("without a pool external addresses come first", () => {
  const more = [...nodes, aNode("n3", { "10.0.0.3": "InternalIP", "203.0.113.3": "ExternalIP" })];
  assert.deepEqual(assign([balanced("a")], { nodes: more }), { a: "203.0.113.3" });
});

test("an address that two nodes have is given once", () => {
  const more = [...nodes, aNode("n3", { "10.0.0.1": "InternalIP" })];
  assert.deepEqual(assign([balanced("a")], { nodes: more }), { a: "10.0.0.1 10.0.0.2" });
});

test("with policy Local a Service gets the addresses of nodes with ready endpoints", () => {
  const local = balanced("a", { externalTrafficPolicy: "Local" });
  assert.deepEqual(assign([local], { nodesWithEndpoints: (key) => new Set(key === "default/a" ? ["n2"] : []) }), {
    a: "10.0.0.2",
  });
  assert.deepEqual(assign([local]), { a: "" });
});

test("a port of the nodes' addresses belongs to one Service", () => {
  const [old, young] = [balanced("old", {}, { age: "2023" }), balanced("young")];
  const result = assign([young, old]);
  assert.equal(result["old"], "10.0.0.1 10.0.0.2");
  assert.equal(result["young"], "PortConflict: port 80/TCP of the nodes' addresses belongs to the Service default/old");
  const holder = balanced("young", {}, { status: ["10.0.0.1"] });
  assert.match(assign([old, holder])["old"] as string, /^PortConflict: .* the Service default\/young/, "who has it keeps it");
  const all = "10.0.0.1 10.0.0.2";
  assert.deepEqual(assign([young, balanced("dns", { ports: [{ port: 80, protocol: "UDP" }] })]), { dns: all, young: all });
});

test("ports of the nodes' programs and node ports of others are taken", () => {
  const ssh = balanced("ssh", { ports: [{ port: 22, protocol: "TCP" }] });
  assert.match(
    assign([ssh], { reservedPorts: new Set([22]) })["ssh"] as string,
    /^PortConflict: port 22\/TCP .* the nodes' own programs/,
  );
  const port = balanced("port", { type: "NodePort", ports: [{ port: 1, nodePort: 30080, protocol: "TCP" }] });
  const high = balanced("high", { ports: [{ port: 30080, protocol: "TCP" }] });
  assert.match(assign([port, high])["high"] as string, /^PortConflict: .* the Service default\/port as node port/);
  const udp = balanced("udp", { type: "NodePort", ports: [{ port: 1, nodePort: 30080, protocol: "UDP" }] });
  assert.equal(assign([udp, high])["high"], "10.0.0.1 10.0.0.2", "another protocol");
  const highUdp = balanced("high", { ports: [{ port: 30080, protocol: "UDP" }] });
  assert.match(assign([udp, highUdp])["high"] as string, /^PortConflict: port 30080\/UDP .* the Service default\/udp as node/);
  const own = balanced("own", { ports: [{ port: 30080, nodePort: 30080, protocol: "TCP" }] });
  assert.equal(assign([own])["own"], "10.0.0.1 10.0.0.2");
});

test("without a pool loadBalancerIP names one of the nodes' addresses", () => {
  assert.deepEqual(assign([balanced("a", { loadBalancerIP: "10.0.0.2" })]), { a: "10.0.0.2" });
  assert.match(
    assign([balanced("a", { loadBalancerIP: "10.0.0.9" })])["a"] as string,
    /^AddressNotInPool: .*--load-balancer-pool/,
  );
});

test("a Service shares an address only when it may share it with all that have it", () => {
  const pool = new Pool(["192.0.2.1-192.0.2.2"]);
  const on = (name: string, port: number, age: string) =>
    balanced(name, { ports: [{ port, protocol: "TCP" }] }, { share: "k", age });
  const assigned = assign([on("a", 80, "2020"), on("b", 81, "2021"), on("c", 80, "2022"), on("d", 82, "2023")], { pool });
  assert.deepEqual(assigned, { a: "192.0.2.1", b: "192.0.2.1", c: "192.0.2.2", d: "192.0.2.1" });
});

test("of Services of the same age the first by namespace and name gets the lower address, in whatever order they are seen", () => {
  const all = [balanced("b"), balanced("a"), balanced("z", {}, { namespace: "another" })];
  const want = { z: "192.0.2.1", a: "192.0.2.2", b: "192.0.2.3" };
  assert.deepEqual(assign(all, { pool }), want);
  assert.deepEqual(assign(all.toReversed(), { pool }), want);
});

test("a Service that asks for another address than it has comes after those that have theirs", () => {
  const moving = balanced("moving", { loadBalancerIP: "192.0.2.2" }, { status: ["192.0.2.1"], age: "2020" });
  const holder = balanced("holder", {}, { status: ["192.0.2.2"], age: "2024" });
  const result = assign([moving, holder], { pool });
  assert.equal(result["holder"], "192.0.2.2");
  assert.match(result["moving"] as string, /^AddressInUse: /);
});

test("loadBalancerIP may be written in any form, and what is no address is not in the pool", () => {
  const six = new Pool(["fd00::1-fd00::9"]);
  const service = (loadBalancerIP: string) => balanced("a", { ipFamilies: ["IPv6"], loadBalancerIP });
  assert.deepEqual(assign([service("FD00:0:0::0005")], { pool: six }), { a: "fd00::5" });
  assert.match(assign([service("five")], { pool: six })["a"] as string, /^AddressNotInPool: spec\.loadBalancerIP five is not/);
  const asIpv6 = aNode("n1", { "fd00::1": "InternalIP" });
  assert.deepEqual(assign([service("FD00::0001")], { nodes: [asIpv6] }), { a: "fd00::1" });
});

test("a Service that does not name its families gets addresses of its cluster IP's", () => {
  const both = new Pool(["192.0.2.1", "fd00::1-fd00::9"]);
  assert.deepEqual(assign([balanced("a", { clusterIP: "fd00:96::1" })], { pool: both }), { a: "fd00::1" });
  assert.deepEqual(assign([balanced("a", { clusterIP: "10.96.0.1" })], { pool: both }), { a: "192.0.2.1" });
});

test("a Node that is being deleted is not used", () => {
  const going: Node = { ...aNode("n3", { "10.0.0.3": "InternalIP" }) };
  going.metadata.deletionTimestamp = "2024-01-01T00:00:00Z";
  assert.deepEqual(assign([balanced("a")], { nodes: [...nodes, going] }), { a: "10.0.0.1 10.0.0.2" });
});

test("each port of a Service counts, of each protocol", () => {
  const on = (name: string, age: string, ...ports: [number, "TCP" | "UDP" | "SCTP"][]) =>
    balanced(name, { ports: ports.map(([port, protocol]) => ({ name: `p${port}`, port, protocol })) }, { age });
  const [first, second] = [on("first", "2020", [80, "TCP"], [443, "TCP"]), on("second", "2021", [81, "TCP"], [443, "TCP"])];
  assert.match(assign([first, second])["second"] as string, /^PortConflict: port 443\/TCP .* the Service default\/first/);
  for (const protocol of ["TCP", "UDP", "SCTP"] as const)
    assert.match(
      assign([on("a", "2020", [80, protocol], [53, protocol])], { reservedPorts: new Set([53]) })["a"] as string,
      new RegExp(`^PortConflict: port 53/${protocol} `),
    );
});
