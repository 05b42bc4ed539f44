import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { aNode, settingsIn } from "../testing/machines.ts";
import type { IpFamily } from "./networks.ts";
import { internalAddresses, isProblem, type Link, macOf, type Plan, planNetwork } from "./plan.ts";
import type { PodNetworkSettings } from "./settings.ts";

const eth0: Link = {
  ...{ name: "eth0", mtu: 9000, address: "02:00:00:00:00:01", isUp: true },
  addresses: [
    { ip: "192.168.77.1", bits: 24 },
    { ip: "fd77::1", bits: 64 },
    { ip: "fe80::1", bits: 64 },
  ],
};
const me = aNode("m1", ["10.77.1.0/24"], ["192.168.77.1"]);
const near = aNode("m2", ["10.77.2.0/24"], ["192.168.77.2"]);
const far = aNode("m3", ["10.77.3.0/24"], ["192.168.78.3"]);

const plan = (
  nodes: Node[],
  settings: Partial<PodNetworkSettings> = {},
  { links = [eth0], families = [4, 6] as IpFamily[] } = {},
): Plan => {
  const result = atOnce(
    planNetwork({ nodeName: "m1", nodes, links, families, settings: { ...settingsIn("/net.d"), ...settings } }),
  );
  assert.ok(!isProblem(result), isProblem(result) ? result.message : "");
  return result;
};
const problemOf = (nodes: Node[], links = [eth0]): string => {
  const result = atOnce(planNetwork({ nodeName: "m1", nodes, links, families: [4, 6], settings: settingsIn("/net.d") }));
  return isProblem(result) ? `${result.reason}: ${result.message}` : "none";
};
const routesOf = ({ routes }: Plan): string[] =>
  routes.map(({ destination, gateway, link }) => `${destination} ${gateway} ${link}`);

test("a node on the same segment is the gateway to its pods, another is reached in VXLAN", () => {
  const result = plan([far, near, me]);
  assert.deepEqual(routesOf(result), ["10.77.2.0/24 192.168.77.2 eth0", "10.77.3.0/24 10.77.3.0 cox0-vx"]);
  assert.deepEqual(result.vxlan?.peers, [{ mac: macOf("m3"), gateways: ["10.77.3.0"], underlay: "192.168.78.3" }]);
  assert.deepEqual(result.vxlan?.addresses, ["10.77.1.0"]);
  assert.deepEqual(result.problems, []);
});

test("without a node behind another segment there is no VXLAN interface", () => {
  assert.equal(plan([me, near]).vxlan, undefined);
});

for (const { name, nodes = [me, near, far], settings, want, problems = [] } of [
  { name: "vxlan", settings: { mode: "vxlan" }, want: ["10.77.2.0/24 10.77.2.0 cox0-vx", "10.77.3.0/24 10.77.3.0 cox0-vx"] },
  {
    name: "host-gateway, which cannot reach every node",
    settings: { mode: "host-gateway" },
    want: ["10.77.2.0/24 192.168.77.2 eth0"],
    problems: ["NodeNotOnSegment"],
  },
  {
    name: "auto, with pod ranges of both families over addresses of one",
    nodes: [
      aNode("m1", ["10.77.1.0/24", "fd00:1::/64"], ["192.168.77.1"]),
      aNode("m2", ["10.77.2.0/24", "fd00:2::/64"], ["192.168.77.2"]),
    ],
    settings: {},
    want: ["10.77.2.0/24 192.168.77.2 eth0", "fd00:2::/64 fd00:2:: cox0-vx"],
  },
  {
    name: "auto, with a node that has no address of this one's family",
    nodes: [me, aNode("m2", ["10.77.2.0/24"], ["fd99::2"])],
    settings: {},
    want: [],
    problems: ["NoCommonFamily"],
  },
] as { name: string; nodes?: Node[]; settings: Partial<PodNetworkSettings>; want: string[]; problems?: string[] }[]) {
  test(`routes by mode ${name}`, () => {
    const result = plan(nodes, settings);
    assert.deepEqual(routesOf(result), want);
    assert.deepEqual(
      result.problems.map(({ reason }) => reason),
      problems,
    );
  });
}

test("the MTU leaves room for VXLAN, before there is any, unless it never will be used or one is given", () => {
  assert.equal(plan([me]).mtu, 8950);
  assert.equal(plan([me], { mode: "host-gateway" }).mtu, 9000);
  assert.equal(plan([me], { mtu: 1400 }).mtu, 1400);
  assert.equal(plan([aNode("m1", ["fd00:1::/64"], ["fd77::1"])]).mtu, 8930);
});

test("of two nodes with the same pod range the older one gets the route, and both nodes' names are reported", () => {
  const old = aNode("z", ["10.77.2.0/23"], ["192.168.77.9"], "2023-01-01T00:00:00Z");
  const result = plan([me, near, old]);
  assert.deepEqual(routesOf(result), ["10.77.2.0/23 192.168.77.9 eth0"]);
  assert.deepEqual(result.problems, [
    { reason: "PodCIDRConflict", message: "the pod range 10.77.2.0/24 of node m2 overlaps 10.77.2.0/23 of node z" },
  ]);
});

test("no route leads to this node's own pod range, nor to a range with the node's own address in it", () => {
  const thief = aNode("m2", ["10.77.0.0/16"], ["192.168.77.2"], "2023-01-01T00:00:00Z");
  const strange = aNode("m3", ["192.168.77.0/25"], ["192.168.77.3"]);
  const result = plan([me, thief, strange]);
  assert.deepEqual(routesOf(result), []);
  assert.deepEqual(
    result.problems.map(({ message }) => message),
    [
      "the pod range 10.77.0.0/16 of node m2 overlaps 10.77.1.0/24 of node m1",
      "the pod range 192.168.77.0/25 of node m3 contains the node's own address",
    ],
  );
});

test("a node without an address yet, and one without a pod range, have no route and are no problem", () => {
  const result = plan([me, aNode("m2", ["10.77.2.0/24", "fd77:2::/64"], []), aNode("m3", [], ["192.168.77.3"])]);
  assert.deepEqual(routesOf(result), []);
  assert.deepEqual(
    result.all.map(({ text }) => text),
    ["10.77.1.0/24", "10.77.2.0/24", "fd77:2::/64"],
    "its pods' addresses are the network's",
  );
  assert.deepEqual(result.problems, []);
});

for (const { name, nodes, links, want } of [
  { name: "has no Node", nodes: [near], want: /^NodeNotFound: there is no Node m1 yet/ },
  { name: "has no pod range", nodes: [aNode("m1", [], ["192.168.77.1"])], want: /^NoPodCIDR: .*--allocate-node-cidrs/ },
  { name: "has one of a family that the kernel lacks", nodes: [aNode("m1", ["bad"], [])], want: /^NoPodCIDR: / },
  {
    name: "has one that another interface uses",
    nodes: [aNode("m1", ["192.168.0.0/16"], ["192.168.77.1"])],
    want: /^PodCIDRConflict: .*overlaps a network of its interface eth0/,
  },
  {
    name: "has one that an earlier network's bridge has",
    nodes: [me],
    links: [eth0, { ...eth0, name: "cni0", addresses: [{ ip: "10.77.1.1", bits: 24 }] }],
    want: /interface cni0/,
  },
]) {
  test(`nothing is planned for a node that ${name}`, () => assert.match(problemOf(nodes, links), want));
}

test("an address of its own, without a network, is no conflict, and its neighbours are on no segment", () => {
  const single: Link = {
    ...eth0,
    name: "lo2",
    addresses: [
      { ip: "10.77.1.7", bits: 32 },
      { ip: "192.168.78.3", bits: 32 },
    ],
  };
  assert.equal(problemOf([me], [eth0, single]), "none");
  assert.deepEqual(routesOf(plan([me, far], {}, { links: [eth0, single] })), ["10.77.3.0/24 10.77.3.0 cox0-vx"]);
});

test("the list of a node's pod ranges counts, and the single one without it", () => {
  const of = (spec: object): Node => ({ ...me, spec });
  const own = (spec: object) => plan([of(spec)]).own.map(({ text }) => text);
  assert.deepEqual(own({ podCIDR: "10.77.9.0/24", podCIDRs: ["10.77.1.0/24", "fd00:1::/64"] }), ["10.77.1.0/24", "fd00:1::/64"]);
  assert.deepEqual(own({ podCIDR: "10.77.9.0/24", podCIDRs: [] }), ["10.77.9.0/24"]);
  assert.deepEqual(own({ podCIDR: "10.77.9.0/24" }), ["10.77.9.0/24"]);
});

test("this network's own bridge is no conflict", () => {
  const bridge: Link = { ...eth0, name: "cox0", addresses: [{ ip: "10.77.1.1", bits: 24 }] };
  assert.deepEqual(routesOf(plan([me, near], {}, { links: [eth0, bridge] })), ["10.77.2.0/24 192.168.77.2 eth0"]);
});

test("IPv6 ranges are left out where the kernel has none", () => {
  const dual = aNode("m1", ["10.77.1.0/24", "fd00:1::/64"], ["192.168.77.1"]);
  assert.deepEqual(
    plan([dual], {}, { families: [4] }).own.map(({ text }) => text),
    ["10.77.1.0/24"],
  );
});

test("a MAC address follows from the node's name, and is unicast and locally administered", () => {
  assert.equal(macOf("m1"), macOf("m1"));
  assert.notEqual(macOf("m1"), macOf("m2"));
  assert.match(macOf("m1"), /^02(:[0-9a-f]{2}){5}$/);
});

test("of two nodes of the same age the first by name gets the route", () => {
  const [b, a] = [aNode("b", ["10.77.2.0/24"], ["192.168.77.3"]), aNode("a", ["10.77.2.0/24"], ["192.168.77.2"])];
  for (const nodes of [
    [me, b, a],
    [me, a, b],
  ])
    assert.deepEqual(routesOf(plan(nodes)), ["10.77.2.0/24 192.168.77.2 eth0"]);
});

test("a node has one address of each family, its first", () => {
  const node = aNode("m1", [], ["192.168.77.1", "10.0.0.1", "fd77::1", "fd78::1"]);
  node.status?.addresses?.push({ type: "ExternalIP", address: "203.0.113.1" }, { type: "InternalIP", address: "m1.example" });
  assert.deepEqual(internalAddresses(node), ["192.168.77.1", "fd77::1"]);
});

test("a range that contains the node's address of the second family has no route", () => {
  const strange = aNode("m2", ["fd99::/64"], ["192.168.77.2", "fd99::2"]);
  const { problems, routes } = plan([me, strange]);
  assert.deepEqual([problems.map(({ reason }) => reason), routes], [["PodCIDRConflict"], []]);
});

test("without an interface of the node's address there is no tunnel, and no route into it", () => {
  const lost = aNode("m1", ["10.77.1.0/24"], ["192.168.77.99"]);
  const result = plan([lost, near, far]);
  assert.deepEqual([routesOf(result), result.vxlan], [["10.77.2.0/24 192.168.77.2 eth0"], undefined]);
  assert.deepEqual(
    result.problems.map(({ reason, message }) => `${reason}: ${message}`),
    ["NodeAddressNotFound: no interface of this machine has the address 192.168.77.99 of the Node m1"],
  );
  assert.equal(result.mtu, 1450, "of the usual MTU");
});

test("the second of a node's pod ranges may be in no network of an interface either; loopback and own tunnel are none", () => {
  const dual = aNode("m1", ["10.77.1.0/24", "fd77::/48"], ["192.168.77.1"]);
  assert.match(problemOf([dual]), /^PodCIDRConflict: the pod range fd77::\/48 .*interface eth0$/);
  const lo: Link = { ...eth0, name: "lo", addresses: [{ ip: "127.0.0.1", bits: 8 }] };
  const vx: Link = { ...eth0, name: "cox0-vx", addresses: [{ ip: "10.77.1.0", bits: 24 }] };
  assert.equal(problemOf([me], [eth0, vx]), "none");
  const onLoopback = plan([me, aNode("m2", ["10.77.2.0/24"], ["127.0.0.2"])], {}, { links: [lo, eth0] });
  assert.deepEqual(routesOf(onLoopback), ["10.77.2.0/24 10.77.2.0 cox0-vx"], "127.0.0.2 is no neighbour");
  const six = aNode("m2", ["fd00:2::/64"], ["192.168.77.2", "fe80::2"]);
  assert.deepEqual(routesOf(plan([me, six])), ["fd00:2::/64 fd00:2:: cox0-vx"], "every interface has fe80::/64");
});
