import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgramError } from "../host/run-program.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { deleteEntries, staleEntries } from "./conntrack.ts";
import { type ServicePort, servicePorts } from "./service-port.ts";

const portsOf = (protocol: "UDP" | "TCP", ...ips: readonly string[]): ServicePort[] =>
  servicePorts(
    aService("dns", { clusterIP: "10.96.0.10", type: "NodePort", ports: [{ port: 53, protocol, nodePort: 30053 }] }),
    [
      aSlice(
        "dns",
        ips.map((ip) => anEndpoint(ip, "n2")),
      ),
    ],
    { name: "n1", zone: undefined },
    "IPv4",
  );
/** With addresses of all kinds; the endpoints on this node are others than those that hints select. */
const everywhere = (endpoint: string, local = endpoint, family: "IPv4" | "IPv6" = "IPv4"): ServicePort[] => [
  {
    ...(portsOf("UDP", "10.0.0.1")[0] as ServicePort),
    ...{ protocol: "sctp", nodePort: undefined, externalIps: ["192.0.2.1"], loadBalancerIps: ["192.0.2.2"] },
    endpoints: [endpoint],
    localEndpoints: [local],
    ...(family === "IPv6" && { clusterIp: "fd00:96::10", externalIps: [], loadBalancerIps: [] }),
  },
];
const clusterIp = "-f ipv4 -p udp --orig-dst 10.96.0.10 --orig-port-dst 53";
const nodePort = "-f ipv4 -p udp --orig-port-dst 30053";

for (const { name, before, after, want } of [
  { name: "nothing of TCP", before: portsOf("TCP", "10.0.0.1"), after: [], want: [] },
  {
    name: "nothing when nothing went",
    before: portsOf("UDP", "10.0.0.1"),
    after: portsOf("UDP", "10.0.0.1", "10.0.0.2"),
    want: [],
  },
  {
    name: "those of an endpoint that went",
    before: portsOf("UDP", "10.0.0.1", "10.0.0.2"),
    after: portsOf("UDP", "10.0.0.2"),
    want: [`${clusterIp} --dst-nat 10.0.0.1`, `${nodePort} --dst-nat 10.0.0.1`],
  },
  {
    name: "those of a Service that went",
    before: portsOf("UDP", "10.0.0.1"),
    after: [],
    want: [`${clusterIp} --dst-nat 10.0.0.1`, `${nodePort} --dst-nat 10.0.0.1`],
  },
  {
    name: "those without endpoint, with the first one",
    before: portsOf("UDP"),
    after: portsOf("UDP", "10.0.0.1"),
    want: [clusterIp, nodePort],
  },
  { name: "nothing of a new Service without endpoints", before: [], after: portsOf("UDP"), want: [] },
  { name: "nothing of a Service that stays without", before: portsOf("UDP"), after: portsOf("UDP"), want: [] },
  { name: "whatever an earlier process left", before: [], after: portsOf("UDP", "10.0.0.1"), want: [clusterIp, nodePort] },
]) {
  test(`deletes ${name}`, () => {
    assert.deepEqual(
      staleEntries(before, after, "IPv4").map((filter) => filter.join(" ")),
      want,
    );
  });
}

test("entries of SCTP, of external addresses and of endpoints on this node alone are deleted, too", () => {
  const filters = (before: ServicePort[], after: ServicePort[], family: "IPv4" | "IPv6" = "IPv4"): string[] =>
    staleEntries(before, after, family).map((filter) => filter.join(" "));
  const to = (ip: string): string => `-f ipv4 -p sctp --orig-dst ${ip} --orig-port-dst 53`;
  const all = ["10.96.0.10", "192.0.2.1", "192.0.2.2"].map(to);
  assert.deepEqual(
    filters(everywhere("10.0.0.1:53", "10.0.0.9:53"), everywhere("10.0.0.1:53")),
    all.map((filter) => `${filter} --dst-nat 10.0.0.9`),
  );
  assert.deepEqual(filters(everywhere("10.0.0.1:53"), everywhere("10.0.0.2:53", "10.0.0.1:53")), [], "it is used still");
  assert.deepEqual(filters([], everywhere("10.0.0.1:53")), all);
  assert.deepEqual(filters(everywhere("[fd00::1]:53", "[fd00::1]:53", "IPv6"), [], "IPv6"), [
    "-f ipv6 -p sctp --orig-dst fd00:96::10 --orig-port-dst 53 --dst-nat fd00::1",
  ]);
});

test("a filter without entries is no failure, and the next one follows", async () => {
  const seen: string[] = [];
  await deleteEntries([["a"], ["b"]], async (_command, args) => {
    seen.push(args.join(" "));
    throw new ProgramError("conntrack v1.4.7: 0 flow entries have been deleted.", 1);
  });
  assert.deepEqual(seen, ["-D a", "-D b"]);
  const failing = deleteEntries([["a"]], () => Promise.reject(new ProgramError("cannot run conntrack", undefined)));
  await assert.rejects(failing, /cannot run conntrack/);
});
