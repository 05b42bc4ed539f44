import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNetwork } from "./networks.ts";
import { podRules } from "./rules.ts";

const networks = (...texts: string[]) => texts.map((text) => parseNetwork(text)!);
const tunnel = { link: "cox0-vx", mac: "", local: "", device: "eth0", mtu: 1450, addresses: [], peers: [] };
const plan = {
  own: networks("10.77.1.0/24", "fd00:77:1::/64"),
  all: networks("10.77.1.0/24", "10.77.2.0/24", "10.99.3.0/24", "fd00:77:1::/64"),
  nodeAddresses: ["192.168.77.2", "192.168.77.2", "fd77::2"],
  vxlan: tunnel,
};
const settings = { chainPrefix: "COX-", clusterCidrs: ["10.77.0.0/16", "fd00:77::/32"], vxlanPort: 8472 };
const rulesOf = (chain: string, { text }: { text: string }): string[] =>
  text
    .split("\n")
    .flatMap((line) => (line.startsWith(`-A COX-NET-${chain} `) ? [line.slice(`-A COX-NET-${chain} `.length)] : []));

test("pods keep their address to pods, also to a range outside of the given networks, and in multicast", () => {
  assert.deepEqual(rulesOf("MASQ", podRules(plan, settings, 4)), [
    "-s 10.77.1.0/24 -d 10.77.0.0/16 -j RETURN",
    "-s 10.77.1.0/24 -d 10.99.3.0/24 -j RETURN",
    "-s 10.77.1.0/24 -d 224.0.0.0/4 -j RETURN",
    "-s 10.77.1.0/24 -j MASQUERADE --random-fully",
  ]);
  assert.deepEqual(rulesOf("MASQ", podRules(plan, settings, 6)), [
    "-s fd00:77:1::/64 -d fd00:77::/32 -j RETURN",
    "-s fd00:77:1::/64 -d ff00::/8 -j RETURN",
    "-s fd00:77:1::/64 -j MASQUERADE --random-fully",
  ]);
});

test("without given networks the pod ranges of all nodes are the cluster's", () => {
  const returned = rulesOf("MASQ", podRules(plan, { ...settings, clusterCidrs: [] }, 4)).filter((rule) =>
    rule.endsWith("RETURN"),
  );
  assert.deepEqual(
    returned.map((rule) => rule.split(" ")[3]),
    ["10.77.1.0/24", "10.77.2.0/24", "10.99.3.0/24", "224.0.0.0/4"],
  );
});

test("the tunnel takes packets of nodes of its family, each once, and none of pods; without a tunnel its port is free", () => {
  const rules = podRules(plan, settings, 4);
  assert.deepEqual(rulesOf("VXLAN", rules), ["-s 192.168.77.2/32 -j RETURN", "-j DROP"]);
  const drop = "-s 10.77.1.0/24 -p udp -m udp --dport 8472 -j DROP";
  const forward = rulesOf("FORWARD", rules);
  assert.ok(forward.indexOf(drop) > forward.indexOf("-s 10.77.1.0/24 -d 10.77.0.0/16 -j ACCEPT"));
  assert.ok(forward.indexOf(drop) < forward.indexOf("-s 10.77.1.0/24 -j ACCEPT"));
  assert.equal(forward.at(-1), "-d 10.77.1.0/24 -j ACCEPT");
  const without = podRules({ ...plan, vxlan: undefined }, settings, 4);
  assert.deepEqual([rulesOf("VXLAN", without), rulesOf("FORWARD", without).includes(drop)], [[], false]);
});

test("rules that the kernel has lead to the chains: that of forwarded packets comes behind those of Services", () => {
  assert.deepEqual(podRules(plan, settings, 6).jumps, [
    { table: "nat", from: "POSTROUTING", rule: "-j COX-NET-MASQ" },
    { table: "filter", from: "FORWARD", rule: "-j COX-NET-FORWARD", behind: ["COX-FORWARD", "COX-FILTER", "KUBE-"] },
    { table: "filter", from: "INPUT", rule: "-p udp -m udp --dport 8472 -j COX-NET-VXLAN" },
  ]);
});
