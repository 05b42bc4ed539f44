import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, notFound, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod, aService } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newEndpointSliceController } from "./controller.ts";
import { endpointsOfPods } from "./endpoints-of-pods.ts";
import { labelsOfSlice, newSlice } from "./labels.ts";
import { planSlices, portsText } from "./plan.ts";
import { wantsHints, zoneShares } from "./zones.ts";

const webPod = (n: number, options: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name: `p${n}`, podIP: `10.1.0.${n}`, labels: { app: "web" }, ...options });
const numbered = (...numbers: number[]) => numbers.map((n) => webPod(n));
const stored = ({ client }: TestContext) => client.objects<EndpointSlice>(endpointSlices);
const service = aService();
const desired = (all: ReturnType<typeof numbered>, of = service) => endpointsOfPods(of, all, () => undefined);
function sliceOf(name: string, all: ReturnType<typeof numbered>, of = service): EndpointSlice {
  const [group] = desired(all, of);
  const slice = newSlice(of, "IPv4", group?.ports ?? []);
  return { ...slice, metadata: { ...slice.metadata, name }, endpoints: group?.endpoints ?? [] };
}
const plan = (existing: EndpointSlice[], all: ReturnType<typeof numbered>, of = service) =>
  planSlices({ service: of, existing, desired: desired(all, of), maxPerSlice: 3 });
const sizes = ({ create, update, delete: remove }: ReturnType<typeof plan>) => ({
  create: create.map(({ endpoints }) => endpoints.length),
  update: Object.fromEntries(update.map(({ metadata, endpoints }) => [metadata.name, endpoints.length])),
  delete: remove.map(({ metadata }) => metadata.name),
});

for (const { name, existing, all, want } of [
  {
    name: "a pod that changed its readiness updates its slice alone",
    existing: [sliceOf("a", numbered(1, 2)), sliceOf("b", numbered(3))],
    all: [webPod(1), webPod(2, { ready: false }), webPod(3)],
    want: { create: [], update: { a: 2 }, delete: [] },
  },
  {
    name: "a pod made anew under its name and address is another endpoint",
    existing: [sliceOf("a", numbered(1, 2))],
    all: [webPod(1), webPod(2, { uid: "anew" })],
    want: { create: [], update: { a: 2 }, delete: [] },
  },
  {
    name: "as many new endpoints as fill a slice are a new slice, though another has some room",
    existing: [sliceOf("a", numbered(1, 2))],
    all: numbered(1, 2, 3, 4, 5),
    want: { create: [3], update: {}, delete: [] },
  },
  {
    name: "as many new endpoints as fill a slice are a new slice, though another is empty",
    existing: [{ ...sliceOf("a", numbered(1)), endpoints: [] }],
    all: numbered(1, 2, 3),
    want: { create: [3], update: {}, delete: [] },
  },
  {
    name: "of two slices that lose all endpoints one is used again, and the other deleted",
    existing: [sliceOf("a", numbered(1, 2, 3)), sliceOf("b", numbered(4, 5, 6))],
    all: numbered(7, 8, 9),
    want: { create: [], update: { a: 3 }, delete: ["b"] },
  },
  {
    name: "two slices that lose all endpoints are both used again, before a third one is made",
    existing: [sliceOf("a", numbered(1, 2, 3)), sliceOf("b", numbered(4, 5, 6))],
    all: numbered(7, 8, 9, 10, 11, 12, 13),
    want: { create: [1], update: { a: 3, b: 3 }, delete: [] },
  },
  {
    name: "new endpoints go to a slice that they fill exactly",
    existing: [sliceOf("a", numbered(1))],
    all: numbered(1, 2, 3),
    want: { create: [], update: { a: 3 }, delete: [] },
  },
  {
    name: "what is left over from slices that change anyway goes to one that has room",
    existing: [sliceOf("a", numbered(1, 2, 3)), sliceOf("b", numbered(4))],
    all: numbered(1, 2, 4, 5, 6),
    want: { create: [], update: { a: 3, b: 2 }, delete: [] },
  },
]) {
  test(name, () => assert.deepEqual(sizes(plan(existing, all)), want));
}

test("an endpoint of a pod made anew counts as one removed and one added", () => {
  const { counts } = plan([sliceOf("a", numbered(1, 2))], [webPod(1), webPod(2, { uid: "anew" })]);
  assert.deepEqual([counts.added, counts.removed], [1, 1]);
});

test("slices of a family that the service no longer has are deleted", () => {
  const v6 = { ...newSlice(service, "IPv6", []), metadata: { name: "v6" } };
  assert.deepEqual(sizes(plan([sliceOf("a", numbered(1)), v6], numbered(1))), { create: [], update: {}, delete: ["v6"] });
});

test("slices of the same ports in another order are the group's; hints of a slice are no change", () => {
  const two = aService({
    spec: {
      ports: [
        { name: "a", port: 1 },
        { name: "b", port: 2 },
      ],
    },
  });
  const slice = sliceOf("a", numbered(1), two);
  slice.ports?.reverse();
  slice.endpoints = slice.endpoints.map((endpoint) => ({ ...endpoint, hints: { forZones: [{ name: "z1" }] } }));
  assert.deepEqual(sizes(plan([slice], numbered(1), two)), { create: [], update: {}, delete: [] });
  assert.notEqual(portsText([{ port: 1 }]), portsText([{ port: 1, protocol: "UDP" }]));
  assert.notEqual(portsText([{ port: 1 }]), portsText([{ port: 1, appProtocol: "h2c" }]));
  assert.equal(portsText([{ port: 1 }]), portsText([{ port: 1, protocol: "TCP", name: "" }]));
});

test("changed labels of the service update each slice", () => {
  const relabelled = aService({ labels: { team: "b" } });
  const existing = [sliceOf("a", numbered(1, 2, 3)), sliceOf("b", numbered(4))];
  assert.deepEqual(sizes(plan(existing, numbered(1, 2, 3, 4), relabelled)), { create: [], update: { a: 3, b: 1 }, delete: [] });
});

test("a slice has the label of headless services when its service is one, whatever the service's own labels say", () => {
  const headless = "service.kubernetes.io/headless";
  assert.equal(labelsOfSlice(aService({ spec: { clusterIP: "None" } }))[headless], "");
  assert.equal(labelsOfSlice(aService({ labels: { [headless]: "" } }))[headless], undefined);
  assert.equal(newSlice(aService({ name: "x".repeat(253) }), "IPv4", []).metadata.generateName?.length, 248);
});

test("hints are for services that say Auto or auto, shares need two zones with ready nodes", () => {
  const saying = (value: string) =>
    wantsHints(aService({ annotations: { "service.kubernetes.io/topology-aware-hints": value } }));
  assert.deepEqual(["Auto", "auto", "AUTO", ""].map(saying), [true, true, false, false]);
  const inZone = (name: string, zone: string, ready = true) => ({
    ...aNode({ name, ready, labels: { "topology.kubernetes.io/zone": zone } }),
  });
  assert.equal(zoneShares([inZone("a", "z1"), inZone("b", "z2", false)]), undefined);
});

test("a service without ports has no endpoints unless it is headless", () => {
  assert.deepEqual(desired(numbered(1), aService({ spec: { ports: [] } })), []);
  assert.equal(desired(numbered(1), aService({ spec: { ports: [], clusterIP: "None" } }))[0]?.endpoints.length, 1);
});

test("a pod that ended or has no address is no endpoint; one that is going is not ready unless all are published", () => {
  const all = [webPod(1, { phase: "Failed" }), aPod({ name: "none", labels: { app: "web" } }), webPod(3)];
  assert.deepEqual(
    desired(all)[0]?.endpoints.map(({ targetRef }) => targetRef?.name),
    ["p3"],
  );
  const going = [webPod(1, { deletedAt: "2024-01-01T00:00:00Z" })];
  const published = aService({ spec: { publishNotReadyAddresses: true } });
  assert.deepEqual(desired(going)[0]?.endpoints[0]?.conditions, { ready: false, serving: true, terminating: true });
  assert.deepEqual(desired(going, published)[0]?.endpoints[0]?.conditions, { ready: true, serving: true, terminating: true });
});

async function running(world: TestContext, of = aService(), ...all: ReturnType<typeof numbered>): Promise<void> {
  world.client.put(nodes, aNode({ name: "n1" }));
  world.client.put(services, of);
  world.client.put(pods, ...all);
  await world.run(newEndpointSliceController(world.ctx));
}

for (const { name, of } of [
  { name: "of type ExternalName", of: aService({ spec: { type: "ExternalName", externalName: "example.com" } }) },
  {
    name: "without a selector",
    of: (({ metadata, spec: { selector: _, ...spec } = {} }) => ({ metadata, spec }))(aService()),
  },
  { name: "that is being deleted", of: aService({ deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] }) },
]) {
  test(`a service ${name} gets no slice`, async (t) => {
    const world = newTestContext(t);
    await running(world, of, webPod(1));
    assert.deepEqual(world.client.writes, []);
  });
}

test("a slice that is being deleted is replaced", async (t) => {
  const world = newTestContext(t);
  const going = sliceOf("going", numbered(1));
  going.metadata = { ...going.metadata, deletionTimestamp: "2024-01-01T00:00:00Z", finalizers: ["x"], uid: "going" };
  world.client.put(endpointSlices, going);
  await running(world, aService(), webPod(1));
  assert.deepEqual(
    world.client.writes.map(({ verb }) => verb),
    ["create"],
  );
});

test("nothing is tried again, and nothing is reported, in a namespace that is being deleted", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "endpointslices", () => {
    tries++;
    const { status } = forbidden(endpointSlices, "", "the namespace is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  await running(world);
  await world.clock.advance(60_000);
  assert.deepEqual([tries, world.events], [1, []]);
});

for (const { name, failure, events } of [
  { name: "is gone already is no failure", failure: notFound(endpointSlices, "x"), events: 0 },
  { name: "cannot be deleted is reported and counted", failure: serviceUnavailable("away"), events: 1 },
]) {
  test(`a slice that ${name}`, async (t) => {
    const world = newTestContext(t, { maxEndpointsPerSlice: 1 });
    await running(world, aService(), webPod(1), webPod(2));
    let failures = 0;
    world.client.react("delete", "endpointslices", () => {
      if (failures++ === 0) throw failure;
      return undefined;
    });
    world.client.remove(pods, "default/p2");
    await settle(30);
    const text = await world.ctx.registry.render();
    assert.equal(world.events.length, events);
    assert.equal(text.includes('endpoint_slice_controller_syncs{result="error"} 1\n'), events === 1);
    if (events === 0) return;
    assert.match(
      world.events[0] ?? "",
      /FailedToUpdateEndpointSlices .*: failed to delete web-\w+ EndpointSlice for Service default\/web: .*away/,
    );
    await world.clock.advance(60_000);
    await settle(30);
    assert.equal(stored(world).length, 1);
  });
}

test("the counts of a deleted service leave the metrics", async (t) => {
  const world = newTestContext(t);
  await running(world, aService(), webPod(1));
  assert.match(await world.ctx.registry.render(), /endpoint_slice_controller_endpoints_desired 1\n/);
  world.client.remove(services, "default/web");
  await settle(30);
  assert.match(await world.ctx.registry.render(), /endpoint_slice_controller_endpoints_desired 0\n/);
});

test("with the gate off a service that asks for hints gets none", async (t) => {
  const world = newTestContext(t, {}, { TopologyAwareHints: false });
  for (const zone of ["z1", "z2"])
    world.client.put(nodes, aNode({ name: zone, labels: { "topology.kubernetes.io/zone": zone } }));
  world.client.put(services, aService({ annotations: { "service.kubernetes.io/topology-aware-hints": "auto" } }));
  world.client.put(pods, webPod(1, { nodeName: "z1" }), webPod(2, { nodeName: "z2" }));
  await world.run(newEndpointSliceController(world.ctx));
  assert.deepEqual(
    stored(world).flatMap(({ endpoints }) => endpoints.map(({ zone, hints }) => [zone, hints])),
    [
      ["z1", undefined],
      ["z2", undefined],
    ],
  );
});

test("the name of a slice leaves room for its suffix", () => {
  const nameFor = (length: number) => newSlice(aService({ name: "x".repeat(length) }), "IPv4", []).metadata.generateName;
  assert.deepEqual([nameFor(247), nameFor(248)], [`${"x".repeat(247)}-`, `${"x".repeat(247)}-`]);
});
