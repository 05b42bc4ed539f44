import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { ServicesFlags } from "../flags.ts";
import { podNetworkSettings } from "./settings.ts";

const flags = {
  ...{ "pod-network-mode": "auto", "pod-network-bridge": "cox0", "pod-network-name": "coxswain", "pod-network-mtu": 0 },
  ...{ "pod-network-vxlan-id": 99, "pod-network-vxlan-port": 8472, "cluster-cidr": [], "cni-conf-dir": "/etc/cni/net.d" },
  ...{ "cni-bin-dir": ["/a", "/b"], "cni-data-dir": "/data", "iptables-chain-prefix": "COX-", "iptables-sync-period": 30_000 },
};
const settings = (change: object) => podNetworkSettings({ ...flags, ...change } as unknown as ServicesFlags);

test("an MTU of 0 follows the node's interface; the configuration is in the given folder", () => {
  const { mtu, configPath, pluginFolders } = settings({});
  assert.deepEqual([mtu, configPath, pluginFolders], [undefined, "/etc/cni/net.d/10-coxswain.conflist", ["/a", "/b"]]);
});

for (const [flag, values] of [
  ["pod-network-mode", ["host-gateway", "vxlan"]],
  ["pod-network-bridge", ["abcdefghijkl", "b"]],
  ["pod-network-name", ["a", "a.b-c_d"]],
  ["pod-network-mtu", [1280, 65_535]],
  ["pod-network-vxlan-id", [1, 16_777_215]],
  ["pod-network-vxlan-port", [1, 65_535]],
  ["cluster-cidr", [["10.0.0.0/8", "fd00::/8"]]],
] as const)
  for (const value of values)
    test(`--${flag}=${value} is taken`, () => {
      const { mode, bridge, name, mtu, vxlanId, vxlanPort, clusterCidrs } = settings({ [flag]: value });
      assert.ok([mode, bridge, name, mtu, vxlanId, vxlanPort, clusterCidrs].includes(value as never));
    });

for (const [flag, values] of [
  ["pod-network-mode", ["", "VXLAN"]],
  ["pod-network-bridge", ["abcdefghijklm", "", "-a", "a/b"]],
  ["pod-network-name", ["", "../a", "a b"]],
  ["pod-network-mtu", [1279, 65_536, -1]],
  ["pod-network-vxlan-id", [0, 16_777_216]],
  ["pod-network-vxlan-port", [0, 65_536]],
  ["cluster-cidr", [["10.0.0.0/8", "10.0.0.1"]]],
] as const)
  for (const value of values)
    test(`--${flag}=${value} is refused`, () => {
      assert.throws(
        () => settings({ [flag]: value }),
        (err) => err instanceof ConfigError && err.message.startsWith(`--${flag} must `),
      );
    });
