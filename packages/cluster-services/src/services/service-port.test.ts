import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { destinationsOf, servicePorts } from "./service-port.ts";

const node = { name: "n1", zone: "z1" };
const notReady = { conditions: { ready: false, serving: false, terminating: false } };
const servingOnly = { conditions: { ready: false, serving: true, terminating: false } };
const terminating = { conditions: { ready: false, serving: true, terminating: true } };
const hinted = (zone: string): Partial<Endpoint> => ({ hints: { forZones: [{ name: zone }] } });

for (const { name, endpoints, want, local = [], auto = false } of [
  {
    name: "ready ones of all nodes",
    endpoints: [anEndpoint("10.0.0.2", "n2"), anEndpoint("10.0.0.1", "n1")],
    want: [1, 2],
    local: [1],
  },
  { name: "one whose readiness is not said", endpoints: [anEndpoint("10.0.0.1", "n2", { conditions: {} })], want: [1] },
  { name: "none that is not ready", endpoints: [anEndpoint("10.0.0.1", "n2", notReady)], want: [] },
  {
    name: "none that terminates while another is ready",
    endpoints: [anEndpoint("10.0.0.1", "n1", terminating), anEndpoint("10.0.0.2", "n2")],
    want: [2],
    local: [1],
  },
  {
    name: "terminating ones when there is no other",
    endpoints: [anEndpoint("10.0.0.1", "n1", terminating)],
    want: [1],
    local: [1],
  },
  {
    name: "none that terminates and does not serve",
    endpoints: [
      anEndpoint("10.0.0.1", "n1", { conditions: { ready: false, terminating: true } }),
      anEndpoint("10.0.0.2", "n1", { conditions: { ready: false, serving: false, terminating: true } }),
    ],
    want: [],
  },
  {
    name: "those of the zone, with hints",
    endpoints: [anEndpoint("10.0.0.1", "n1", hinted("z2")), anEndpoint("10.0.0.2", "n2", hinted("z1"))],
    want: [2],
    local: [1],
    auto: true,
  },
  {
    name: "all when one lacks a hint",
    endpoints: [anEndpoint("10.0.0.1", "n2"), anEndpoint("10.0.0.2", "n2", hinted("z1"))],
    want: [1, 2],
    auto: true,
  },
  { name: "all when none is for the zone", endpoints: [anEndpoint("10.0.0.1", "n2", hinted("z2"))], want: [1], auto: true },
  {
    name: "those of the zone, though one without hint is not ready",
    endpoints: [
      anEndpoint("10.0.0.1", "n2", notReady),
      anEndpoint("10.0.0.2", "n2", hinted("z1")),
      anEndpoint("10.0.0.3", "n2", hinted("z2")),
    ],
    want: [2],
    auto: true,
  },
  { name: "none that is not ready and does not terminate", endpoints: [anEndpoint("10.0.0.1", "n1", servingOnly)], want: [] },
  {
    name: "all without the annotation",
    endpoints: [anEndpoint("10.0.0.1", "n2", hinted("z2")), anEndpoint("10.0.0.2", "n2", hinted("z1"))],
    want: [1, 2],
  },
]) {
  test(`endpoints: ${name}`, () => {
    const service = aService("web");
    if (auto) service.metadata.annotations = { "service.kubernetes.io/topology-aware-hints": "auto" };
    const [port] = servicePorts(service, [aSlice("web", endpoints)], node, "IPv4");
    const text = (numbers: number[]): string[] => numbers.map((number) => `10.0.0.${number}:8080`);
    assert.deepEqual(port?.endpoints, text(want));
    assert.deepEqual(port?.localEndpoints, text(local));
  });
}

for (const { name, spec, labels } of [
  { name: "headless", spec: { clusterIP: "None", clusterIPs: ["None"] } },
  { name: "ExternalName", spec: { type: "ExternalName", clusterIP: "", externalName: "example.org" } },
  { name: "of another proxy", spec: {}, labels: { "service.kubernetes.io/service-proxy-name": "mesh" } },
  { name: "headless by its label", spec: {}, labels: { "service.kubernetes.io/headless": "" } },
  { name: "of the other IP family", spec: { clusterIP: "fd00::1" } },
] satisfies { name: string; spec: Partial<ServiceSpec>; labels?: Record<string, string> }[]) {
  test(`no rules for a Service that is ${name}`, () => {
    const service = aService("web", spec);
    if (labels !== undefined) service.metadata.labels = labels;
    assert.deepEqual(servicePorts(service, [aSlice("web", [anEndpoint("10.0.0.1", "n1")])], node, "IPv4"), []);
  });
}

test("slices of another proxy, and those that are headless by their label, have no endpoints", () => {
  const slices = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless", "other"].map((label, index) => {
    const slice = aSlice("web", [anEndpoint(`10.0.0.${index}`, "n1")]);
    slice.metadata.labels = { ...slice.metadata.labels, [label]: "" };
    return slice;
  });
  assert.deepEqual(servicePorts(aService("web"), slices, node, "IPv4")[0]?.endpoints, ["10.0.0.2:8080"]);
});

test("ports go with the slice's ports of their name, over all slices, each endpoint once", () => {
  const ports = [
    { name: "http", port: 80, protocol: "TCP" as const },
    { name: "dns", port: 53, protocol: "UDP" as const, nodePort: 30053 },
  ];
  const named = [
    { name: "http", port: 8080 },
    { name: "dns", port: 5353 },
  ];
  const slices = [
    aSlice("web", [anEndpoint("10.0.0.1", "n1")], 0, { ports: named }),
    aSlice("web", [anEndpoint("10.0.0.1", "n1"), anEndpoint("10.0.0.2", "n1")], 0, { ports: [{ name: "http", port: 9090 }] }),
    aSlice("web", [anEndpoint("fd00::1", "n1")], 0, { ports: named, addressType: "IPv6" }),
  ];
  const found = servicePorts(aService("web", { ports }), slices, node, "IPv4");
  assert.deepEqual(
    found.map(({ id, protocol, nodePort, endpoints }) => ({ id, protocol, nodePort, endpoints })),
    [
      {
        id: "default/web:http",
        protocol: "tcp",
        nodePort: undefined,
        endpoints: ["10.0.0.1:8080", "10.0.0.1:9090", "10.0.0.2:9090"],
      },
      { id: "default/web:dns", protocol: "udp", nodePort: 30053, endpoints: ["10.0.0.1:5353"] },
    ],
  );
});

test("of two ports of a slice with one name the first counts", () => {
  const ports = [8080, 9090].map((port) => ({ name: "http", port }));
  const service = aService("web", { ports: [{ name: "http", port: 80, protocol: "TCP" }] });
  const slices = [aSlice("web", [anEndpoint("10.0.0.1", "n1")], 0, { ports })];
  assert.deepEqual(servicePorts(service, slices, node, "IPv4")[0]?.endpoints, ["10.0.0.1:8080"]);
});

test("of two families each gets its own addresses", () => {
  const spec = {
    clusterIP: "10.96.0.1",
    clusterIPs: ["10.96.0.1", "fd00:96::1"],
    externalIPs: ["192.0.2.1", "2001:db8::1"],
    loadBalancerSourceRanges: [" 10.0.0.0/8", "2001:db8::/32"],
  };
  const service = aService("web", spec, ["192.0.2.2", "2001:db8::2"]);
  const slices = [aSlice("web", [anEndpoint("fd00::5", "n1")], 8080, { addressType: "IPv6" })];
  const [four] = servicePorts(service, slices, node, "IPv4");
  const [six] = servicePorts(service, slices, node, "IPv6");
  hasFields(four, {
    clusterIp: "10.96.0.1",
    externalIps: ["192.0.2.1"],
    sourceRanges: ["10.0.0.0/8"],
    endpoints: [],
  });
  hasFields(six, {
    clusterIp: "fd00:96::1",
    loadBalancerIps: ["2001:db8::2"],
    sourceRanges: ["2001:db8::/32"],
    endpoints: ["[fd00::5]:8080"],
  });
});

for (const { name, family = "IPv4", address, port, want } of [
  { name: "leading zeros are decimal, not octal", address: "010.1.002.3", want: ["10.1.2.3:8080"] },
  { name: "an IPv4 address in IPv6 is written as IPv4", address: "::ffff:10.1.2.3", want: ["10.1.2.3:8080"] },
  { name: "IPv6 in its shortest form", family: "IPv6", address: "FD00:0:0::0005", want: ["[fd00::5]:8080"] },
  { name: "loopback", address: "127.0.0.1", want: [] },
  { name: "loopback with leading zeros", address: "0127.0.0.1", want: [] },
  { name: "loopback in IPv6", address: "::ffff:127.0.0.1", want: [] },
  { name: "loopback of IPv6", family: "IPv6", address: "::1", want: [] },
  { name: "link-local metadata servers", address: "169.254.169.254", want: [] },
  { name: "link-local of IPv6", family: "IPv6", address: "fe80::1", want: [] },
  { name: "this host", address: "0.0.0.0", want: [] },
  { name: "multicast", address: "224.0.0.1", want: [] },
  { name: "of the other family", address: "fd00::5", want: [] },
  { name: "a port that does not exist", address: "10.0.0.1", port: 65_536, want: [] },
  { name: "port 0", address: "10.0.0.1", port: 0, want: [] },
  { name: "a negative port", address: "10.0.0.1", port: -1, want: [] },
] satisfies { name: string; family?: "IPv4" | "IPv6"; address: string; port?: number; want: string[] }[]) {
  test(`addresses of endpoints: ${name}`, () => {
    const service = aService("web", { clusterIP: family === "IPv4" ? "10.96.0.10" : "fd00:96::10" });
    const slice = aSlice("web", [anEndpoint(address, "n1")], port, { addressType: family });
    const [found] = servicePorts(service, [slice], node, family);
    assert.deepEqual(found?.endpoints, want);
    assert.deepEqual(found?.localEndpoints, want);
  });
}

test("addresses and source ranges of a Service are canonicalized, and loopback and link-local ones are dropped", () => {
  const externalIPs = ["010.1.2.3", "::ffff:10.1.2.4", "0127.0.0.1", "127.0.0.1", "169.254.169.254"];
  const spec = { clusterIP: "010.96.0.1", externalIPs, loadBalancerSourceRanges: ["010.0.0.0/08", "::ffff:10.2.0.0/112"] };
  const service = aService("web", spec, ["010.1.2.5", "127.0.0.1"]);
  hasFields(servicePorts(service, [], node, "IPv4")[0], {
    clusterIp: "10.96.0.1",
    externalIps: ["10.1.2.3", "10.1.2.4"],
    loadBalancerIps: ["10.1.2.5"],
    sourceRanges: ["10.0.0.0/8"],
  });
});

test("hints are used with the annotation in both spellings, and with no other", () => {
  const endpoints = [anEndpoint("10.0.0.1", "n2", hinted("z1")), anEndpoint("10.0.0.2", "n2", hinted("z2"))];
  const found = ["auto", "Auto", "AUTO", "disabled"].map((value) => {
    const service = aService("web");
    service.metadata.annotations = { "service.kubernetes.io/topology-aware-hints": value };
    return servicePorts(service, [aSlice("web", endpoints)], node, "IPv4")[0]?.endpoints.length;
  });
  assert.deepEqual(found, [1, 1, 2, 2]);
});

test("session affinity has the given timeout, else three hours, and none without it", () => {
  const seconds = (spec: Partial<ServiceSpec>) => servicePorts(aService("web", spec), [], node, "IPv4")[0]?.affinitySeconds;
  const clientIP = { timeoutSeconds: 60 };
  assert.deepEqual(
    [
      seconds({ sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP } }),
      seconds({ sessionAffinity: "ClientIP" }),
      seconds({ sessionAffinity: "None", sessionAffinityConfig: { clientIP } }),
    ],
    [60, 10_800, undefined],
  );
});

test("a destination is an address with a port, and for a load balancer also each network that may use it", () => {
  const ports = [80, 81].map((port) => ({ name: `p${port}`, port, protocol: "TCP" as const }));
  const service = aService("web", { ports, externalIPs: ["192.0.2.1"], loadBalancerSourceRanges: ["10.0.0.0/8", "11.0.0.0/8"] }, [
    "192.0.2.2",
    "192.0.2.3",
  ]);
  assert.equal(destinationsOf(servicePorts(service, [], node, "IPv4")), 2 * (1 + 1 + 2 * 3));
});

test("a port without a name is known by its number; with more than 10,000 destinations endpoints are not looked for", () => {
  const slices = [aSlice("web", [anEndpoint("10.0.0.1", "n1")])];
  const found = (externalIPs: number) => {
    const ips = Array.from({ length: externalIPs }, (_, at) => `10.1.${at >> 8}.${at & 255}`);
    return servicePorts(aService("web", { externalIPs: ips }), slices, node, "IPv4");
  };
  assert.deepEqual(
    found(9_999).map(({ id, endpoints }) => [id, endpoints.length]),
    [["default/web:80", 1]],
  );
  assert.deepEqual(
    found(10_000).map(({ endpoints }) => endpoints.length),
    [0],
  );
});
