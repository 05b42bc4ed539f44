import assert from "node:assert/strict";
import { existsSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aNode, newSite, type Pod, podNetworkOf } from "../testing/machines.ts";
import { silenceMs } from "../testing/namespace-agent.ts";
import { needsRoot } from "../testing/namespaces.ts";
import { startRules } from "../testing/node-network.ts";
import { aService } from "../testing/objects.ts";
import { withdraw } from "./withdraw.ts";

const port = 8080;
/** What a server of the pod answers to another pod: its name and the client's address. */
const talk = async (from: Pod, to: Pod, index = 0, more: { readonly timeoutMs?: number } = {}): Promise<string> =>
  (await from.namespace.ask({ protocol: "tcp", host: to.addresses[index] as string, port, ...more }))[0] as string;

test("pods of three machines reach each other, by routes and in VXLAN", { skip: needsRoot }, async (t) => {
  const site = await newSite(t);
  const [m1, m2, m3] = await Promise.all([
    site.addMachine("m1", "a", 1),
    site.addMachine("m2", "a", 2),
    site.addMachine("m3", "b", 3),
  ]);
  const nodes = [
    aNode("m1", ["10.77.1.0/24", "fd00:77:1::/64"], ["192.168.77.1", "fd77::1"]),
    aNode("m2", ["10.77.2.0/24", "fd00:77:2::/64"], ["192.168.77.2", "fd77::2"]),
    aNode("m3", ["10.77.3.0/24", "fd00:77:3::/64"], ["192.168.78.3", "fd78::3"]),
  ];
  const all = [m1, m2, m3].map((machine) => podNetworkOf(machine, nodes));
  const [one] = all as [(typeof all)[0]];
  for (const { network } of all) {
    await network.sync();
    network.check();
  }
  const [p1, p2, p3] = await Promise.all([site.addPod(m1, "p1"), site.addPod(m2, "p2"), site.addPod(m3, "p3")]);

  await t.test("each sees the other's own address", async () => {
    for (const index of [0, 1]) {
      for (const [from, to, name] of [
        [p1, p2, "p2"],
        [p2, p1, "p1"],
        [p1, p3, "p3"],
        [p3, p2, "p2"],
      ] as const) {
        const client = from.addresses[index] as string;
        // The kernel finds no IPv6 neighbours until it knows that its link-local address is free, a second or two.
        if (index === 1) await waitFor(async () => (await talk(from, to, index, { timeoutMs: silenceMs })) !== "timeout");
        assert.equal(await talk(from, to, index), `${name} ${client}`);
      }
    }
  });

  await t.test("a machine reaches pods of others, and its own", async () => {
    for (const [pod, name] of [
      [p1, "p1"],
      [p2, "p2"],
      [p3, "p3"],
    ] as const) {
      const [answer] = await m1.namespace.ask({ protocol: "tcp", host: pod.addresses[0] as string, port });
      assert.match(answer as string, new RegExp(`^${name} `));
    }
  });

  await t.test("others see the machine's address", async () => {
    await site.router.request({ op: "listen", name: "router", port });
    assert.equal((await p1.namespace.ask({ protocol: "tcp", host: "192.168.77.254", port }))[0], "router 192.168.77.1");
  });

  await t.test("the MTU of pods leaves room for VXLAN", async () => {
    const [link] = JSON.parse(await p1.namespace.ip("-j link show eth0")) as { mtu: number }[];
    assert.equal(link?.mtu, 1450);
  });

  await t.test("a second look, also of another process, finds nothing to do", async () => {
    const before = await rulesAndRoutes(m1);
    for (const { network } of [one, podNetworkOf(m1, nodes)]) await network.sync();
    assert.equal(await rulesAndRoutes(m1), before);
    assert.equal(await talk(p1, p3), `p3 ${p1.addresses[0]}`);
  });

  await t.test("VXLAN is accepted from nodes only, and no pod may send it", async () => {
    const rules = await m3.namespace.run("iptables-save", ["-t", "filter"]);
    assert.match(rules, /-A INPUT -p udp -m udp --dport 8472 -j COX-NET-VXLAN\n/);
    const accepted = [...rules.matchAll(/-A COX-NET-VXLAN (.*)\n/g)].map(([, rule]) => rule);
    assert.deepEqual(accepted, ["-s 192.168.77.1/32 -j RETURN", "-s 192.168.77.2/32 -j RETURN", "-j DROP"]);
    await site.router.request({ op: "listen", name: "router", port: 8472 });
    const asked = { protocol: "udp", host: "192.168.77.254", port: 8472 } as const;
    assert.deepEqual(await p1.namespace.ask({ ...asked, timeoutMs: silenceMs }), ["timeout"]);
    assert.deepEqual(await m1.namespace.ask(asked), ["router 192.168.77.1"]);
  });

  await t.test("links, routes and rules that were removed from the kernel are created again", async () => {
    const before = await rulesAndRoutes(m1);
    await m1.namespace.ip("link delete cox0-vx");
    await m1.namespace.ip("route delete 10.77.2.0/24");
    for (const rule of ["-t nat -F COX-NET-MASQ", "-D FORWARD -j COX-NET-FORWARD"])
      await m1.namespace.run("iptables", rule.split(" "));
    await one.network.sync();
    assert.equal(await rulesAndRoutes(m1), before);
    assert.equal(await talk(p1, p3), `p3 ${p1.addresses[0]}`);
  });

  await t.test("routes to a node that was deleted go, and come with its next pod range", async () => {
    const [m3Node] = nodes.splice(2, 1);
    await one.network.sync();
    const routes = async (): Promise<string> => m1.namespace.ip("route show proto 77");
    assert.doesNotMatch(await routes(), /10\.77\.3/);
    assert.match(await talk(p1, p3, 0, { timeoutMs: silenceMs }), /timeout|EHOSTUNREACH|ENETUNREACH/);
    await assert.rejects(m1.namespace.ip("link show cox0-vx"), /does not exist/);
    nodes.push(aNode("m3", ["10.77.4.0/24"], ["192.168.78.3"], "2024-02-01T00:00:00Z"));
    await one.network.sync();
    assert.match(await routes(), /10\.77\.4\.0\/24 via 10\.77\.4\.0 dev cox0-vx onlink/);
    nodes.splice(2, 1, m3Node as (typeof nodes)[0]);
    for (const { network } of all) await network.sync();
    assert.equal(await talk(p1, p3), `p3 ${p1.addresses[0]}`);
  });

  await t.test("a node whose own pod range has changed gets pods with new addresses", async () => {
    nodes.splice(1, 1, aNode("m2", ["10.77.9.0/24"], ["192.168.77.2", "fd77::2"]));
    for (const { network } of all) await network.sync();
    assert.match(
      (all[1] as (typeof all)[0]).events.join("\n"),
      /^Warning PodCIDRChanged the pod range is 10\.77\.9\.0\/24, it was 10\.77\.2\.0/m,
    );
    const p4 = await site.addPod(m2, "p4");
    assert.match(p4.addresses[0] as string, /^10\.77\.9\./);
    assert.equal(await talk(p1, p4), `p4 ${p1.addresses[0]}`);
    assert.equal(await talk(p3, p4), `p4 ${p3.addresses[0]}`);
  });

  await t.test("another network's configuration ends this one, and its end begins it again", async () => {
    const other = join(m1.folder, "05-flannel.conflist");
    writeFileSync(other, "{}");
    await one.network.sync();
    one.network.check();
    assert.deepEqual(one.events, [`Normal OtherPodNetwork the pod network is left to ${other}`]);
    assert.ok(!existsSync(m1.settings.configPath));
    assert.doesNotMatch(await rulesAndRoutes(m1), /COX-|proto 77|cox0-vx/);
    unlinkSync(other);
    await one.network.sync();
    assert.equal(await talk(p1, p3), `p3 ${p1.addresses[0]}`);
  });

  await t.test("connections that the rules of Services reject are rejected, whichever rules came first", async () => {
    const rules = startRules(t, m1.namespace);
    await rules.put([aService("empty", { clusterIP: "10.96.0.11" })]);
    const asked = { protocol: "tcp", host: "10.96.0.11", port: 80 } as const;
    const ask = () => p1.namespace.ask(asked);
    assert.deepEqual(await ask(), ["refused"], "those of Services came last");
    const iptables = (rule: string) => m1.namespace.run("iptables", rule.split(" "));
    await iptables("-D FORWARD -j COX-NET-FORWARD");
    await one.network.sync();
    assert.deepEqual(await ask(), ["refused"], "those of the pod network came last");
    await iptables("-D FORWARD -j COX-NET-FORWARD");
    await iptables("-I FORWARD -j COX-NET-FORWARD");
    assert.notDeepEqual(await p1.namespace.ask({ ...asked, timeoutMs: silenceMs }), ["refused"]);
    await one.network.sync();
    assert.deepEqual(await ask(), ["refused"], "a jump at the wrong place is moved");
    assert.equal(await talk(p1, p3), `p3 ${p1.addresses[0]}`);
  });

  await t.test("all of it can be removed", async () => {
    await withdraw(m3.settings, m3.run);
    assert.ok(!existsSync(m3.settings.configPath));
    assert.doesNotMatch(await rulesAndRoutes(m3), /COX-|cox0-vx/);
    assert.equal(await m3.namespace.ip("route show proto 77"), "");
  });
});

async function rulesAndRoutes({ namespace }: Pick<Pod, "namespace">): Promise<string> {
  const parts = await Promise.all([
    namespace.ip("route show"),
    namespace.ip("-6 route show proto 77"),
    namespace.run("iptables", ["-S"]),
    namespace.run("iptables", ["-t", "nat", "-S"]),
    namespace.run("ip6tables", ["-S"]),
  ]);
  return parts.join("\n");
}
