import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeAddresses, nodeIpProblem, refuseSwap } from "./machine.ts";

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
