/** Services, EndpointSlices and Ingresses as large as the API server stores: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { types } from "./dns/protocol.ts";
import { addressKeysOf, recordsOfSlice } from "./dns/service-records.ts";
import { newZone } from "./dns/zone.ts";
import { Backends } from "./ingress/backends.ts";
import { makingRouteTable } from "./ingress/routes.ts";
import { anIngress } from "./ingress/testing.ts";
import { assignAddresses } from "./load-balancers/assign.ts";
import { Pool } from "./load-balancers/pool.ts";
import { commandsFor } from "./pod-network/kernel-state.ts";
import { isProblem, planNetwork } from "./pod-network/plan.ts";
import { portRules } from "./services/port-rules.ts";
import { RuleSet } from "./services/rule-set.ts";
import { servicePorts } from "./services/service-port.ts";
import { aNode, settingsIn } from "./testing/machines.ts";
import { testSettings } from "./testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "./testing/objects.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const ip = (at: number): string => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
const ports = (count: number) => many(count, (at) => ({ name: `p${at}`, port: at + 1, protocol: "TCP" as const }));
const endpoints = (count: number) => many(count, (at) => anEndpoint(ip(at), "n1"));

async function takesNoLongTurn(t: TestContext, turn: () => void): Promise<void> {
  const least = await leastOf(longestTurnMs, async () => cpuMsOf(turn));
  t.diagnostic(`${least} ms`);
  assert.ok(least < longestTurnMs, `${least} ms`);
}

test("the ports of a Service of 20,000 ports and 1,000 endpoints, which gets no rules, are read without a long turn", (t) => {
  const service = aService("web", { ports: ports(20_000) });
  const slices = [aSlice("web", endpoints(1_000), 0, { ports: ports(20_000) })];
  return takesNoLongTurn(t, () => void servicePorts(service, slices, { name: "n1", zone: undefined }, "IPv4"));
});

test("the rules of a Service of 10,000 ports are set, changed and removed without a long turn", async (t) => {
  const service = aService("web", { ports: ports(10_000) });
  const slices = [aSlice("web", endpoints(3), 0, { ports: ports(10_000) })];
  const rules = servicePorts(service, slices, { name: "n1", zone: undefined }, "IPv4").map((one) => portRules(one, testSettings));
  for (const own of [rules, rules.slice(1), []]) {
    const set = new RuleSet(testSettings);
    set.set("default/web", rules);
    set.pending();
    await takesNoLongTurn(t, () => {
      set.set("default/web", own);
      set.pending();
    });
  }
});

test("the rules of 2,000 Services that have one external address in common are put together once", (t) => {
  const rules = many(2_000, (at) => {
    const service = aService(`s${at}`, { externalIPs: ["192.0.2.1"], ports: [{ port: at + 1, protocol: "TCP" }] });
    return servicePorts(service, [aSlice(`s${at}`, endpoints(1))], { name: "n1", zone: undefined }, "IPv4").map((one) =>
      portRules(one, testSettings),
    );
  });
  return takesNoLongTurn(t, () => {
    const set = new RuleSet(testSettings);
    for (const [at, own] of rules.entries()) set.set(`default/s${at}`, own);
    assert.equal(set.pending()?.text.split("192.0.2.1").length, 2_001);
  });
});

for (const { name, pool, spec } of [
  { name: "of a large pool", pool: ["10.9.0.0/16"], spec: {} },
  { name: "of a pool that is exhausted", pool: ["192.0.2.0/24"], spec: {} },
  { name: "of 200 nodes", pool: [], spec: {} },
  { name: "of the nodes with endpoints, of 200", pool: [], spec: { externalTrafficPolicy: "Local" as const } },
]) {
  test(`3,000 Services get addresses ${name} in little time`, (t) => {
    const nodes = many(200, (at) => ({
      ...{ metadata: { name: `n${at}` }, spec: {} },
      status: {
        conditions: [{ type: "Ready", status: "True" as const }],
        addresses: [{ type: "InternalIP", address: `10.1.0.${at}` }],
      },
    }));
    const services = many(3_000, (at) =>
      aService(`s${at}`, { type: "LoadBalancer", ports: [{ port: at + 1, protocol: "TCP" }], ...spec }),
    );
    const cluster = { nodes, services, pool: new Pool(pool), reservedPorts: new Set<number>() };
    return takesNoLongTurn(t, () => {
      const assigned = assignAddresses({ ...cluster, nodesWithEndpoints: () => new Set(["n1"]) });
      assert.equal(assigned.filter(({ addresses }) => addresses.length > 0).length, pool[0] === "192.0.2.0/24" ? 254 : 3_000);
    });
  });
}

test("the routes of 100 Ingresses of 5,000 paths are made in short steps", (t) => {
  const ingresses = many(100, (at) =>
    anIngress(`i${at}`, [{ host: `${at}.test`, paths: many(5_000, (path) => ["Prefix", `/${path}`, "web"]) }]),
  );
  return takesNoLongTurn(t, () => {
    const steps = makingRouteTable(ingresses);
    let [count, longest] = [0, 0];
    for (let done = false; !done; count++)
      longest = Math.max(
        longest,
        cpuMsOf(() => (done = steps.next().done === true)),
      );
    assert.ok(count > 100 && longest < 50, `${count} steps of at most ${longest} ms`);
  });
});

test("a question about a Service of 20,000 ports and 1,000 endpoints is answered without a long turn", (t) => {
  const service = aService("web", { clusterIP: "None", ports: ports(20_000) });
  const slice = aSlice("web", endpoints(1_000), 0, { ports: ports(20_000) });
  const view = {
    ...{ service: () => service, slicesOf: () => [slice] },
    ...{ servicesAt: () => [], slicesAt: () => [], hasNamespace: () => true },
  };
  const zone = newZone(view, { domain: "cluster.local", dnsAddresses: [], podRecords: true, serial: 1 });
  recordsOfSlice(slice);
  return takesNoLongTurn(t, () => assert.ok(zone.find("web.default.svc", types.SRV)?.records.length));
});

test("an EndpointSlice of 100,000 addresses is indexed and its records are made, each without a long turn", async (t) => {
  const slice = () =>
    aSlice(
      "web",
      many(1_000, (at) => ({ addresses: many(100, (i) => ip(100 * at + i)) })),
    );
  const slices = many(3, slice);
  await takesNoLongTurn(t, () => void addressKeysOf(slices[0]!));
  await takesNoLongTurn(t, () => void recordsOfSlice(slices.pop()!));
});

test("the network of 5,000 nodes in VXLAN is planned, and compared with the kernel's, each without a long turn", async (t) => {
  const nodes = many(5_000, (at) =>
    aNode(`n${at}`, [`${ip(256 * at)}/24`], [`172.${16 + (at >> 12)}.${(at >> 4) & 255}.${at & 15}`]),
  );
  const eth0 = { name: "eth0", mtu: 1500, address: "02:00:00:00:00:01", isUp: true, addresses: [{ ip: "172.16.0.0", bits: 32 }] };
  const settings = settingsIn("/net.d");
  const planning = () => planNetwork({ nodeName: "n0", nodes, links: [eth0], families: [4], settings });
  const turns = new Turns();
  const longest = await longestTurnOf(longestTurnMs, async () => void (await turns.run(planning())));
  t.diagnostic(`planned ${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
  const plan = atOnce(planning());
  assert.ok(!isProblem(plan) && plan.vxlan !== undefined);
  const { peers, mac, local, mtu, link } = plan.vxlan;
  assert.equal(peers.length, nodes.length - 1);
  const vxlan = { id: settings.vxlanId, port: settings.vxlanPort, local };
  const state = {
    links: [eth0, { ...{ name: link, mtu, address: mac, kind: "vxlan", isUp: true, vxlan }, addresses: [] }],
    routes: plan.routes,
    neighbours: peers.flatMap((peer) => peer.gateways.map((gateway) => `${gateway} ${peer.mac}`)),
    forwarding: peers.map((peer) => `${peer.mac} ${peer.underlay}`),
  };
  await takesNoLongTurn(t, () => assert.deepEqual(commandsFor(plan, state, settings).bridge, []));
});

test("the backends of an Ingress of 15,000 paths to as many ports are looked up without a long turn", (t) => {
  const service = aService("web", { ports: ports(15_000) });
  const services = { get: () => service };
  const slices = [aSlice("web", endpoints(1_000), 0, { ports: ports(15_000) })];
  return takesNoLongTurn(t, () => {
    const backends = new Backends({ services: services as never, slicesOf: () => slices, isRefused: () => false });
    for (let port = 1; port <= 15_000; port++) assert.ok("urls" in backends.endpointsOf({ service: "default/web", port }));
  });
});
