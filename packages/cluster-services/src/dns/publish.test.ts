import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { dnsService, dnsSlice, newPublisher, planService } from "./publish.ts";
import { aService, type TestContext } from "./testing.ts";

const node = { metadata: { name: "worker-1", uid: "u1" } };
const listening = [
  { address: "192.0.2.1", port: 10053 },
  { address: "fd00::1", port: 10053 },
];

async function start(t: TestContext, prepare: (client: ReturnType<typeof newFakeClient>) => void = () => {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  prepare(client);
  const log = discardLogger;
  const informers = newInformerFactory(client, { clock, log });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const publisher = newPublisher({
    client,
    reconnection: new Reconnection({ periodMs: () => 500, clock, random: () => 1 }),
    services: informers.for<Service>(services),
    slices: informers.for<EndpointSlice>(endpointSlices),
    ...{ node, listening, ip: "10.96.0.10", log, clock },
  });
  informers.start(ending.signal);
  await informers.waitForSync(ending.signal);
  const running = publisher.run(ending.signal);
  const slice = (family = "ipv4") => client.object<EndpointSlice>(endpointSlices, `kube-system/kube-dns-worker-1-${family}`);
  return { clock, client, publisher, running, ending, slice };
}

test("creates the Service with the given address, and a slice for each family of the node's addresses", async (t) => {
  const { client, publisher, slice } = await start(t);
  await waitFor(() => publisher.problem === undefined);
  hasFields(client.object<Service>(services, "kube-system/kube-dns"), {
    spec: { clusterIP: "10.96.0.10", internalTrafficPolicy: "Local", ports: [{ port: 53 }, { port: 53 }] },
  });
  hasFields(slice(), {
    addressType: "IPv4",
    endpoints: [{ addresses: ["192.0.2.1"], nodeName: "worker-1" }],
    ports: [{ name: "dns", protocol: "UDP", port: 10053 }, { name: "dns-tcp" }],
  });
  hasFields(slice("ipv6"), { addressType: "IPv6", endpoints: [{ addresses: ["fd00::1"] }] });
});

test("repairs a changed or deleted slice, and deletes its own at the end", async (t) => {
  const { client, publisher, running, ending, slice } = await start(t);
  await waitFor(() => slice("ipv6") !== undefined);
  const changed = structuredClone(slice() as EndpointSlice);
  changed.endpoints = [{ addresses: ["203.0.113.1"] }];
  await client.update(endpointSlices, changed);
  await waitFor(() => slice()?.endpoints[0]?.addresses[0] === "192.0.2.1");
  client.remove(endpointSlices, "kube-system/kube-dns-worker-1-ipv6");
  await waitFor(() => slice("ipv6") !== undefined);
  ending.abort();
  await running;
  await publisher.withdraw(AbortSignal.timeout(1_000));
  assert.equal(slice(), undefined);
});

test("a slice that cannot be withdrawn, or is gone, keeps no other from being withdrawn", async (t) => {
  const { client, publisher, running, ending, slice } = await start(t);
  await waitFor(() => slice("ipv6") !== undefined);
  ending.abort();
  await running;
  let refused = "ipv4";
  client.react("delete", "endpointslices", ({ name }) => {
    if (refused !== "" && name.endsWith(refused)) throw forbidden(endpointSlices, name, `no deletion of ${refused}`);
    return undefined;
  });
  await assert.rejects(publisher.withdraw(AbortSignal.timeout(1_000)), /no deletion of ipv4/);
  assert.deepEqual([slice() === undefined, slice("ipv6")], [false, undefined]);
  refused = "ipv6";
  client.put(endpointSlices, dnsSlice(node, { address: "fd00::1", port: 10053 }));
  await assert.rejects(publisher.withdraw(AbortSignal.timeout(1_000)), /no deletion of ipv6/);
  assert.deepEqual([slice(), slice("ipv6") === undefined], [undefined, false]);
  refused = "";
  await publisher.withdraw(AbortSignal.timeout(1_000));
  assert.deepEqual([slice(), slice("ipv6")], [undefined, undefined]);
});

test("stands back when the Service belongs to another server, and comes back when that is gone", async (t) => {
  const foreign = aService("kube-dns", { clusterIP: "10.96.0.10", selector: { "k8s-app": "kube-dns" } }, "kube-system");
  const left = dnsSlice(node, { address: "192.0.2.1", port: 10053 });
  const { client, publisher, slice } = await start(t, (fake) => {
    fake.put(services, foreign);
    fake.put(endpointSlices, left);
  });
  await waitFor(() => publisher.problem?.includes("another DNS server"));
  await waitFor(() => slice() === undefined);
  client.remove(services, "kube-system/kube-dns");
  await waitFor(() => slice() !== undefined);
});

test("says why pods cannot ask it: the address is taken, or another one", async (t) => {
  const { clock, client, publisher, slice } = await start(t, (fake) => {
    fake.react("create", "services", () => {
      throw forbidden({ group: "", resource: "services" }, "kube-dns", "the address is taken");
    });
  });
  await waitFor(() => publisher.problem?.includes("the address is taken"));
  assert.equal(slice(), undefined);
  client.put(services, dnsService("10.96.0.53"));
  await clock.advance(1_000);
  await waitFor(() => publisher.problem?.includes("has the address 10.96.0.53, not 10.96.0.10"));
  await settle(5);
  assert.ok(slice());
});

test("keeps an existing Service without selector", () => {
  assert.equal(planService(undefined), "create");
  assert.equal(planService(aService("kube-dns", { clusterIP: "10.96.0.10" })), "keep");
  assert.equal(planService(aService("kube-dns", { type: "ExternalName", externalName: "a.example" })), "standBack");
});

test("cuts the names of slices for nodes with long names", () => {
  const one = dnsSlice({ metadata: { name: `${"a".repeat(250)}-1` } }, { address: "192.0.2.1", port: 53 }).metadata.name ?? "";
  const other = dnsSlice({ metadata: { name: `${"a".repeat(250)}-2` } }, { address: "192.0.2.1", port: 53 }).metadata.name ?? "";
  assert.ok(one.length <= 253 && other.length <= 253 && one !== other);
  const nameFor = (length: number) =>
    dnsSlice({ metadata: { name: "n".repeat(length) } }, { address: "192.0.2.1", port: 53 }).metadata.name;
  assert.equal(nameFor(239), `kube-dns-${"n".repeat(239)}-ipv4`, "of 253 characters");
  assert.match(nameFor(240) ?? "", /^kube-dns-n{221}-[0-9a-f]{10}-ipv4$/);
});

for (const { name, change } of [
  { name: "a second endpoint", change: (slice: EndpointSlice) => void slice.endpoints.push({ addresses: ["203.0.113.1"] }) },
  {
    name: "an endpoint that is not ready",
    change: ({ endpoints: [one] }: EndpointSlice) => Object.assign(one ?? {}, { conditions: { ready: false } }),
  },
  {
    name: "an earlier address of the node",
    change: ({ endpoints: [one] }: EndpointSlice) => Object.assign(one ?? {}, { addresses: ["203.0.113.1"] }),
  },
  {
    name: "another node's name",
    change: ({ endpoints: [one] }: EndpointSlice) => Object.assign(one ?? {}, { nodeName: "worker-2" }),
  },
  { name: "another port", change: ({ ports: [, tcp] }: EndpointSlice) => Object.assign(tcp ?? {}, { port: 1 }) },
  {
    name: "an earlier Node of the name as owner",
    change: ({ metadata }: EndpointSlice) => Object.assign(metadata.ownerReferences?.[0] ?? {}, { uid: "u0" }),
  },
  {
    name: "another service",
    change: ({ metadata }: EndpointSlice) => Object.assign(metadata.labels ?? {}, { "kubernetes.io/service-name": "x" }),
  },
])
  test(`repairs a slice that has ${name}, of the version that it saw`, async (t) => {
    const left = dnsSlice(node, { address: "192.0.2.1", port: 10053 });
    change(left);
    const { client, slice } = await start(t, (fake) => fake.put(endpointSlices, left));
    const update = await waitFor(() => client.writes.find(({ verb }) => verb === "update"));
    assert.ok((update.sent as EndpointSlice).metadata.resourceVersion);
    await waitFor(() => slice()?.endpoints.length === 1 && slice()?.endpoints[0]?.conditions?.ready === true);
    hasFields(slice(), {
      metadata: dnsSlice(node, { address: "192.0.2.1", port: 10053 }).metadata,
      endpoints: [{ addresses: ["192.0.2.1"], nodeName: "worker-1" }],
      ports: [{ port: 10053 }, { port: 10053 }],
    });
  });

test("a slice that cannot be created is created at the next attempt", async (t) => {
  let isRefused = true;
  const { clock, client, publisher, slice } = await start(t, (fake) =>
    fake.react("create", "endpointslices", ({ name }) => {
      if (isRefused) throw forbidden(endpointSlices, name, "not yet");
      return undefined;
    }),
  );
  await settle();
  assert.deepEqual([slice(), publisher.problem], [undefined, "the Service kube-dns was not looked at yet"]);
  isRefused = false;
  await waitFor(async () => (await clock.advance(1_000)) ?? publisher.problem === undefined);
  assert.deepEqual(slice(), { ...dnsSlice(node, { address: "192.0.2.1", port: 10053 }), metadata: slice()?.metadata });
  assert.equal(client.objects(endpointSlices).length, 2);
});

test("objects that another process makes at the same time are no failure", async (t) => {
  const { publisher, slice } = await start(t, (fake) => {
    for (const ref of [services, endpointSlices])
      fake.react("create", ref.resource, ({ sent }) => fake.put(ref, sent as Service));
  });
  await waitFor(() => publisher.problem === undefined);
  await waitFor(() => slice() !== undefined && slice("ipv6") !== undefined);
});
