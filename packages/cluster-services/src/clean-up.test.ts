import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cleanUpMachine } from "./clean-up.ts";
import type { ServicesFlags } from "./flags.ts";
import type { RunProgram } from "./host/run-program.ts";

const saved = `*filter
:INPUT ACCEPT [0:0]
:COX-I-1 - [0:0]
:COX-NET-FWD - [0:0]
:COX-LB-IN - [0:0]
:OTHER - [0:0]
-A INPUT -j COX-I-1
-A INPUT -j OTHER
COMMIT
`;

test("what every part has left is removed: the configuration, addresses, chains, and the routing of loopback addresses", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "cox-clean-up-"));
  t.after(() => rmSync(root, { recursive: true }));
  const routing = join(root, "proc/sys/net/ipv4/conf/all/route_localnet");
  const mark = join(root, "run/coxswain-services.route_localnet");
  const config = join(root, "10-coxswain.conflist");
  for (const folder of ["proc/sys/net/ipv4/conf/all", "run"]) mkdirSync(join(root, folder), { recursive: true });
  for (const file of [routing, mark]) writeFileSync(file, "1");
  writeFileSync(config, JSON.stringify({ name: "coxswain", coxswainServices: {}, plugins: [] }));
  const calls: string[] = [];
  const run: RunProgram = async (program, args, input = "") => {
    const text = [program, ...args].join(" ");
    if (text === "ip -j -d address show")
      return JSON.stringify([
        { ifname: "eth0", addr_info: [{ local: "192.0.2.5", prefixlen: 32 }] },
        { ifname: "cox0", linkinfo: { info_kind: "bridge" }, addr_info: [] },
      ]);
    if (text === "iptables-save") return saved;
    if (/ (delete|-batch|--noflush)\b/.test(text)) calls.push(`${text} ${input}`.trim());
    return "";
  };
  const flags = {
    ...{ "pod-network-mode": "auto", "pod-network-bridge": "cox0", "pod-network-name": "coxswain", "pod-network-mtu": 0 },
    ...{ "pod-network-vxlan-id": 99, "pod-network-vxlan-port": 8472, "cluster-cidr": [], "cni-conf-dir": root },
    ...{ "cni-bin-dir": ["/a"], "cni-data-dir": "/data", "iptables-chain-prefix": "COX-", "iptables-sync-period": 30_000 },
    ...{ "load-balancer-pool": ["192.0.2.0/24"], "iptables-localhost-nodeports": true, "nodeport-addresses": [] },
    ...{ "iptables-masquerade-bit": 14, "masquerade-all": false, "iptables-min-sync-period": 1_000 },
    ...{ "conntrack-tcp-timeout-established": 0, "conntrack-tcp-timeout-close-wait": 0 },
  } as unknown as ServicesFlags;
  await cleanUpMachine(flags, run, root);
  assert.deepEqual([existsSync(config), existsSync(mark), readFileSync(routing, "utf8")], [false, false, "0"]);
  assert.ok(calls.includes("ip link delete dev cox0"), calls.join("\n"));
  assert.ok(calls.includes("ip address delete 192.0.2.5/32 dev eth0"), calls.join("\n"));
  const removed = calls.filter((text) => text.startsWith("iptables-restore")).join("\n");
  for (const chain of ["COX-I-1", "COX-NET-FWD", "COX-LB-IN"]) assert.match(removed, new RegExp(`^-X ${chain}$`, "m"));
  assert.match(removed, /^-D INPUT -j COX-I-1$/m);
  assert.doesNotMatch(removed, /OTHER/);
});
