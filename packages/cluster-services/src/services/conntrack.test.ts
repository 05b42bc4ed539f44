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
  { name: "whatever an earlier process left", before: [], after: portsOf("UDP", "10.0.0.1"), want: [clusterIp, nodePort] },
]) {
  test(`deletes ${name}`, () => {
    assert.deepEqual(
      staleEntries(before, after, "IPv4").map((filter) => filter.join(" ")),
      want,
    );
  });
}

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
