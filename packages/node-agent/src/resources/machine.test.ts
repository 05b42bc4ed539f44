import assert from "node:assert/strict";
import type { networkInterfaces } from "node:os";
import { test } from "node:test";
import { chooseAddress, nodeAddresses, nodeIpProblem, refuseSwap } from "./machine.ts";

for (const { nodeIp, want } of [
  { nodeIp: "192.0.2.7", want: ["192.0.2.7"] },
  { nodeIp: "192.0.2.7, 2001:db8::7", want: ["192.0.2.7", "2001:db8::7"] },
  { nodeIp: "", want: ["198.51.100.1"] },
  { nodeIp: "0.0.0.0", want: ["198.51.100.1"] },
  { nodeIp: "::", want: ["2001:db8::1"] },
  { nodeIp: "not an address", want: ["198.51.100.1"] },
]) {
  test(`--node-ip=${JSON.stringify(nodeIp)} reports ${want.join(" and ")}`, async () => {
    const lookUp = async (preferIpv6: boolean): Promise<string> => (preferIpv6 ? "2001:db8::1" : "198.51.100.1");
    assert.deepEqual(await nodeAddresses(nodeIp, lookUp), want);
    assert.equal(nodeIpProblem(nodeIp), undefined);
  });
}

for (const { nodeIp, want } of [
  {
    nodeIp: "192.0.2.7,192.0.2.8",
    want: 'bad --node-ip "192.0.2.7,192.0.2.8"; must contain either a single IP or a dual-stack pair of IPs',
  },
  { nodeIp: "192.0.2.7,::,192.0.2.8", want: /must contain either a single IP or a dual-stack pair of IPs$/ },
  { nodeIp: "192.0.2.7,::", want: `dual-stack --node-ip "192.0.2.7,::" cannot include '0.0.0.0' or '::'` },
]) {
  test(`--node-ip=${nodeIp} is refused`, () => {
    const problem = nodeIpProblem(nodeIp) ?? "";
    if (typeof want === "string") assert.equal(problem, want);
    else assert.match(problem, want);
  });
}

test("a machine with swap is refused, and the error names the swap devices", () => {
  refuseSwap({ swaps: ["Filename Type Size Used Priority"] });
  assert.throws(() => refuseSwap({ swaps: ["Filename Type Size Used Priority", "/swap file 1024 0 -2"] }), {
    message:
      "running with swap on is not supported, please disable swap! or set --fail-swap-on flag to false. /proc/swaps contained: [Filename Type Size Used Priority /swap file 1024 0 -2]",
  });
});

test("a node's address is on the interface of the default route, else on the first one; never loopback or link-local", () => {
  const of = (...addresses: string[]) =>
    addresses.map((address) => ({
      address,
      family: address.includes(":") ? "IPv6" : "IPv4",
      internal: address === "127.0.0.1" || address === "::1",
    }));
  const interfaces = {
    lo: of("127.0.0.1", "::1"),
    eth0: of("192.0.2.1", "fe80::1"),
    eth1: of("198.51.100.1", "fe80::2", "2001:db8::2"),
  } as unknown as ReturnType<typeof networkInterfaces>;
  const heading = "Iface\tDestination\tGateway";
  const routes = (...lines: string[]) => [heading, ...lines, ""].join("\n");
  const byDefault = routes("eth0\t000200C0\t0", "eth1\t00000000\t1");
  assert.equal(chooseAddress(interfaces, byDefault, "IPv4"), "198.51.100.1");
  assert.equal(chooseAddress(interfaces, routes("eth1\t006433C6\t0"), "IPv4"), "192.0.2.1");
  assert.equal(chooseAddress(interfaces, routes("eth0\t00000000\t1"), "IPv6"), "2001:db8::2");
  assert.equal(chooseAddress({ lo: interfaces["lo"] ?? [] }, byDefault, "IPv4"), undefined);
});
