import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { encode } from "dns-packet";
import type { PartContext } from "../part.ts";
import { startDns } from "./part.ts";
import { startDnsServer } from "./server.ts";
import { aService } from "./testing.ts";

const aNode = (name: string, uid: string, ...ips: string[]): Node => ({
  metadata: { name, uid },
  spec: { podCIDRs: ["10.244.0.0/24"] },
  status: { addresses: ips.map((address) => ({ type: "InternalIP", address })) },
});

async function context(t: TestContext, flags: object = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const failures: string[] = [];
  const partContext = {
    ...{ client, informers, clock, log: discardLogger, nodeName: "n1", metrics: newMetricsRegistry(), signal: ending.signal },
    flags: {
      "cluster-dns": "",
      "dns-port": 0,
      "cluster-domain": "Cluster.Local.",
      "resolv-conf": "/none",
      "dns-client-cidrs": [],
      ...flags,
    },
    fail: (err: unknown) => void failures.push((err as Error).message),
  } as unknown as PartContext;
  informers.start(ending.signal);
  return { client, ending, failures, partContext };
}

test("publishes the tenth address of the range, fails when its Node has other addresses or is another one, and withdraws", async (t) => {
  const { client, ending, failures, partContext } = await context(t);
  await assert.rejects(startDns(partContext), /there is no Node n1 yet/);
  client.put(nodes, aNode("n1", "u1"));
  await settle();
  await assert.rejects(startDns(partContext), /no address of type InternalIP yet/);
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  await settle();
  await assert.rejects(startDns(partContext), /there is no Service default\/kubernetes yet/);
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  await settle();
  const part = await startDns(partContext);
  await waitFor(() => client.objects(endpointSlices).length === 1);
  assert.equal(client.object<Service>(services, "kube-system/kube-dns")?.spec.clusterIP, "10.96.0.10");
  await settle();
  await part.check?.();
  client.put(nodes, aNode("n2", "u2", "192.0.2.2"), aNode("n1", "u1", "127.0.0.1", "127.0.0.9"));
  client.remove(nodes, "n2");
  await settle();
  assert.deepEqual(failures, [], "another node's address, and one that it does not listen on");
  client.put(nodes, aNode("n1", "u1", "127.0.0.2"));
  client.put(nodes, aNode("n1", "u3", "127.0.0.1"));
  await settle();
  assert.equal(failures.length, 2);
  ending.abort();
  await part.stop?.();
  assert.deepEqual(client.objects(endpointSlices), []);
});

/** Whether the server answers within a second. */
async function answers(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  const query = encode({ id: 1, type: "query", questions: [{ name: "kubernetes.default.svc.cluster.local", type: "A" }] });
  const answer = once(socket, "message", { signal: AbortSignal.timeout(1_000) }).then(
    () => true,
    () => false,
  );
  socket.send(query, port, "127.0.0.1");
  const isAnswered = await answer;
  socket.close();
  return isAnswered;
}

test("answers until no pod is sent to it any more", async (t) => {
  const { client, ending, partContext } = await context(t);
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  const part = await startDns(partContext);
  t.after(async () => {
    ending.abort();
    await part.stop?.();
  });
  await waitFor(() => client.objects(endpointSlices).length === 1);
  const port = client.objects<EndpointSlice>(endpointSlices)[0]?.ports[0]?.port as number;
  let isHeardAtWithdrawal = false;
  client.react("delete", "endpointslices", async () => {
    isHeardAtWithdrawal = await answers(port);
    throw notFound(endpointSlices, "gone already");
  });
  ending.abort();
  await part.stop?.();
  assert.equal(isHeardAtWithdrawal, true);
  assert.equal(await answers(port), false);
});

test("withdraws what it was still publishing when it was stopped", async (t) => {
  const { client, ending, partContext } = await context(t);
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  client.react("create", "endpointslices", async ({ sent }) => {
    isHeld = true;
    await held.promise;
    client.put(endpointSlices, sent as EndpointSlice);
    return sent;
  });
  const part = await startDns(partContext);
  await waitFor(() => isHeld);
  ending.abort();
  const stopped = part.stop?.();
  await settle();
  held.resolve();
  await stopped;
  assert.deepEqual(client.objects(endpointSlices), []);
});

/** The real server; what is set is seen, and a loop is pretended. */
function watchedServer() {
  const seen = { isLoop: false, networks: [] as string[] };
  const startServer: typeof startDnsServer = async (options) => {
    const server = await startDnsServer(options);
    return {
      port: server.port,
      get isLoop() {
        return seen.isLoop;
      },
      allow(cidrs) {
        seen.networks.push(cidrs.join());
        server.allow(cidrs);
      },
      close: server.close,
    };
  };
  return { seen, startServer };
}

test("clients are those of the nodes and of --dns-client-cidrs; a Node that is removed takes its clients along", async (t) => {
  const { client, ending, partContext } = await context(t, {
    "dns-client-cidrs": ["198.51.100.0/24"],
    "cluster-dns": "10.96.0.53",
  });
  const { seen, startServer } = watchedServer();
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  const part = await startDns(partContext, startServer);
  t.after(async () => {
    ending.abort();
    await part.stop?.();
  });
  await waitFor(() => client.object<Service>(services, "kube-system/kube-dns")?.spec.clusterIP === "10.96.0.53");
  const other = { ...aNode("n2", "u2", "192.0.2.2"), spec: { podCIDRs: ["10.244.2.0/24"] } };
  client.put(nodes, other);
  await settle();
  client.put(nodes, { ...other, metadata: { ...other.metadata, labels: { heartbeat: "1" } } });
  await settle();
  client.remove(nodes, "n2");
  await settle();
  const own = "10.244.0.0/24,127.0.0.1/32";
  const given = "198.51.100.0/24";
  assert.deepEqual(seen.networks, [`${own},${given}`, `${own},10.244.2.0/24,192.0.2.2/32,${given}`, `${own},${given}`]);
});

test("it listens on the first address of each family, and publishes both", async (t) => {
  const { client, ending, partContext } = await context(t, { "cluster-dns": "10.96.0.53" });
  client.put(nodes, aNode("n1", "u1", "127.0.0.1", "127.0.0.2", "::1", "::2"));
  let listening: readonly string[] = [];
  const part = await startDns(partContext, async ({ addresses }) => {
    listening = addresses;
    return { port: 53, isLoop: false, allow() {}, close: async () => {} };
  });
  t.after(async () => {
    ending.abort();
    await part.stop?.();
  });
  assert.deepEqual(listening, ["127.0.0.1", "::1"]);
  await waitFor(() => client.objects(endpointSlices).length === 2);
  assert.deepEqual(
    client.objects<EndpointSlice>(endpointSlices).map(({ endpoints }) => endpoints[0]?.addresses),
    [["127.0.0.1"], ["::1"]],
  );
});

test("the tenth address of an IPv6 range is published in IPv6; without the objects of the cluster it is not healthy", async (t) => {
  const { client, ending, partContext } = await context(t);
  client.put(nodes, aNode("n1", "u1", "::1"));
  client.put(services, aService("kubernetes", { clusterIP: "fd00:96::1" }));
  const held = Promise.withResolvers<void>();
  client.react("list", "namespaces", async () => {
    await held.promise;
    return { metadata: { resourceVersion: "1" }, items: [] };
  });
  let zone: Parameters<typeof startDnsServer>[0]["zone"] | undefined;
  const part = await startDns(partContext, async (options) => {
    ({ zone } = options);
    return { port: 53, isLoop: false, allow() {}, close: async () => {} };
  });
  t.after(async () => {
    ending.abort();
    await part.stop?.();
  });
  const serial = Date.parse("2022-01-01T00:00:00Z") / 1000;
  assert.deepEqual(zone, { domain: "cluster.local", dnsAddresses: ["fd00:96::a"], podRecords: true, serial });
  await waitFor(() => client.object<Service>(services, "kube-system/kube-dns")?.spec.clusterIP === "fd00:96::a");
  assert.throws(() => part.check?.(), { message: "Services are not known yet" });
  held.resolve();
  await settle(20);
  await part.check?.();
});

test("health tells of a loop and of a Service that belongs to another server", async (t) => {
  const { client, ending, partContext } = await context(t);
  const { seen, startServer } = watchedServer();
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  const part = await startDns(partContext, startServer);
  t.after(async () => {
    ending.abort();
    await part.stop?.();
  });
  const check = async (): Promise<string> =>
    Promise.resolve()
      .then(() => part.check?.())
      .then(
        () => "healthy",
        (err: Error) => err.message,
      );
  await waitFor(async () => (await check()) === "healthy");
  seen.isLoop = true;
  assert.match(await check(), /^DNS forwarding loop/);
  seen.isLoop = false;
  client.put(services, aService("kube-dns", { clusterIP: "10.96.0.10", selector: { app: "x" } }, "kube-system"));
  await waitFor(async () => /belongs to another DNS server/.test(await check()));
});

test("a slice that cannot be deleted at the end is logged, and the server is closed all the same", async (t) => {
  const { client, ending, partContext } = await context(t);
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (text: string) => void warnings.push(text) };
  const part = await startDns({ ...partContext, log });
  await waitFor(() => client.objects(endpointSlices).length === 1);
  const port = client.objects<EndpointSlice>(endpointSlices)[0]?.ports[0]?.port as number;
  client.react("delete", "endpointslices", () => {
    throw new Error("the API server is away");
  });
  ending.abort();
  await part.stop?.();
  assert.deepEqual(warnings, ["cannot delete the EndpointSlice of this DNS server"]);
  const socket = createSocket("udp4");
  socket.bind({ port, address: "127.0.0.1", exclusive: true });
  await once(socket, "listening");
  socket.close();
});
