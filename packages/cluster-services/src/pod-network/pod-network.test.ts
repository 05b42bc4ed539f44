import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { ProgramError, type RunProgram } from "../host/run-program.ts";
import { aNode, settingsIn } from "../testing/machines.ts";
import { missingPlugins, otherNetwork, writeConfig } from "./cni-config.ts";
import { newPodNetworkMetrics } from "./metrics.ts";
import { PodNetwork } from "./pod-network.ts";
import { isOurRoute, withdraw, withdrawLeftOver } from "./withdraw.ts";

const me = aNode("m1", ["10.77.1.0/24"], ["192.168.77.1"]);
const eth0 = { ifname: "eth0", mtu: 1500, flags: ["UP"], addr_info: [{ local: "192.168.77.1", prefixlen: 24 }] };

/** A network over a kernel that has no links but eth0, and ignores all changes. */
function setUp(t: TestContext, { nodes = [me] as Node[] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cox-pod-network-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const plugins = join(folder, "bin");
  mkdirSync(plugins);
  for (const name of ["bridge", "host-local", "portmap"]) {
    writeFileSync(join(plugins, name), "");
    chmodSync(join(plugins, name), 0o755);
  }
  const settings = { ...settingsIn(join(folder, "net.d")), pluginFolders: [plugins], checkPeriodMs: 30_000 };
  const commands: string[] = [];
  const forwarded: number[] = [];
  /** `jumps`: those that were inserted, which are shown again; undefined: all are lost at once. */
  const kernel = { failure: "", jumps: undefined as string[] | undefined };
  const run: RunProgram = async (command, args, input) => {
    const text = [command, ...args].join(" ");
    if (kernel.failure !== "" && text.startsWith(kernel.failure)) throw new ProgramError(`${text}: no`, 2);
    if (input !== undefined) commands.push(`${text}\n${input}`);
    for (const [, from, rule] of input?.matchAll(/^-I (\S+) (?:\d+ )?(.*)$/gm) ?? []) kernel.jumps?.push(`-A ${from} ${rule}`);
    if (args.includes("-S")) return kernel.jumps?.filter((line) => line.startsWith(`-A ${args.at(-1)} `)).join("\n") ?? "";
    return text === "ip -j -d address show" ? JSON.stringify([eth0]) : "";
  };
  const clock = newFakeClock();
  const events: string[] = [];
  const metrics = newMetricsRegistry();
  const network = new PodNetwork({
    ...{ nodeName: "m1", settings, clock, log: discardLogger },
    host: { run, hasIpv6: async () => true, forward: (family) => void forwarded.push(family) },
    nodes: () => nodes,
    notify: (...words) => void events.push(words.join(" ")),
    metrics: newPodNetworkMetrics(metrics),
  });
  const config = (): string => readFileSync(settings.configPath, "utf8");
  return { folder, plugins, settings, commands, forwarded, kernel, run, clock, events, metrics, network, nodes, config };
}

test("the configuration names the node's range, the MTU and Debian's plugins", async (t) => {
  const { network, config } = setUp(t);
  await network.sync();
  network.check();
  const { plugins, name, cniVersion } = JSON.parse(config());
  assert.deepEqual([name, cniVersion], ["test", "0.4.0"]);
  hasFields(plugins[0], {
    ...{ type: "bridge", bridge: "cox0", isGateway: true, hairpinMode: true, mtu: 1450 },
    ipam: { type: "host-local", ranges: [[{ subnet: "10.77.1.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
  });
  assert.equal(plugins[0].ipMasq, undefined);
  assert.deepEqual(plugins[1], { type: "portmap", capabilities: { portMappings: true }, snat: true });
});

test("another range of the node is written and reported, the first and the same one are not", async (t) => {
  const { network, nodes, events, config } = setUp(t);
  await network.sync();
  await network.sync();
  assert.deepEqual(events, []);
  nodes.splice(0, 1, aNode("m1", ["10.77.9.0/24", "fd00:9::/64"], ["192.168.77.1"]));
  await network.sync();
  assert.match(
    config(),
    /"subnet": "10\.77\.9\.0\/24"[\s\S]*"subnet": "fd00:9::\/64"[\s\S]*"dst": "0\.0\.0\.0\/0"[\s\S]*"dst": "::\/0"/,
  );
  assert.deepEqual(events, [
    "Warning PodCIDRChanged the pod range is 10.77.9.0/24, fd00:9::/64, it was 10.77.1.0/24; pods with addresses of the old one reach no other node until they are made anew",
  ]);
});

test("a draft of a process that was killed is no configuration, and is gone after the next write", async (t) => {
  const { network, settings, config } = setUp(t);
  mkdirSync(settings.configFolder);
  writeFileSync(join(settings.configFolder, ".10-coxswain.conflist.new"), '{"cniVersion"');
  await network.sync();
  assert.deepEqual(readdirSync(settings.configFolder), ["10-coxswain.conflist"]);
  assert.equal(JSON.parse(config()).name, "test");
  assert.equal(await writeConfig(settings.configPath, config()), false, "the same text is not written again");
});

test("without a plugin the node does not get ready, and its routes are made", async (t) => {
  const other = aNode("m2", ["10.77.2.0/24"], ["192.168.77.2"]);
  const { network, plugins, settings, events, commands } = setUp(t, { nodes: [me, other] });
  rmSync(join(plugins, "portmap"));
  await network.sync();
  const message = `the CNI plugins portmap are not in ${plugins}; install them (Debian: containernetworking-plugins) or name their folder in --cni-bin-dir`;
  assert.throws(() => network.check(), new Error(message));
  assert.deepEqual(events, [`Warning PluginMissing ${message}`]);
  assert.ok(!existsSync(settings.configPath));
  assert.match(commands.join(), /route replace 10\.77\.2\.0\/24 via 192\.168\.77\.2 dev eth0 proto 77/);
  await network.sync();
  assert.equal(events.length, 1, "it is reported once");
  writeFileSync(join(plugins, "portmap"), "", { mode: 0o755 });
  await network.sync();
  network.check();
  assert.ok(existsSync(settings.configPath));
});

test("a node without a range is reported, and what is there stays", async (t) => {
  const { network, nodes, events, config, commands } = setUp(t);
  await network.sync();
  const before = config();
  nodes.splice(0, 1, aNode("m1", [], ["192.168.77.1"]));
  const reported = commands.length;
  await network.sync();
  assert.throws(
    () => network.check(),
    /the Node m1 has no spec\.podCIDR; run kube-controller-manager with --allocate-node-cidrs/,
  );
  nodes.splice(0, 1);
  await network.sync();
  assert.throws(() => network.check(), /there is no Node m1 yet/);
  assert.deepEqual([events.length, commands.length, config()], [1, reported, before]);
});

test("another configuration is left alone, also one that took the place of this program's", async (t) => {
  const { network, settings, events, metrics } = setUp(t);
  mkdirSync(settings.configFolder);
  writeFileSync(settings.configPath, '{"name":"theirs"}');
  await network.sync();
  await network.sync();
  network.check();
  assert.equal(readFileSync(settings.configPath, "utf8"), '{"name":"theirs"}');
  assert.deepEqual(events, [`Normal OtherPodNetwork the pod network is left to ${settings.configPath}`]);
  assert.match(await metrics.render(), /^coxswain_pod_network_active 0$/m);
});

test("files that no container runtime reads are no other network", async (t) => {
  const { network, settings } = setUp(t);
  mkdirSync(settings.configFolder);
  writeFileSync(join(settings.configFolder, "README"), "");
  writeFileSync(join(settings.configFolder, "05-flannel.conflist.bak"), "");
  await network.sync();
  assert.ok(existsSync(settings.configPath));
});

test("a failure of the kernel is reported and tried again, with everything", async (t) => {
  const { network, kernel, clock, events, metrics, commands, settings } = setUp(t);
  const ending = new AbortController();
  kernel.failure = "iptables-restore";
  const running = network.run(ending.signal);
  await waitFor(() => events.length === 1);
  assert.match(events[0] as string, /^Warning SyncFailed iptables-restore .*: no/);
  assert.throws(() => network.check(), /iptables-restore/);
  assert.ok(!existsSync(settings.configPath), "the node is not ready before its rules are there");
  kernel.failure = "";
  await clock.advance(1_000);
  await waitFor(() => existsSync(settings.configPath));
  await waitFor(async () => /^coxswain_pod_network_problems 0$/m.test(await metrics.render()));
  assert.match(await metrics.render(), /^coxswain_pod_network_sync_failures_total 1$/m);
  assert.equal(commands.filter((text) => text.includes("COX-NET-MASQ -s 10.77.1.0/24 -j MASQUERADE")).length, 1);
  assert.ok(!commands.some((text) => text.includes("-j DROP")), "the port of VXLAN is not closed where there is none");
  ending.abort();
  await running;
});

test("after each failure the rules are written again, and a failure that returns is reported again", async (t) => {
  const { network, kernel, clock, events, commands, settings } = setUp(t);
  const ending = new AbortController();
  kernel.jumps = [];
  const running = network.run(ending.signal);
  const written = (): number => commands.filter((text) => text.includes("COX-NET-MASQ -s 10.77.1.0/24 -j MASQUERADE")).length;
  await waitFor(() => existsSync(settings.configPath));
  await clock.advance(30_100);
  await settle(50);
  assert.equal(written(), 1, "what is there is not written again");
  for (const times of [1, 2]) {
    kernel.failure = "ip ";
    await clock.advance(30_100);
    await waitFor(() => events.length === times, { what: `event ${times}`, timeoutMs: 10_000 });
    assert.match(events[times - 1] as string, /^Warning SyncFailed ip /);
    kernel.failure = "";
    const failed = written();
    await clock.advance(30_100);
    await waitFor(() => written() > failed, { what: "the rules", timeoutMs: 5_000 });
    network.check();
  }
  await clock.advance(30_100);
  await settle(50);
  assert.equal(written(), 3);
  ending.abort();
  await running;
});

test("a change is taken up at once, and the kernel is looked at now and then", async (t) => {
  const other = aNode("m2", ["10.77.2.0/24"], ["192.168.77.2"]);
  const { network, clock, nodes, commands, settings } = setUp(t);
  const ending = new AbortController();
  const running = network.run(ending.signal);
  const routes = (): number => commands.filter((text) => text.includes("route replace 10.77.2.0/24")).length;
  await waitFor(() => existsSync(settings.configPath));
  nodes.push(other);
  network.changed();
  await clock.advance(100);
  await waitFor(() => routes() === 1);
  for (let i = 0; i < 20; i++) {
    await settle(20);
    await clock.advance(100);
  }
  assert.equal(routes(), 1, "once for one change");
  await clock.advance(30_000);
  await waitFor(() => routes() === 2); // this kernel has forgotten it
  ending.abort();
  await running;
});

test("a process without this part removes what one with it has left, and nothing else", async (t) => {
  const { network, settings, run } = setUp(t);
  assert.equal(await withdrawLeftOver(settings, run), false);
  await network.sync();
  assert.equal(await withdrawLeftOver(settings, run), true);
  assert.ok(!existsSync(settings.configPath));
  writeFileSync(settings.configPath, '{"name":"theirs"}');
  assert.equal(await withdrawLeftOver(settings, run), false);
  assert.ok(existsSync(settings.configPath));
});

test("packets of both families are forwarded, and routes are counted by their kind", async (t) => {
  const own = aNode("m1", ["10.77.1.0/24", "fd00:1::/64"], ["192.168.77.1"]);
  const others = [
    aNode("m2", ["10.77.2.0/24"], ["192.168.77.2"]),
    aNode("m3", ["10.77.3.0/24"], ["192.168.77.3"]),
    aNode("m4", ["10.77.4.0/24"], ["192.168.78.4"]),
  ];
  const { network, forwarded, metrics } = setUp(t, { nodes: [own, ...others] });
  await network.sync();
  assert.deepEqual(forwarded, [4, 6]);
  const shown = await metrics.render();
  assert.match(shown, /^coxswain_pod_network_routes\{type="host-gateway"\} 2$/m);
  assert.match(shown, /^coxswain_pod_network_routes\{type="vxlan"\} 1$/m);
});

test("a missing plugin hides no other problem", async (t) => {
  const twin = aNode("m2", ["10.77.1.0/24"], ["192.168.77.2"]);
  const { network, plugins, events } = setUp(t, { nodes: [me, twin] });
  rmSync(join(plugins, "portmap"));
  await network.sync();
  assert.deepEqual(
    events.map((event) => event.split(" ")[1]),
    ["PluginMissing", "PodCIDRConflict"],
  );
});

test("each time another network comes this one is withdrawn, and its rules are written again when that has gone", async (t) => {
  const { network, settings, events, commands, kernel } = setUp(t);
  kernel.jumps = [];
  const other = join(settings.configFolder, "05-flannel.conflist");
  const written = (): number => commands.filter((text) => text.includes("COX-NET-MASQ -s 10.77.1.0/24 -j MASQUERADE")).length;
  await network.sync();
  for (const times of [1, 2]) {
    const before = written();
    writeFileSync(other, "{}");
    await network.sync();
    assert.ok(!existsSync(settings.configPath), `${times}`);
    assert.equal(events.length, times);
    rmSync(other);
    await network.sync();
    await network.sync();
    assert.equal(written(), before + 1, `${times}`);
    assert.ok(existsSync(settings.configPath));
  }
});

test("of several configurations of others the first by name is the one that a container runtime finds", async (t) => {
  const { settings } = setUp(t);
  mkdirSync(settings.configFolder);
  for (const name of ["20-b.conflist", "10-a.conf", "30-c.json"]) writeFileSync(join(settings.configFolder, name), "{}");
  const found: (string | undefined)[] = [];
  for (const name of ["10-a.conf", "20-b.conflist", "30-c.json"]) {
    found.push(await otherNetwork(settings));
    rmSync(join(settings.configFolder, name));
  }
  assert.deepEqual(
    [...found, await otherNetwork(settings)],
    [...["10-a.conf", "20-b.conflist", "30-c.json"].map((name) => join(settings.configFolder, name)), undefined],
  );
});

test("plugins are looked for in all folders, and have to be programs", async (t) => {
  const { folder, plugins } = setUp(t);
  const second = join(folder, "second");
  mkdirSync(second);
  assert.equal(missingPlugins([second, plugins]), undefined);
  rmSync(join(plugins, "portmap"));
  writeFileSync(join(second, "portmap"), "", { mode: 0o755 });
  assert.equal(missingPlugins([plugins, second]), undefined);
  chmodSync(join(second, "portmap"), 0o644);
  assert.match(missingPlugins([plugins, second])?.message ?? "", /^the CNI plugins portmap are not in /);
});

test("the bridge is removed with the network, unless a pod is on it", async (t) => {
  const { settings } = setUp(t);
  for (const { ports, want } of [
    { ports: "", want: true },
    { ports: "[]", want: true },
    { ports: '[{"ifname":"veth1"}]', want: false },
  ]) {
    const calls: string[] = [];
    await withdraw(settings, async (program, args) => {
      const text = [program, ...args].join(" ");
      calls.push(text);
      if (text === "ip -j -d address show") return JSON.stringify([{ ifname: "cox0", linkinfo: { info_kind: "bridge" } }]);
      return text === "ip -j link show master cox0" ? ports : "";
    });
    assert.equal(calls.includes("ip link delete dev cox0"), want, ports);
  }
  const foreign: string[] = [];
  await withdraw(settings, async (program, args) => {
    foreign.push([program, ...args].join(" "));
    return foreign.at(-1) === "ip -j -d address show" ? JSON.stringify([{ ifname: "cox0" }]) : "";
  });
  assert.ok(!foreign.includes("ip link delete dev cox0"), "an interface of the name that is no bridge");
});

test("a marked route is this cluster's when it is in the cluster's networks, or those are not known", () => {
  const isOurs = (destination: string, ...clusterCidrs: string[]): boolean =>
    isOurRoute({ destination, gateway: "", link: "" }, { clusterCidrs });
  assert.deepEqual(
    [
      isOurs("10.77.2.0/24", "10.77.0.0/16"),
      isOurs("10.78.2.0/24", "10.77.0.0/16"),
      isOurs("10.0.0.0/8", "10.77.0.0/16"),
      isOurs("fd00:77::/64", "10.77.0.0/16"),
      isOurs("fd00:77::/64", "10.77.0.0/16", "fd00::/16"),
      isOurs("10.78.2.0/24"),
    ],
    [true, false, false, false, true, true],
  );
});

test("a network that ends while it looks at the kernel does not wait for the next look", async (t) => {
  const { network, clock } = setUp(t);
  const ending = new AbortController();
  let hasEnded = false;
  void network.run(ending.signal).then(() => (hasEnded = true));
  ending.abort(new Error("the part ends"));
  await waitFor(() => hasEnded, { timeoutMs: 5_000, what: "the end" });
  assert.equal(clock.waiting, 0);
});
