import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aNode, aPod, aService } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newSliceTracker } from "../../services/slice-tracker.ts";
import { countingLooks } from "../../testing/looks.ts";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newEndpointSliceController } from "./controller.ts";
import { endpointsOfPods } from "./endpoints-of-pods.ts";
import { newSlice } from "./labels.ts";
import { planSlices } from "./plan.ts";

const webPod = (n: number, options: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name: `p${n}`, podIP: `10.1.0.${n}`, nodeName: "n1", labels: { app: "web" }, ...options });
const podsOf = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => webPod(from + i));
const stored = ({ client }: TestContext) => client.objects<EndpointSlice>(endpointSlices);
const addresses = (slices: readonly EndpointSlice[]) =>
  slices.map(({ endpoints }) => endpoints.flatMap((endpoint) => endpoint.addresses));

async function started(t: { after(fn: () => void): void }, maxEndpointsPerSlice = 100): Promise<TestContext> {
  const world = newTestContext(t, { maxEndpointsPerSlice });
  world.client.put(nodes, aNode({ name: "n1", labels: { "topology.kubernetes.io/zone": "z1" } }));
  world.client.put(services, aService({ labels: { team: "a" } }));
  await world.run(newEndpointSliceController(world.ctx));
  return world;
}

test("lists pods with all that is known of them, under the service's name", async (t) => {
  const world = await started(t);
  world.client.put(pods, webPod(1), webPod(2, { ready: false }), webPod(3, { deletedAt: "2022-01-01T00:00:00Z" }));
  await settle(50);
  const slices = stored(world);
  assert.equal(slices.length, 1);
  const [slice] = slices as [EndpointSlice];
  assert.match(slice.metadata.name ?? "", /^web-[a-z0-9]{5}$/);
  assert.deepEqual(slice.metadata.labels, {
    team: "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
  });
  assert.partialDeepStrictEqual(slice.metadata.ownerReferences?.[0], {
    kind: "Service",
    name: "web",
    controller: true,
    blockOwnerDeletion: true,
  });
  assert.equal(slice.addressType, "IPv4");
  assert.deepEqual(slice.ports, [{ name: "http", protocol: "TCP", port: 8080 }]);
  assert.deepEqual(slice.endpoints[0], {
    addresses: ["10.1.0.1"],
    conditions: { ready: true, serving: true, terminating: false },
    targetRef: { kind: "Pod", namespace: "default", name: "p1", uid: "p1-uid" },
    nodeName: "n1",
    zone: "z1",
  });
  assert.deepEqual(
    slice.endpoints.slice(1).map(({ conditions }) => conditions),
    [
      { ready: false, serving: false, terminating: false },
      { ready: false, serving: true, terminating: true },
    ],
  );
});

test("--endpointslice-updates-batch-period: changes of pods are written that much later, together", async (t) => {
  const world = newTestContext(t, { endpointSliceUpdatesBatchMs: 1000, endpointUpdatesBatchMs: 9000 });
  world.client.put(services, aService());
  world.client.put(pods, webPod(9));
  await world.run(newEndpointSliceController(world.ctx));
  await world.clock.advance(1000);
  world.client.clearActions();
  world.client.put(pods, webPod(1));
  await world.clock.advance(999);
  world.client.put(pods, webPod(2));
  await settle(50);
  assert.deepEqual(world.client.writes, []);
  await world.clock.advance(1);
  assert.deepEqual([world.client.writes.length, addresses(stored(world))], [1, [["10.1.0.9", "10.1.0.1", "10.1.0.2"]]]);
});

test("with TopologyAwareHints a service that asks for it gets hints, and other ones when the zones change", async (t) => {
  const world = newTestContext(t, {}, { TopologyAwareHints: true });
  const zoned = (name: string, zone: string) => aNode({ name, labels: { "topology.kubernetes.io/zone": zone } });
  world.client.put(nodes, zoned("n1", "z1"), zoned("n2", "z2"));
  world.client.put(services, aService({ annotations: { "service.kubernetes.io/topology-aware-hints": "auto" } }));
  world.client.put(pods, webPod(1), webPod(2, { nodeName: "n2" }));
  await world.run(newEndpointSliceController(world.ctx));
  const hints = () => stored(world).flatMap(({ endpoints }) => endpoints.map((each) => each.hints?.forZones?.[0]?.name));
  assert.deepEqual(hints(), ["z1", "z2"]);
  world.client.remove(nodes, "n2");
  await settle(50);
  assert.deepEqual(hints(), [undefined, undefined], "one zone is left");
  const changes = 'endpoint_slice_controller_endpointslices_changed_per_sync_sum{topology="Auto"} 2';
  assert.ok((await world.ctx.registry.render()).includes(`\n${changes}\n`));
});

test("a service without pods has one empty slice", async (t) => {
  const world = await started(t);
  assert.deepEqual(
    stored(world).map(({ endpoints, ports }) => ({ endpoints, ports })),
    [{ endpoints: [], ports: [] }],
  );
});

test("splits what does not fit into one slice, and writes only the slice that changed", async (t) => {
  const world = await started(t, 3);
  world.client.put(pods, ...podsOf(1, 7));
  await settle(80);
  assert.deepEqual(
    addresses(stored(world))
      .map(({ length }) => length)
      .toSorted(),
    [1, 3, 3],
  );
  world.client.clearActions();
  world.client.put(pods, webPod(4, { ready: false }));
  await settle(50);
  assert.deepEqual(
    world.client.writes.map(({ verb }) => verb),
    ["update"],
  );
});

test("says for which change slices were written, and counts them", async (t) => {
  const world = newTestContext(t, { maxEndpointsPerSlice: 2 });
  const { client, ctx } = world;
  const name = "endpoints.kubernetes.io/last-change-trigger-time";
  const times = () => stored(world).map(({ metadata }) => metadata.annotations?.[name]);
  client.put(nodes, aNode({ name: "n1" }));
  client.put(services, aService({ createdAt: "2022-01-01T00:00:00Z" }));
  client.put(pods, ...podsOf(1, 3));
  await world.run(newEndpointSliceController(ctx));
  assert.deepEqual(times(), ["2022-01-01T00:00:00Z", "2022-01-01T00:00:00Z"]);
  client.put(pods, webPod(1, { ready: false, readySince: "2024-02-01T00:00:00Z" }));
  await settle(50);
  assert.deepEqual(times().toSorted(), ["2022-01-01T00:00:00Z", "2024-02-01T00:00:00Z"]);
  client.remove(pods, "default/p1");
  await settle(50);
  assert.deepEqual(times().toSorted(), ["2022-01-01T00:00:00Z", undefined]);
  const text = await ctx.registry.render();
  for (const line of [
    "endpoints_added_per_sync_sum 3",
    "endpoints_removed_per_sync_sum 1",
    "endpoints_desired 2",
    "num_endpoint_slices 2",
    "desired_endpoint_slices 1",
    'changes{operation="create"} 2',
    'changes{operation="update"} 2',
    'endpointslices_changed_per_sync_sum{topology="Disabled"} 4',
    'syncs{result="success"} 3',
  ])
    assert.ok(
      text.includes(`\nendpoint_slice_controller_${line}\n`),
      `${line} in\n${text.match(/^endpoint_slice.*(sum|d|s|\}) .*$/gm)?.join("\n")}`,
    );
});

test("an unready pod is a ready endpoint with publishNotReadyAddresses, not with the older annotation", () => {
  const ready = (service: ReturnType<typeof aService>) =>
    endpointsOfPods(service, [webPod(1, { ready: false })], () => undefined)[0]?.endpoints[0]?.conditions?.ready;
  const annotations = { "service.alpha.kubernetes.io/tolerate-unready-endpoints": "true" };
  assert.equal(ready(aService({ annotations })), false);
  assert.equal(ready(aService({ spec: { publishNotReadyAddresses: true } })), true);
});

test("a slice has the protocol and the application protocol of each port of its service", () => {
  const ports = [
    { name: "dns", port: 53, protocol: "UDP", appProtocol: "example.com/dns" },
    { name: "web", port: 80, appProtocol: "kubernetes.io/h2c" },
    { name: "plain", port: 81 },
  ] as const;
  const [group] = endpointsOfPods(aService({ spec: { ports: [...ports] } }), [webPod(1)], () => undefined);
  assert.deepEqual(group?.ports, [
    { name: "dns", protocol: "UDP", port: 53, appProtocol: "example.com/dns" },
    { name: "web", protocol: "TCP", port: 80, appProtocol: "kubernetes.io/h2c" },
    { name: "plain", protocol: "TCP", port: 81 },
  ]);
});

test("says what could not be written", async (t) => {
  const world = await started(t);
  world.client.react("create", "endpointslices", () => {
    throw forbidden(endpointSlices, "", "no");
  });
  world.client.put(services, aService({ name: "other" }));
  await settle(50);
  const start = "Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service default/other: ";
  const reported = world.events.find((event) => event.startsWith(start));
  assert.match(reported?.slice(start.length) ?? "", /^failed to create EndpointSlice for Service default\/other: .*forbidden/);
});

test("makes nothing twice while its cache is behind", async (t) => {
  const world = newTestContext(t);
  world.client.put(services, aService());
  let created = 0;
  world.client.react("create", "endpointslices", () => {
    created++;
    return { metadata: { name: `unseen-${created}`, uid: `u${created}`, generation: 1 } };
  });
  await world.run(newEndpointSliceController(world.ctx));
  world.client.put(services, aService({ labels: { touched: "yes" } }));
  await settle(50);
  assert.equal(created, 1);
});

const service = aService();
const desired = (all: ReturnType<typeof podsOf>) => endpointsOfPods(service, all, () => undefined);
function sliceOf(name: string, all: ReturnType<typeof podsOf>): EndpointSlice {
  const [group] = desired(all);
  const slice = newSlice(service, "IPv4", group?.ports ?? []);
  return { ...slice, metadata: { ...slice.metadata, name }, endpoints: group?.endpoints ?? [] };
}
const plan = (existing: EndpointSlice[], all: ReturnType<typeof podsOf>, maxPerSlice = 3) =>
  planSlices({ service, existing, desired: desired(all), maxPerSlice });
const summary = ({ create, update, delete: remove }: ReturnType<typeof plan>) => ({
  create: create.map(({ endpoints }) => endpoints.length),
  update: Object.fromEntries(update.map(({ metadata, endpoints }) => [metadata.name, endpoints.length])),
  delete: remove.map(({ metadata }) => metadata.name),
});

for (const { name, existing, wanted, want } of [
  {
    name: "nothing when all is there",
    existing: [sliceOf("a", podsOf(1, 3))],
    wanted: podsOf(1, 3),
    want: { create: [], update: {}, delete: [] },
  },
  {
    name: "a new slice when the others are full",
    existing: [sliceOf("a", podsOf(1, 3))],
    wanted: podsOf(1, 4),
    want: { create: [1], update: {}, delete: [] },
  },
  {
    name: "room in a slice that changes anyway",
    existing: [sliceOf("a", podsOf(1, 3)), sliceOf("b", podsOf(4, 5))],
    wanted: [...podsOf(2, 5), webPod(9)],
    want: { create: [], update: { a: 3 }, delete: [] },
  },
  {
    name: "the fullest slice with enough room",
    existing: [sliceOf("a", podsOf(1, 1)), sliceOf("b", podsOf(2, 3))],
    wanted: podsOf(1, 4),
    want: { create: [], update: { b: 3 }, delete: [] },
  },
  {
    name: "deleting a slice that lists nothing any more",
    existing: [sliceOf("a", podsOf(1, 3)), sliceOf("b", podsOf(4, 4))],
    wanted: podsOf(1, 3),
    want: { create: [], update: {}, delete: ["b"] },
  },
  {
    name: "using a slice again whose pods were all replaced",
    existing: [sliceOf("a", podsOf(1, 2))],
    wanted: podsOf(7, 8),
    want: { create: [], update: { a: 2 }, delete: [] },
  },
  {
    name: "a new slice where the one that is left is a former service's",
    existing: [{ ...sliceOf("a", podsOf(1, 2)), metadata: { ...sliceOf("a", []).metadata, ownerReferences: [] } }],
    wanted: podsOf(7, 8),
    want: { create: [2], update: {}, delete: ["a"] },
  },
  {
    name: "no address twice",
    existing: [sliceOf("a", podsOf(1, 2)), sliceOf("b", podsOf(2, 3))],
    wanted: podsOf(1, 3),
    want: { create: [], update: { b: 1 }, delete: [] },
  },
  {
    name: "an empty slice when the last pod is deleted",
    existing: [sliceOf("a", podsOf(1, 1))],
    wanted: [],
    want: { create: [0], update: {}, delete: ["a"] },
  },
]) {
  test(`plans ${name}`, () => assert.deepEqual(summary(plan(existing, wanted)), want));
}

test("each address family has separate slices", () => {
  const dual = aService({ spec: { ipFamilies: ["IPv4", "IPv6"] } });
  const pod = webPod(1, { status: { podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }] } });
  const { create } = planSlices({
    service: dual,
    existing: [],
    desired: endpointsOfPods(dual, [pod], () => undefined),
    maxPerSlice: 100,
  });
  assert.deepEqual(
    create.map(({ addressType, endpoints }) => [addressType, endpoints[0]?.addresses]),
    [
      ["IPv4", ["10.1.0.1"]],
      ["IPv6", ["fd00::1"]],
    ],
  );
});

test("a cache is stale until it shows what was written, or long enough passed", async () => {
  const clock = newFakeClock();
  const tracker = newSliceTracker(clock);
  const at = (generation: number): EndpointSlice => ({ ...sliceOf("a", []), metadata: { uid: "u", generation } });
  tracker.recordWrite("default/web", at(2));
  assert.equal(tracker.isStale("default/web", []), true);
  assert.equal(tracker.isStale("default/web", [at(1)]), true);
  assert.equal(tracker.isStale("default/web", [at(2)]), false);
  assert.deepEqual([tracker.isForeignChange(at(2)), tracker.isForeignChange(at(3))], [false, true]);
  tracker.recordDeletion("default/web", at(2));
  assert.equal(tracker.isStale("default/web", [at(2)]), true);
  assert.equal(tracker.deletionObserved(at(2)), true);
  assert.equal(tracker.isStale("default/web", []), false);
  tracker.recordWrite("default/web", at(5));
  await clock.advance(300_001);
  assert.equal(tracker.isStale("default/web", []), false);
});

test("of empty slices one that has the form of a placeholder stays, with the labels of the service", () => {
  const service = aService({ labels: { team: "b" } });
  const slice = (name: string, ports: EndpointSlice["ports"]): EndpointSlice => {
    const made = newSlice(aService({ labels: { team: "a" } }), "IPv4", ports);
    return { ...made, metadata: { ...made.metadata, name }, endpoints: [] };
  };
  const existing = [slice("with-port", [{ port: 80 }]), slice("placeholder", []), slice("second", [])];
  const plan = planSlices({ service, existing, desired: [], maxPerSlice: 100 });
  assert.deepEqual(
    [plan.create, plan.delete.map(({ metadata }) => metadata.name), plan.update.map(({ metadata }) => metadata.name)],
    [[], ["with-port", "second"], ["placeholder"]],
  );
  assert.equal(plan.update[0]?.metadata.labels?.["team"], "b");
});

test("looks again when its cache was behind, and goes on when it has caught up", async (t) => {
  const world = newTestContext(t);
  world.client.put(services, aService());
  world.client.put(pods, webPod(1));
  let unseen: EndpointSlice | undefined;
  world.client.react("create", "endpointslices", ({ sent }) => {
    const { metadata, ...slice } = sent as EndpointSlice;
    unseen = { ...slice, metadata: { ...metadata, name: "unseen", uid: "u", generation: 1 } };
    return unseen;
  });
  await world.run(newEndpointSliceController(world.ctx));
  world.client.put(pods, webPod(2));
  await settle(30);
  world.client.put(endpointSlices, unseen as EndpointSlice);
  await settle(30);
  assert.deepEqual(addresses(stored(world)), [["10.1.0.1"]]);
  await world.clock.advance(200);
  await settle(30);
  assert.deepEqual(addresses(stored(world)), [["10.1.0.1", "10.1.0.2"]]);
});

test("a slice that is labelled as another service's is replaced at once, though it was written just before", async (t) => {
  const world = await started(t);
  const [slice] = stored(world) as [EndpointSlice];
  const labels = { ...slice.metadata.labels, "kubernetes.io/service-name": "other" };
  world.client.put(endpointSlices, { ...slice, metadata: { ...slice.metadata, labels } });
  await settle(30);
  const services = stored(world).map(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"]);
  assert.deepEqual(services.toSorted(), ["other", "web"]);
});

test("a slice whose deletion the cache does not show yet is not deleted again, and nothing is made of what it shows", async (t) => {
  const world = await started(t, 1);
  world.client.put(pods, webPod(1), webPod(2));
  await settle(30);
  assert.equal(stored(world).length, 2);
  world.client.react("delete", "endpointslices", () => ({}));
  world.client.clearActions();
  world.client.remove(pods, "default/p2");
  await settle(30);
  world.client.put(pods, webPod(1, { ready: false }));
  await settle(30);
  assert.deepEqual(
    world.client.writes.map(({ verb }) => verb),
    ["delete"],
  );
});

for (const { what, service } of [
  { what: "a service of type ExternalName", service: aService({ name: "out", spec: { type: "ExternalName" } }) },
  { what: "a service that is being deleted", service: aService({ name: "out", deletedAt: "2022-01-01T00:00:00Z" }) },
])
  test(`${what} gets no slices`, async (t) => {
    const world = newTestContext(t);
    world.client.put(services, service);
    world.client.put(pods, webPod(1));
    await world.run(newEndpointSliceController(world.ctx));
    assert.deepEqual(stored(world), []);
  });

test("in a namespace that has begun to end nothing is reported, and nothing tried again", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "endpointslices", () => {
    throw namespaceTerminating(endpointSlices);
  });
  world.client.put(services, aService());
  await world.run(newEndpointSliceController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.deepEqual([world.client.writes.length, world.events], [1, []]);
});

test("a service whose slices cannot be written is tried 15 times more, each counted as a failure", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "endpointslices", () => {
    tries++;
    throw forbidden(endpointSlices, "", "no");
  });
  world.client.put(services, aService());
  await world.run(newEndpointSliceController(world.ctx));
  for (let i = 0; i < 20; i++) {
    await world.clock.advance(1_000_000);
    await settle(10);
  }
  assert.equal(tries, 16);
  assert.match(await world.ctx.registry.render(), /^endpoint_slice_controller_syncs\{result="error"\} 16$/m);
});

test("the endpoints of a service that was deleted are counted no longer", async (t) => {
  const world = await started(t);
  world.client.put(pods, webPod(1));
  await settle(30);
  const count = async () => /^endpoint_slice_controller_endpoints_desired (\d+)$/m.exec(await world.ctx.registry.render())?.[1];
  assert.equal(await count(), "1");
  world.client.remove(services, "default/web");
  await settle(30);
  assert.equal(await count(), "0");
});

test("without TopologyAwareHints a service that asks for hints gets none", async (t) => {
  const world = newTestContext(t, {}, { TopologyAwareHints: false });
  for (const [i, zone] of ["z1", "z2"].entries())
    world.client.put(nodes, aNode({ name: `n${i + 1}`, labels: { "topology.kubernetes.io/zone": zone } }));
  world.client.put(services, aService({ annotations: { "service.kubernetes.io/topology-aware-hints": "auto" } }));
  world.client.put(pods, webPod(1), webPod(2, { nodeName: "n2" }));
  await world.run(newEndpointSliceController(world.ctx));
  assert.deepEqual(
    stored(world).flatMap(({ endpoints }) => endpoints.map(({ hints }) => hints)),
    [undefined, undefined],
  );
});

test("a slice that is being deleted is replaced", async (t) => {
  const world = newTestContext(t);
  const { metadata, ...slice } = newSlice(aService(), "IPv4", []);
  const leaving = { deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["example.com/hold"] };
  world.client.put(endpointSlices, { ...slice, metadata: { ...metadata, name: "old", uid: "old", ...leaving } });
  world.client.put(services, aService());
  world.client.put(pods, webPod(1));
  await world.run(newEndpointSliceController(world.ctx));
  assert.deepEqual(addresses(stored(world)), [[], ["10.1.0.1"]]);
});

test("services that want hints are looked at when the shares of zones may change, others and at other times none", async (t) => {
  const world = newTestContext(t, {}, { TopologyAwareHints: true });
  const { client, run } = world;
  const { ctx, looksAfter } = countingLooks(world.ctx);
  const inZone = (zone: string, more: Parameters<typeof aNode>[0] = {}) =>
    aNode({ name: "n1", ...more, labels: { "topology.kubernetes.io/zone": zone, ...more.labels } });
  const hints = { "service.kubernetes.io/topology-aware-hints": "auto" };
  client.put(nodes, inZone("a"));
  client.put(services, aService({ annotations: hints }), aService({ name: "other" }));
  await run(newEndpointSliceController(ctx));
  const looks: number[] = [];
  for (const change of [
    () => client.put(nodes, inZone("a", { labels: { x: "y" } })),
    () => client.put(nodes, inZone("b")),
    () => client.put(nodes, inZone("b", { ready: false })),
    () => client.put(nodes, inZone("c", { ready: false })),
    () => client.put(nodes, inZone("c")),
    () => client.remove(nodes, "n1"),
    () => client.put(nodes, inZone("a")),
  ])
    looks.push(await looksAfter(change));
  assert.deepEqual(looks, [0, 1, 1, 1, 1, 1, 1]);
});
