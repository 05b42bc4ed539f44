/** What the two parts follow: which changes of the cluster lead to other addresses, and which to none. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpointSlices, nodes, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "../flags.ts";
import type { PartContext, StartPart } from "../part.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { startLoadBalancerAddresses } from "./addresses-part.ts";
import type { AddressHost } from "./local-addresses.ts";
import { excludedLabel } from "./names.ts";
import { startLoadBalancers } from "./part.ts";

const aNode = (name: string, address: string, { ready = "True", labels = {}, kubeletPort = 10_250 } = {}): Node => ({
  metadata: { name, labels },
  spec: {},
  status: {
    conditions: [{ type: "Ready", status: ready as "True" }],
    addresses: [{ type: "InternalIP", address }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  },
});
const balanced = (name: string, port = 80, spec: Partial<Service["spec"]> = {}): Service =>
  aService(name, { type: "LoadBalancer", ports: [{ port, protocol: "TCP" }], ...spec });

async function start(
  t: TestContext,
  part: StartPart,
  { pool = [], ...objects }: Parameters<typeof newFakeClient>[0] & { pool?: string[] } = {},
) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock, ...objects });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  const events: string[] = [];
  const errors: string[] = [];
  const log = { ...discardLogger, error: (text: string) => void errors.push(text) };
  const context = {
    ...{ nodeName: "n1", client, informers, clock, log, metrics: newMetricsRegistry(), signal: ending.signal },
    flags: {
      ...{ "load-balancer-pool": pool, "load-balancer-reserved-ports": ["22"], "iptables-chain-prefix": "COX-" },
    } as unknown as ServicesFlags,
    turns: newUnlimitedTurns(),
    reconnection: new Reconnection({ periodMs: () => 500, clock }),
    recorder: {
      event: (object: Service, type: string, reason: string) => void events.push(`${object.metadata.name} ${type} ${reason}`),
      flush: async () => {},
    },
    fail: assert.fail,
  } as unknown as PartContext;
  informers.start(ending.signal);
  const running = await part(context);
  const stop = async (): Promise<void> => {
    ending.abort(new Error("the part ends"));
    await running.stop?.();
  };
  t.after(stop);
  const passed = async (): Promise<void> => {
    await settle();
    await clock.advance(500);
    await settle();
  };
  const addressesOf = async (name: string): Promise<string> => {
    await passed();
    return (client.object<Service>(services, `default/${name}`)?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
  };
  return { client, clock, events, errors, part: running, passed, addressesOf, stop };
}

const twoNodes = [aNode("n1", "10.0.0.1"), aNode("n2", "10.0.0.2")];

test("addresses follow the nodes: one that gets ready, is excluded, has another address, or is removed", async (t) => {
  const objects = [...twoNodes.map((one) => [nodes, one] as const), [services, balanced("a")] as const];
  const { client, addressesOf } = await start(t, startLoadBalancers, { objects });
  assert.equal(await addressesOf("a"), "10.0.0.1,10.0.0.2");
  client.put(nodes, aNode("n2", "10.0.0.2", { ready: "False" }));
  assert.equal(await addressesOf("a"), "10.0.0.1");
  client.put(nodes, aNode("n2", "10.0.0.2"));
  assert.equal(await addressesOf("a"), "10.0.0.1,10.0.0.2");
  client.put(nodes, aNode("n2", "10.0.0.2", { labels: { [excludedLabel]: "" } }));
  assert.equal(await addressesOf("a"), "10.0.0.1");
  client.put(nodes, aNode("n2", "10.0.0.2"));
  assert.equal(await addressesOf("a"), "10.0.0.1,10.0.0.2");
  const going = aNode("n2", "10.0.0.2");
  client.put(nodes, { ...going, metadata: { ...going.metadata, deletionTimestamp: "2022-01-01T00:00:00Z" } });
  assert.equal(await addressesOf("a"), "10.0.0.1", "it is being deleted");
  client.put(nodes, aNode("n1", "10.0.0.9"));
  assert.equal(await addressesOf("a"), "10.0.0.9");
  client.put(nodes, aNode("n3", "10.0.0.3"));
  assert.equal(await addressesOf("a"), "10.0.0.3,10.0.0.9");
  client.remove(nodes, "n1");
  assert.equal(await addressesOf("a"), "10.0.0.3");
});

test("a port of a kubelet is no Service's, also from when the kubelet says another one", async (t) => {
  const objects = [
    [nodes, aNode("n1", "10.0.0.1")],
    [services, balanced("a", 10_250)],
    [services, balanced("b", 10_350)],
  ] as const;
  const { client, events, addressesOf } = await start(t, startLoadBalancers, { objects });
  assert.deepEqual([await addressesOf("a"), await addressesOf("b")], ["", "10.0.0.1"]);
  assert.deepEqual(events, ["a Warning PortConflict", "b Normal AddressAssigned"]);
  client.put(nodes, aNode("n1", "10.0.0.1", { kubeletPort: 10_350 }));
  assert.deepEqual([await addressesOf("a"), await addressesOf("b")], ["10.0.0.1", ""]);
});

test("with policy Local addresses follow the ready endpoints", async (t) => {
  const local = balanced("a", 80, { externalTrafficPolicy: "Local" });
  const objects = [...twoNodes.map((one) => [nodes, one] as const), [services, local] as const];
  const { client, addressesOf } = await start(t, startLoadBalancers, { objects });
  assert.equal(await addressesOf("a"), "");
  const unready = anEndpoint("10.1.0.2", "n2", { conditions: { ready: false } });
  client.put(endpointSlices, aSlice("a", [anEndpoint("10.1.0.1", "n1"), unready]));
  assert.equal(await addressesOf("a"), "10.0.0.1");
  client.put(endpointSlices, aSlice("a", [anEndpoint("10.1.0.1", "n1"), anEndpoint("10.1.0.2", "n2", { conditions: {} })]));
  assert.equal(await addressesOf("a"), "10.0.0.1,10.0.0.2");
  client.remove(endpointSlices, "default/a-1");
  assert.equal(await addressesOf("a"), "");
});

test("the part is not healthy while a status cannot be written", async (t) => {
  const objects = [
    [nodes, aNode("n1", "10.0.0.1")],
    [services, balanced("a")],
  ] as const;
  const { client, clock, part, addressesOf } = await start(t, startLoadBalancers, { objects });
  assert.equal(await addressesOf("a"), "10.0.0.1");
  await part.check?.();
  let isAway = true;
  client.react("update", "services", () => {
    if (isAway) throw internalError("etcd is away");
  });
  client.put(nodes, aNode("n1", "10.0.0.2"));
  await addressesOf("a");
  assert.throws(() => part.check?.(), /etcd is away/);
  isAway = false;
  await clock.advance(1_000);
  assert.equal(await addressesOf("a"), "10.0.0.2");
  await part.check?.();
});

const aPod = (name: string, hostPort: number, nodeName = "n1"): Pod => ({
  metadata: { namespace: "default", name },
  spec: { nodeName, containers: [{ name: "c", ports: [{ containerPort: 80, hostPort, protocol: "TCP" }] }] },
  status: { phase: "Running" },
});

test("without a pool a host port that a Service takes is an event on the Service: once, and again when it returns", async (t) => {
  const objects = [
    [nodes, aNode("n1", "10.0.0.1")],
    [services, aService("a", { type: "LoadBalancer" }, ["10.0.0.1"])],
    [pods, aPod("elsewhere", 80, "n2")],
  ] as const;
  const { client, events, passed } = await start(t, startLoadBalancerAddresses, { objects });
  await passed();
  assert.deepEqual(events, [], "a pod of another node");
  client.remove(nodes, "n1");
  client.put(pods, aPod("early", 80));
  await passed();
  assert.deepEqual(events, [], "the node's addresses are not known");
  client.remove(pods, "default/early");
  client.put(nodes, aNode("n1", "10.0.0.1"));
  await passed();
  client.put(pods, aPod("web", 80));
  await passed();
  assert.deepEqual(events, ["a Warning HostPortConflict"]);
  client.put(services, aService("other", { type: "ClusterIP" }));
  await passed();
  assert.equal(events.length, 1, "it is known");
  client.remove(pods, "default/web");
  await passed();
  client.put(pods, aPod("web", 80));
  await passed();
  assert.equal(events.length, 2, "it is another pod");
});

test("changes that come together are looked at once, and after the end nothing is", async (t) => {
  const objects = [
    [nodes, aNode("n1", "10.0.0.1")],
    [services, aService("a", { type: "LoadBalancer" }, ["10.0.0.1"])],
  ] as const;
  const { client, clock, events, stop, passed } = await start(t, startLoadBalancerAddresses, { objects });
  await passed();
  const before = clock.waiting;
  client.put(pods, aPod("web", 80));
  client.put(pods, aPod("web-2", 81));
  await settle();
  assert.equal(clock.waiting, before + 1);
  await stop();
  await clock.advance(1_000);
  assert.deepEqual(events, []);
});

const local = (name: string, ip: string): Service =>
  aService(name, { type: "LoadBalancer", externalTrafficPolicy: "Local" }, [ip]);

test("with a pool this node holds the addresses of its Services, and gives back those that an earlier process left", async (t) => {
  const objects = [
    [nodes, aNode("n1", "10.0.0.1")],
    [services, aService("a", { type: "LoadBalancer" }, ["192.0.2.5"])],
    [endpointSlices, aSlice("a", [anEndpoint("10.1.0.1", "n1")])],
    [services, local("near", "192.0.2.7")],
    [endpointSlices, aSlice("near", [anEndpoint("10.1.0.2", "n1")])],
    [services, local("far", "192.0.2.8")],
    [endpointSlices, aSlice("far", [anEndpoint("10.1.0.3", "n2")])],
  ] as const;
  const calls: string[] = [];
  const left = ["192.0.2.5", "192.0.2.9", "198.51.100.1"].map((local) => ({ local, prefixlen: 32 }));
  const host: AddressHost = {
    async run(program, args, input = "") {
      const text = [program, ...args].join(" ");
      if (text === "ip -j -d address show")
        return JSON.stringify([{ ifname: "eth0", addr_info: [{ local: "10.0.0.1", prefixlen: 24 }, ...left] }]);
      if (program === "ip") calls.push(`${text} ${input}`.trim());
      if (text.includes("192.0.2.9")) throw new Error("ip: killed by SIGKILL");
      return "";
    },
    async send() {},
    set() {},
  };
  const { client, errors, part, passed, stop } = await start(t, (context) => startLoadBalancerAddresses(context, host), {
    objects,
    pool: ["192.0.2.0/24"],
  });
  assert.deepEqual(calls.splice(0), ["ip address delete 192.0.2.9/32 dev eth0"]);
  assert.deepEqual(errors, ["cannot remove the addresses of an earlier process"], "and the part goes on");
  const bound = async (ip: string): Promise<boolean> => {
    await passed();
    return calls.some((text) => text.includes(`address replace ${ip}/32 dev eth0`));
  };
  await waitFor(() => bound("192.0.2.5"), { what: "the address" });
  await waitFor(() => bound("192.0.2.7"), { what: "the address of the Service with an endpoint here" });
  assert.equal(await bound("192.0.2.8"), false, "the endpoints are elsewhere");
  await part.check?.();
  client.put(services, aService("a", { type: "LoadBalancer" }, ["192.0.2.6"]));
  await waitFor(() => bound("192.0.2.6"), { what: "the other address" });
  assert.ok(calls.includes("ip address delete 192.0.2.5/32 dev eth0"));
  calls.length = 0;
  await stop();
  const given = ["192.0.2.6", "192.0.2.7"].map((ip) => `ip address delete ${ip}/32 dev eth0`);
  assert.deepEqual(calls.sort(), given, "given up at the end");
});
