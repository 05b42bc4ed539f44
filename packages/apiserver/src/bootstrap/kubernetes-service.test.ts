import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { endpointSlices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { ensureKubernetesService, type LiveServers, runKubernetesService } from "./kubernetes-service.ts";

const never = new Promise<never>(() => {});

for (const { name, remove } of [
  { name: "etcd does not answer", remove: () => never },
  { name: "etcd refuses", remove: () => Promise.reject(new Error("no leader")) },
] satisfies { name: string; remove: LiveServers["remove"] }[]) {
  test(`a server that stops while ${name} gives up its endpoint after two seconds at most`, async () => {
    const clock = newFakeClock();
    const loop = runKubernetesService({
      client: newFakeClient(),
      servers: { renew: async () => (current) => current, remove },
      advertiseAddress: "192.0.2.10",
      securePort: 6443,
      clusterIp: "10.0.0.1",
      nodePort: 0,
      clock,
      log: discardLogger,
    });
    await loop.begun;
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await clock.advance(2000);
    assert.ok(stopped);
    await stopping;
    assert.equal(clock.waiting, 0);
  });
}

interface Endpoints extends KubeObject {
  subsets?: { addresses: { ip: string }[]; ports: { name: string; port: number; protocol: string }[] }[];
}
interface Slice extends KubeObject {
  endpoints: { addresses: string[] }[];
  ports: { name: string; port: number; protocol: string }[];
}
const ports = [{ name: "https", port: 6443, protocol: "TCP" }];
const metadata = { namespace: "default", name: "kubernetes" };

function bench(servers: LiveServers) {
  const clock = newFakeClock();
  const client = newFakeClient();
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const options = { advertiseAddress: "192.0.2.2", securePort: 6443, clusterIp: "10.0.0.1", nodePort: 0 };
  const start = () => runKubernetesService({ client, servers, ...options, clock, log });
  const there = () => client.object<Endpoints>(endpoints, "default/kubernetes");
  const slice = () => client.object<Slice>(endpointSlices, "default/kubernetes");
  return { clock, client, start, there, slice, warnings };
}

test("endpoints and slice hold the addresses that are alive in order, whatever else was written there", async () => {
  const alive = ["192.0.2.10", "192.0.2.2"];
  const { clock, client, start, there, slice } = bench({ renew: async () => () => alive, remove: async () => () => [] });
  const wrong = [{ name: "https", port: 443, protocol: "TCP" }];
  const loop = start();
  await loop.begun;
  const want = [{ addresses: [{ ip: "192.0.2.2" }, { ip: "192.0.2.10" }], ports }];
  const wantSlice = [["192.0.2.2"], ["192.0.2.10"]];
  const expectRight = async (what: string): Promise<void> => {
    await clock.advance(10_000);
    await settle(20);
    assert.deepEqual(there()?.subsets, want, what);
    assert.equal(there()?.metadata.labels?.["endpointslice.kubernetes.io/skip-mirror"], "true", what);
    assert.deepEqual(
      slice()?.endpoints.map(({ addresses }) => addresses),
      wantSlice,
      what,
    );
    assert.deepEqual(slice()?.ports, ports, what);
  };
  await expectRight("as it began");
  client.put(endpoints, { metadata, subsets: want } as Endpoints);
  await expectRight("the label was missing");
  client.put(endpoints, { ...there(), subsets: [{ ...want[0], ports: wrong }] } as Endpoints);
  await expectRight("another port in the endpoints");
  client.put(endpointSlices, { ...slice(), ports: wrong } as Slice);
  await expectRight("another port in the slice");
  client.put(endpointSlices, { ...slice(), endpoints: [] } as unknown as Slice);
  await expectRight("an empty slice");
  client.clearActions();
  await expectRight("nothing");
  assert.deepEqual(client.writes, []);
  await loop.stop();
  assert.deepEqual([there()?.subsets, slice()?.endpoints, clock.waiting], [[], [], 0]);
});

test("a round that fails is followed by the next; one that is running ends before the server leaves", async () => {
  const steps: string[] = [];
  const held = Promise.withResolvers<void>();
  let renewals = 0;
  const { clock, start, there, warnings } = bench({
    async renew(address) {
      steps.push(`renew ${++renewals}`);
      if (renewals === 1) throw new Error("no leader");
      if (renewals === 3) await held.promise;
      steps.push(`renewed ${renewals}`);
      return () => [address];
    },
    async remove() {
      steps.push("remove");
      return () => [];
    },
  });
  const loop = start();
  await loop.begun;
  assert.deepEqual(warnings, ["cannot reconcile the kubernetes service"]);
  await clock.advance(10_000);
  await settle(20);
  assert.equal(there()?.subsets?.length, 1);
  await clock.advance(10_000);
  await settle(20);
  const stopping = loop.stop();
  await settle(20);
  assert.deepEqual(steps, ["renew 1", "renew 2", "renewed 2", "renew 3"]);
  held.resolve();
  await stopping;
  assert.deepEqual(steps.slice(4), ["renewed 3", "remove"]);
  assert.deepEqual(there()?.subsets, []);
});

for (const { what, spec, nodePort, want } of [
  { what: "of another type", spec: { type: "ExternalName" }, nodePort: 0, want: { type: "ClusterIP" } },
  { what: "that was of no node port", spec: { type: "ClusterIP" }, nodePort: 30443, want: { type: "NodePort", nodePort: 30443 } },
  {
    what: "of another node port",
    spec: { type: "NodePort", nodePort: 30444 },
    nodePort: 30443,
    want: { type: "NodePort", nodePort: 30443 },
  },
  { what: "of another port", spec: { type: "ClusterIP", targetPort: 443 }, nodePort: 0, want: { type: "ClusterIP" } },
  { what: "that is right", spec: { type: "ClusterIP" }, nodePort: 0, want: undefined },
] as {
  what: string;
  spec: { type: string; nodePort?: number; targetPort?: number };
  nodePort: number;
  want: object | undefined;
}[]) {
  test(`a service ${what} is ${want === undefined ? "not written" : "brought back, with its address"}`, async () => {
    const client = newFakeClient();
    const portOf = (port: object) => ({ name: "https", protocol: "TCP", port: 443, targetPort: 6443, ...port });
    const { type, ...port } = spec;
    const stored = { metadata, spec: { type, clusterIP: "10.0.0.1", sessionAffinity: "ClientIP", ports: [portOf(port)] } };
    client.put(services, stored as KubeObject);
    const options = { client, servers: undefined, advertiseAddress: "192.0.2.2", securePort: 6443, clusterIp: "10.0.0.1" };
    await ensureKubernetesService({ ...options, nodePort, clock: newFakeClock(), log: discardLogger });
    assert.equal(client.writes.length, want === undefined ? 0 : 1);
    const { type: wanted = type, ...rest } = (want ?? {}) as { type?: string };
    hasFields(client.object<KubeObject & { spec: object }>(services, "default/kubernetes")?.spec, {
      ...{ type: wanted, clusterIP: "10.0.0.1", sessionAffinity: "ClientIP" },
      ports: [portOf(rest)],
    });
  });
}

test("addresses of other servers are taken over from endpoints of one subset, not of several", async () => {
  const renew = async () => (current: readonly string[]) => [...current, "192.0.2.2"];
  const { clock, client, start, there } = bench({ renew, remove: async () => () => [] });
  const subset = (...ips: string[]) => ({ addresses: ips.map((ip) => ({ ip })), ports });
  client.put(endpoints, { metadata, subsets: [subset("192.0.2.7"), subset("192.0.2.8")] } as Endpoints);
  const loop = start();
  await loop.begun;
  assert.deepEqual(there()?.subsets, [subset("192.0.2.2")]);
  client.put(endpoints, { ...there(), subsets: [subset("192.0.2.7")] } as Endpoints);
  await clock.advance(10_000);
  await settle(20);
  assert.deepEqual(there()?.subsets, [subset("192.0.2.2", "192.0.2.7")]);
  await loop.stop();
});

test("one round runs at a time, and other labels of the endpoints stay", async () => {
  const held = Promise.withResolvers<void>();
  let renewals = 0;
  const renew = async (address: string) => {
    if (++renewals === 2) await held.promise;
    return () => [address];
  };
  const { clock, client, start, there } = bench({ renew, remove: async () => () => [] });
  const loop = start();
  await loop.begun;
  client.put(endpoints, { ...there(), metadata: { ...metadata, labels: { own: "yes" } } } as Endpoints);
  for (let i = 0; i < 3; i++) await clock.advance(10_000);
  assert.equal(renewals, 2);
  held.resolve();
  await settle(20);
  assert.deepEqual(there()?.metadata.labels, { own: "yes", "endpointslice.kubernetes.io/skip-mirror": "true" });
  await clock.advance(10_000);
  assert.equal(renewals, 3);
  await loop.stop();
  await clock.advance(60_000);
  assert.equal(renewals, 3, "none follows the end");
});

for (const { name, remove, warning } of [
  {
    name: "cannot remove",
    remove: () => Promise.reject(new Error("no leader")),
    warning: "cannot remove this server from the endpoints of the kubernetes service",
  },
  {
    name: "does not come to remove",
    remove: () => never,
    warning: "gave up removing this server from the endpoints of the kubernetes service",
  },
] satisfies { name: string; remove: LiveServers["remove"]; warning: string }[]) {
  test(`a server that ${name} its address warns of it`, async () => {
    const { clock, start, warnings } = bench({ renew: async () => (current) => current, remove });
    const loop = start();
    await loop.begun;
    const stopping = loop.stop();
    await clock.advance(2_000);
    await stopping;
    assert.deepEqual(warnings, [warning]);
  });
}

test("a missing service is made with the first cluster address", async () => {
  const client = newFakeClient();
  const options = { client, servers: undefined, advertiseAddress: "192.0.2.2", securePort: 6443, clusterIp: "10.0.0.1" };
  await ensureKubernetesService({ ...options, nodePort: 0, clock: newFakeClock(), log: discardLogger });
  const service = client.object<KubeObject & { spec: object }>(services, "default/kubernetes");
  assert.deepEqual(service?.metadata.labels, { provider: "kubernetes", component: "apiserver" });
  assert.deepEqual(service?.spec, {
    ...{ type: "ClusterIP", clusterIP: "10.0.0.1", sessionAffinity: "None" },
    ports: [{ name: "https", protocol: "TCP", port: 443, targetPort: 6443 }],
  });
});

interface TypedSlice extends Slice {
  addressType: string;
}
for (const { alive, type, addresses } of [
  { alive: ["192.0.2.2", "192.0.2.1"], type: "IPv4", addresses: ["192.0.2.1", "192.0.2.2"] },
  { alive: ["2001:db8::2"], type: "IPv6", addresses: ["2001:db8::2"] },
  { alive: ["2001:db8::2", "192.0.2.1"], type: "IPv4", addresses: ["192.0.2.1"] },
  { alive: [], type: "IPv4", addresses: [] },
]) {
  test(`the slice of the servers [${alive}] is of ${type}, also where there was one of the other type`, async () => {
    for (const before of [undefined, "IPv4", "IPv6"]) {
      const { client, start, slice } = bench({ renew: async () => () => alive, remove: async () => () => [] });
      const old = { metadata: { ...metadata, uid: "old" }, addressType: before, endpoints: [], ports };
      if (before !== undefined) client.put(endpointSlices, old as unknown as Slice);
      const loop = start();
      await loop.begun;
      const made = slice() as TypedSlice;
      assert.deepEqual([made.addressType, made.endpoints.map((one) => one.addresses[0])], [type, addresses], `before: ${before}`);
      assert.equal(made.metadata.uid === "old", before === type, "a slice of the right type is kept");
      assert.deepEqual(made.metadata.labels, { "kubernetes.io/service-name": "kubernetes" });
      await loop.stop();
    }
  });
}
