import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "dns-packet";
import { resolveAliases } from "./alias.ts";
import { isEncodable } from "./encode-record.ts";
import { types } from "./protocol.ts";
import { parseQuery, type Query } from "./query.ts";
import { encodeReply } from "./reply.ts";
import { addressKey, addressKeysOf, recordsOfService } from "./service-records.ts";
import { aService, aSlice, aView } from "./testing.ts";
import { type ClusterView, newZone } from "./zone.ts";

const options = { domain: "cluster.local", dnsAddresses: ["10.96.0.10"], podRecords: true, serial: 1 };

/** `NXDOMAIN`, or the answers as text, sorted. */
function answersOf(name: string, type: keyof typeof types, view: ClusterView = aView()): string[] | string {
  const zone = newZone(view, options);
  const relative = zone.relative(name);
  const found = relative === undefined ? zone.findReverse(name) : zone.find(relative, types[type]);
  const { rcode, answers, alias } = resolveAliases(zone, found, types[type]);
  const query: Query = { ...(parseQuery(Buffer.alloc(12)) as { query: Query }).query, question: Buffer.from([0, 0, 1, 0, 1]) };
  const texts = decode(encodeReply(query, { rcode, authoritative: true, answers }, 65_535)).answers?.map((answer) => {
    if (answer.type === "SRV") return `${answer.data.port} ${answer.data.target}`;
    return answer.type === "TXT" ? String(answer.data) : String((answer as { data: unknown }).data);
  });
  if (rcode === 3) return "NXDOMAIN";
  if (rcode === 2) return "SERVFAIL";
  return [...(texts ?? []), ...(alias === undefined ? [] : [`→ ${alias}`])].sort();
}

const domain = "svc.cluster.local";
const cases: [name: string, type: keyof typeof types, want: string[] | string][] = [
  ["dns-version.cluster.local", "TXT", ["1.1.0"]],
  ["dns-version.cluster.local", "A", []],
  ["ns.dns.cluster.local", "A", ["10.96.0.10"]],
  ["cluster.local", "NS", ["ns.dns.cluster.local"]],
  ["cluster.local", "A", []],
  [domain, "A", []],
  [`default.${domain}`, "A", []],
  [`absent.${domain}`, "A", "NXDOMAIN"],
  ["other.cluster.local", "A", "NXDOMAIN"],
  // Search paths with ndots:5
  [`www.example.com.default.${domain}`, "A", "NXDOMAIN"],
  [`kubernetes.default.svc.cluster.local.default.${domain}`, "A", "NXDOMAIN"],
  [`kubernetes.default.${domain}`, "A", ["10.96.0.1"]],
  [`kubernetes.default.${domain}`, "AAAA", []],
  [`kubernetes.empty.${domain}`, "A", "NXDOMAIN"],
  [`dual.default.${domain}`, "AAAA", ["fd00:1::20"]],
  [`_https._tcp.kubernetes.default.${domain}`, "SRV", [`443 kubernetes.default.${domain}`]],
  [`_https._udp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`https.tcp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`_https.xtcp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`xhttps._tcp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`a._https._tcp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`_._tcp.dual.default.${domain}`, "SRV", "NXDOMAIN"],
  [`_tcp.kubernetes.default.${domain}`, "SRV", []],
  [`_udp.kubernetes.default.${domain}`, "SRV", "NXDOMAIN"],
  [`_tcp.dual.default.${domain}`, "SRV", "NXDOMAIN"], // its port has no name
  [`kubernetes.default.${domain}`, "SRV", [`443 kubernetes.default.${domain}`]],
  [`db.default.${domain}`, "A", ["10.244.0.5", "10.244.0.6"]],
  [`db-0.db.default.${domain}`, "A", ["10.244.0.5"]],
  [`db-2.db.default.${domain}`, "A", "NXDOMAIN"],
  [`10-244-0-6.db.default.${domain}`, "A", ["10.244.0.6"]],
  [`_sql._tcp.db.default.${domain}`, "SRV", [`5432 10-244-0-6.db.default.${domain}`, `5432 db-0.db.default.${domain}`]],
  [`none.default.${domain}`, "A", "NXDOMAIN"],
  [`outside.default.${domain}`, "CNAME", ["www.example.com"]],
  [`outside.default.${domain}`, "A", ["www.example.com", "→ www.example.com"]],
  [`outside.default.${domain}`, "TXT", ["www.example.com"]],
  [`inside.default.${domain}`, "A", ["10.96.0.1", `kubernetes.default.${domain}`]],
  [`x.outside.default.${domain}`, "A", "NXDOMAIN"],
  [`circle.default.${domain}`, "A", "SERVFAIL"],
  [`long.default.${domain}`, "A", "NXDOMAIN"],
  ["10-244-0-5.default.pod.cluster.local", "A", ["10.244.0.5"]],
  ["fd00--5.default.pod.cluster.local", "AAAA", ["fd00::5"]],
  ["10-244-0-5.absent.pod.cluster.local", "A", "NXDOMAIN"],
  ["10-244-0.default.pod.cluster.local", "A", "NXDOMAIN"],
  ["1.0.96.10.in-addr.arpa", "PTR", [`kubernetes.default.${domain}`]],
  ["5.0.244.10.in-addr.arpa", "PTR", [`db-0.db.default.${domain}`]],
  ["7.0.244.10.in-addr.arpa", "PTR", "NXDOMAIN"],
  [`0.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.d.f.ip6.arpa`, "PTR", [`dual.default.${domain}`]],
];

for (const [name, type, want] of cases) {
  test(`${type} ${name}: ${String(want)}`, () => {
    assert.deepEqual(answersOf(name, type), want);
  });
}

test("gives a dual-stack endpoint one SRV record and an address of each family", () => {
  const view = aView();
  view.services.push(aService("six", { clusterIP: "None" }));
  const ports = [{ name: "web", protocol: "TCP", port: 80 }] as const;
  view.slices.push(aSlice("six", [{ addresses: ["10.244.0.8"], hostname: "a" }], [...ports]));
  view.slices.push({ ...aSlice("six", [{ addresses: ["fd00::8"], hostname: "a" }], [...ports]), addressType: "IPv6" });
  assert.deepEqual(answersOf(`_web._tcp.six.default.${domain}`, "SRV", view), [`80 a.six.default.${domain}`]);
  assert.deepEqual(answersOf(`a.six.default.${domain}`, "AAAA", view), ["fd00::8"]);
  const zone = newZone(view, options);
  assert.equal(zone.find("_web._tcp.six.default.svc", types.SRV)?.additionals?.length, 2);
});

test("answers with every ready endpoint of every slice, whatever the others are, and names each once", () => {
  const view = aView();
  view.services.push(aService("many", { clusterIP: "None" }));
  const unready = { addresses: ["10.244.0.20"], conditions: { ready: false } };
  const two = { addresses: ["10.244.0.21", "10.244.0.22"], hostname: "two" };
  view.slices.push(aSlice("many", [unready]), aSlice("many", [unready, two]), aSlice("many", [two]), aSlice("many", []));
  assert.deepEqual(new Set(answersOf(`many.default.${domain}`, "A", view)), new Set(["10.244.0.21", "10.244.0.22"]));
  assert.deepEqual(answersOf("22.0.244.10.in-addr.arpa", "PTR", view), [`two.many.default.${domain}`]);
});

test("a slice is found by each address of each of its endpoints, ready or not", () => {
  const slice = aSlice("db", [
    { addresses: ["10.244.0.5", "host.example"], conditions: { ready: true } },
    { addresses: ["10.244.0.6"], conditions: { ready: false } },
  ]);
  assert.deepEqual(addressKeysOf(slice), ["10.244.0.5", "10.244.0.6"]);
});

test("names of pods are answered only where that is on", () => {
  const zone = newZone(aView(), { ...options, podRecords: false });
  assert.equal(zone.find("10-244-0-5.default.pod", types.A), undefined);
  assert.deepEqual(zone.find("default.pod", types.A), { records: [] });
});

const srvOf = (name: string, view: ClusterView) => {
  const found = newZone(view, options).find(name, types.SRV);
  const [weight, port] = [0, 2].map((at) => found?.records.map(({ data }) => data.readUInt16BE(4 + at)));
  return { weight, port, additionals: found?.additionals?.length };
};

test("SRV records of one name share a weight of 100, at least 1 each, with the addresses that they lead to", () => {
  const view = aView();
  const ports = ["a", "b", "c"].map((name, i) => ({ name, port: 80 + i, protocol: "TCP" as const }));
  view.services.push(aService("three", { clusterIP: "10.96.0.30", clusterIPs: ["10.96.0.30", "fd00:1::30"], ports }));
  assert.deepEqual(srvOf("three.default.svc", view), { weight: [33, 33, 33], port: [80, 81, 82], additionals: 2 });
  assert.deepEqual(srvOf("_b._tcp.three.default.svc", view), { weight: [100], port: [81], additionals: 2 });
  const many = Array.from({ length: 4_100 }, (_, i) => ({ name: `p${i}`, port: 1 + i, protocol: "TCP" as const }));
  view.services.push(aService("ports", { clusterIP: "10.96.0.31", ports: many }));
  const { weight, port } = srvOf("ports.default.svc", view);
  assert.deepEqual(
    [new Set(weight), port?.length, port?.at(-1)],
    [new Set([1]), 4_096, 4_096],
    "as many as a response has room for",
  );
  view.services.push(aService("wide", { clusterIP: "None" }));
  const endpoints = Array.from({ length: 150 }, (_, i) => ({ addresses: [`10.244.2.${i}`] }));
  view.slices.push(
    aSlice("wide", endpoints, [
      { name: "web", protocol: "TCP", port: 80 },
      { name: "web", protocol: "UDP", port: 81 },
    ]),
  );
  const wide = srvOf("_web._tcp.wide.default.svc", view);
  assert.deepEqual([new Set(wide.weight), new Set(wide.port), wide.additionals], [new Set([1]), new Set([80]), 150]);
});

test("an external name is compared without its last dot; addresses that begin or end with a colon make valid host names", () => {
  const view = aView();
  view.services.push(
    aService("dotted", { type: "ExternalName", externalName: "WWW.Example.com.", clusterIP: "10.96.0.9" }),
    aService("six", { clusterIP: "None" }),
  );
  view.slices.push({ ...aSlice("six", [{ addresses: ["::5", "fd00::", "fe80::1%eth0"] }]), addressType: "IPv6" });
  assert.deepEqual(answersOf(`dotted.default.${domain}`, "CNAME", view), ["www.example.com"]);
  assert.deepEqual(recordsOfService(view.services.at(-2)!).addresses, [], "an address of its own does not count");
  assert.deepEqual(answersOf(`0--5.six.default.${domain}`, "AAAA", view), ["::5"]);
  assert.deepEqual(answersOf(`fd00--0.six.default.${domain}`, "AAAA", view), ["fd00::"]);
  assert.equal((answersOf(`six.default.${domain}`, "AAAA", view) as string[]).length, 2, "none with a zone");
});

test("the longest name that fits a message can be encoded", () => {
  const labels = [63, 63, 63, 61].map((length) => "a".repeat(length));
  assert.deepEqual([labels.join("."), `${labels.join(".")}a`].map(isEncodable), [true, false]);
  assert.deepEqual(["a".repeat(64), "a..b", ""].map(isEncodable), [false, false, false]);
});

for (const [address, want] of [
  ["::", "00000000000000000000000000000000"],
  ["::1", "00000000000000000000000000000001"],
  ["FD00:12::A:0", "fd0000120000000000000000000a0000"],
  ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
  ["64:ff9b::192.0.2.33", "0064ff9b0000000000000000c0000221"],
  ["1::", "00010000000000000000000000000000"],
] as const) {
  test(`the key of ${address} has all of its digits`, () => assert.equal(addressKey(address), want));
}
