import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dropForeignFields, keepAllocated, normalizeClusterIps } from "./fields.ts";

const aService = (ports: Partial<ServicePort>[], spec: object = {}): Service =>
  ({
    metadata: { name: "s" },
    spec: { type: "NodePort", ports: ports.map((port) => ({ protocol: "TCP", ...port })), ...spec },
  }) as never;

const [http, https] = [
  { name: "http", port: 80 },
  { name: "https", port: 443 },
];
for (const { name, old, next, want } of [
  {
    name: "each port keeps its own",
    old: [
      { ...http, nodePort: 30080 },
      { ...https, nodePort: 30443 },
    ],
    next: [https, http],
    want: [30443, 30080],
  },
  {
    name: "a port of another number and protocol keeps it by its name",
    old: [{ ...http, nodePort: 30080 }],
    next: [{ name: "http", port: 53, protocol: "UDP" as const }],
    want: [30080],
  },
  { name: "the port without a name keeps it", old: [{ port: 80, nodePort: 30080 }], next: [{ port: 8080 }], want: [30080] },
  { name: "a port of another name gets none", old: [{ ...http, nodePort: 30080 }], next: [{ port: 80 }], want: [undefined] },
  { name: "a new port gets none", old: [{ ...http, nodePort: 30080 }], next: [http, https], want: [30080, undefined] },
  { name: "a requested one stays", old: [{ ...http, nodePort: 30080 }], next: [{ ...http, nodePort: 30001 }], want: [30001] },
  {
    name: "one that another port has taken over is not given twice",
    old: [{ ...http, nodePort: 30080 }],
    next: [http, { ...https, nodePort: 30080 }],
    want: [undefined, 30080],
  },
  {
    name: "of two protocols that share one each keeps it",
    old: [
      { name: "dns", port: 53, nodePort: 30053 },
      { name: "dns-udp", port: 53, protocol: "UDP" as const, nodePort: 30053 },
    ],
    next: [
      { name: "dns", port: 53 },
      { name: "dns-udp", port: 53, protocol: "UDP" as const },
    ],
    want: [30053, 30053],
  },
]) {
  test(`an update without node ports: ${name}`, () => {
    const updated = aService(next);
    keepAllocated(updated, aService(old));
    assert.deepEqual(
      updated.spec.ports?.map(({ nodePort }) => nodePort),
      want,
    );
  });
}

test("a port of a type without node ports does not keep the node port", () => {
  const old = aService([{ port: 53, nodePort: 30053 }]);
  const internal = aService([{ port: 53 }], { type: "ClusterIP" });
  keepAllocated(internal, old);
  assert.equal(internal.spec.ports?.[0]?.nodePort, undefined);
});

test("addresses and the health check port are kept where they are left out, and only where the type has them", () => {
  const balanced = { type: "LoadBalancer", externalTrafficPolicy: "Local" };
  const addresses = { clusterIP: "10.0.0.7", clusterIPs: ["10.0.0.7", "fd00::7"] };
  const old = aService([], { ...balanced, ...addresses, healthCheckNodePort: 31000 });
  const kept = aService([], balanced);
  keepAllocated(kept, old);
  assert.deepEqual(kept.spec, { ports: [], ...balanced, ...addresses, healthCheckNodePort: 31000 });
  assert.notEqual(kept.spec.clusterIPs, old.spec.clusterIPs, "a copy");
  const other = aService([], { clusterIP: "10.0.0.8" });
  keepAllocated(other, old);
  assert.deepEqual(other.spec, { type: "NodePort", ports: [], clusterIP: "10.0.0.8" });
  const external = aService([], { type: "ExternalName" });
  keepAllocated(external, old);
  assert.deepEqual(external.spec, { type: "ExternalName", ports: [] });
});

const balancer = { type: "LoadBalancer", loadBalancerClass: "example.com/a", allocateLoadBalancerNodePorts: true };
for (const { name, old, next, want } of [
  {
    name: "the node ports that it held, also where a port has none",
    old: aService([{ port: 80, nodePort: 30080 }]),
    next: aService([{ port: 80, nodePort: 30080 }, { port: 81 }], { type: "ClusterIP" }),
    want: { type: "ClusterIP", ports: [{ port: 80 }, { port: 81 }] },
  },
  {
    name: "none of its node ports where one is requested anew, which is invalid",
    old: aService([{ port: 80, nodePort: 30080 }]),
    next: aService(
      [
        { port: 80, nodePort: 30080 },
        { port: 81, nodePort: 30081 },
      ],
      { type: "ClusterIP" },
    ),
    want: {
      type: "ClusterIP",
      ports: [
        { port: 80, nodePort: 30080 },
        { port: 81, nodePort: 30081 },
      ],
    },
  },
  {
    name: "class and node ports of a load balancer",
    old: aService([], balancer),
    next: aService([], { ...balancer, type: "NodePort" }),
    want: { type: "NodePort", ports: [] },
  },
  {
    name: "no class of a load balancer that the update changes, which is invalid",
    old: aService([], balancer),
    next: aService([], { ...balancer, type: "NodePort", loadBalancerClass: "example.com/b" }),
    want: { type: "NodePort", ports: [], loadBalancerClass: "example.com/b" },
  },
  {
    name: "no word on node ports of a load balancer that the update changes, which is invalid",
    old: aService([], balancer),
    next: aService([], { ...balancer, type: "NodePort", allocateLoadBalancerNodePorts: false }),
    want: { type: "NodePort", ports: [], allocateLoadBalancerNodePorts: false },
  },
  {
    name: "addresses and families that an external name has not",
    old: aService([], { type: "ClusterIP", clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"], ipFamilies: ["IPv4"] }),
    next: aService([], { type: "ExternalName", clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"], ipFamilies: ["IPv4"] }),
    want: { type: "ExternalName", ports: [] },
  },
  {
    name: "the policy of families that an external name has not, and the policy of traffic",
    old: aService([], { externalTrafficPolicy: "Local", ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" }),
    next: aService([], {
      ...{ type: "ExternalName", externalTrafficPolicy: "Local" },
      ...{ ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" },
    }),
    want: { type: "ExternalName", ports: [] },
  },
  {
    name: "no families and policies that the update changes, which is invalid",
    old: aService([], { externalTrafficPolicy: "Local", ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" }),
    next: aService([], {
      ...{ type: "ExternalName", externalTrafficPolicy: "Cluster" },
      ...{ ipFamilies: ["IPv6"], ipFamilyPolicy: "PreferDualStack" },
    }),
    want: {
      ...{ type: "ExternalName", ports: [], externalTrafficPolicy: "Cluster" },
      ...{ ipFamilies: ["IPv6"], ipFamilyPolicy: "PreferDualStack" },
    },
  },
  {
    name: "no addresses that the update changes",
    old: aService([], { type: "ClusterIP", clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"] }),
    next: aService([], { type: "ExternalName", clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1", "fd00::1"] }),
    want: { type: "ExternalName", ports: [], clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1", "fd00::1"] },
  },
]) {
  test(`a service of another type drops ${name}`, () => {
    dropForeignFields(next, old);
    const ports = want.ports.map((port) => ({ protocol: "TCP", ...port }));
    assert.deepEqual(next.spec, { ...want, ports });
  });
}

for (const { name, old, next, want } of [
  { name: "the address of a new service", old: undefined, next: { clusterIP: "10.0.0.1" }, want: ["10.0.0.1"] },
  {
    name: "the address of a new service with an empty list",
    old: undefined,
    next: { clusterIP: "10.0.0.1", clusterIPs: [] },
    want: ["10.0.0.1"],
  },
  {
    name: "what a new service says itself",
    old: undefined,
    next: { clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1", "fd00::1"] },
    want: ["10.0.0.1", "fd00::1"],
  },
  {
    name: "nothing when the address is taken away",
    old: { clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"] },
    next: { clusterIPs: ["10.0.0.1"] },
    want: undefined,
  },
  {
    name: "another address alone",
    old: { clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1", "fd00::1"] },
    next: { clusterIP: "10.0.0.2", clusterIPs: ["10.0.0.1", "fd00::1"] },
    want: ["10.0.0.2"],
  },
  {
    name: "the list that changes with the address",
    old: { clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"] },
    next: { clusterIP: "10.0.0.2", clusterIPs: ["10.0.0.3"] },
    want: ["10.0.0.3"],
  },
]) {
  test(`the list of addresses becomes ${name}`, () => {
    const service = aService([], next);
    normalizeClusterIps(service, old && aService([], old));
    assert.deepEqual(service.spec.clusterIPs, want);
  });
}

for (const { name, old, next, want } of [
  { name: "an address that is left out leaves the list", old: ["10.0.0.1"], next: { clusterIPs: ["10.0.0.1"] }, want: undefined },
  {
    name: "a list that changes as well stays, for validation",
    old: ["10.0.0.1"],
    next: { clusterIPs: ["10.0.0.2"] },
    want: ["10.0.0.2"],
  },
  {
    name: "another address replaces the list",
    old: ["10.0.0.1", "fd00::1"],
    next: { clusterIP: "10.0.0.2", clusterIPs: ["10.0.0.1", "fd00::1"] },
    want: ["10.0.0.2"],
  },
]) {
  test(`cluster IPs of an update: ${name}`, () => {
    const updated = aService([], next);
    normalizeClusterIps(updated, aService([], { clusterIP: old[0], clusterIPs: old }));
    assert.deepEqual(updated.spec.clusterIPs, want);
  });
}
