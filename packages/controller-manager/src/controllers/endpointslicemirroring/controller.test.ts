import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { EndpointSubset, Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { aService, someEndpoints } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { countingLooks } from "../../testing/looks.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newEndpointSliceMirroringController } from "./controller.ts";
import { planningMirror } from "./mirror.ts";

const { selector: _, ...withoutSelector } = aService().spec ?? {};
const bareService = () => ({ ...aService(), spec: withoutSelector });
const ports = [{ name: "http", port: 80, protocol: "TCP" as const }];
const subset = (...ips: string[]): EndpointSubset => ({ addresses: ips.map((ip) => ({ ip })), ports });
const stored = ({ client }: TestContext) => client.objects<EndpointSlice>(endpointSlices);
const addresses = (world: TestContext) => stored(world).map((slice) => slice.endpoints.flatMap((endpoint) => endpoint.addresses));

async function started(
  t: { after(fn: () => void): void },
  object: Endpoints,
  service: object = bareService(),
  maxEndpointsPerSubset = 1000,
): Promise<TestContext> {
  const world = newTestContext(t, { mirroring: { maxEndpointsPerSubset, updatesBatchMs: 0 } });
  world.client.put(services, service as never);
  world.client.put(endpoints, object);
  await world.run(newEndpointSliceMirroringController(world.ctx));
  return world;
}

test("mirrors who is ready and who is not, under the service's name and the Endpoints' labels and annotations", async (t) => {
  const world = await started(
    t,
    someEndpoints({
      labels: { team: "a" },
      annotations: {
        note: "mine",
        "endpoints.kubernetes.io/last-change-trigger-time": "2024-01-01T00:00:00Z",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
      },
      subsets: [
        {
          addresses: [{ ip: "192.0.2.1", hostname: "one", nodeName: "n1", targetRef: { kind: "Pod", name: "p" } }],
          notReadyAddresses: [{ ip: "192.0.2.2" }],
          ports: [{ name: "http", port: 80, protocol: "TCP", appProtocol: "h2c" }],
        },
      ],
    }),
  );
  const [slice, ...others] = stored(world);
  assert.deepEqual(others, []);
  assert.match(slice?.metadata.name ?? "", /^web-[a-z0-9]{5}$/);
  assert.deepEqual(slice?.metadata.labels, {
    team: "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
  });
  assert.deepEqual(slice?.metadata.annotations, { note: "mine" });
  hasFields(slice?.metadata.ownerReferences, [{ kind: "Endpoints", name: "web", controller: true }]);
  assert.equal(slice?.addressType, "IPv4");
  assert.deepEqual(slice?.ports, [{ name: "http", port: 80, protocol: "TCP", appProtocol: "h2c" }]);
  assert.deepEqual(slice?.endpoints, [
    {
      addresses: ["192.0.2.1"],
      conditions: { ready: true },
      hostname: "one",
      targetRef: { kind: "Pod", name: "p" },
      nodeName: "n1",
    },
    { addresses: ["192.0.2.2"], conditions: { ready: false } },
  ]);
});

test("follows every change, with one write each, and writes nothing when nothing changed", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  const changes: [Partial<Parameters<typeof someEndpoints>[0]>, string[]][] = [
    [{ subsets: [subset("192.0.2.1", "192.0.2.2")] }, ["update"]],
    [{ subsets: [subset("192.0.2.1", "192.0.2.2")] }, []],
    [{ subsets: [subset("192.0.2.1", "192.0.2.2")], labels: { team: "b" } }, ["update"]],
    [{ subsets: [{ ...subset("192.0.2.1"), ports: [{ port: 81 }] }] }, ["update"]],
    [{ subsets: [subset("2001:db8::1")] }, ["create", "delete"]],
    [{ subsets: [] }, ["delete"]],
  ];
  for (const [change, verbs] of changes) {
    world.client.clearActions();
    world.client.put(endpoints, someEndpoints(change));
    await settle(30);
    assert.deepEqual(
      world.client.writes.map(({ verb }) => verb),
      verbs,
      JSON.stringify(change),
    );
  }
  assert.deepEqual(stored(world), []);
});

for (const { name, object, service } of [
  { name: "with the label that says so", object: { labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } } },
  { name: "that an election uses", object: { annotations: { "control-plane.alpha.kubernetes.io/leader": "{}" } } },
  { name: "whose service has a selector", object: {}, service: aService() },
  { name: "without a service", object: {}, service: aService({ name: "other" }) },
]) {
  test(`does not mirror Endpoints ${name}, and takes away what it had made`, async (t) => {
    const world = await started(t, someEndpoints({ ...object, subsets: [subset("192.0.2.1")] }), service);
    assert.deepEqual(stored(world), []);

    const before = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }));
    assert.equal(stored(before).length, 1);
    before.client.put(endpoints, someEndpoints({ ...object, subsets: [subset("192.0.2.1")] }));
    if (service?.metadata.name === "web") before.client.put(services, service);
    else if (service !== undefined) before.client.remove(services, "default/web");
    await settle(30);
    assert.deepEqual(stored(before), []);
  });
}

test("deleted Endpoints leave no slice", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1", "2001:db8::1")] }));
  assert.equal(stored(world).length, 2);
  world.client.remove(endpoints, "default/web");
  await settle(30);
  assert.deepEqual(stored(world), []);
});

test("a changed or deleted slice is repaired; slices of others are left alone", async (t) => {
  const foreign = {
    metadata: { name: "theirs", namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    endpoints: [],
    ports: [],
  };
  const world = newTestContext(t);
  world.client.put(endpointSlices, foreign);
  world.client.put(services, bareService());
  world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  await world.run(newEndpointSliceMirroringController(world.ctx));
  const own = () => stored(world).find(({ metadata }) => metadata.name !== "theirs");
  const { name = "" } = own()?.metadata ?? {};
  world.client.put(endpointSlices, {
    ...(own() as EndpointSlice),
    endpoints: [],
    metadata: { ...own()?.metadata, generation: 9 },
  });
  await settle(30);
  assert.deepEqual(own()?.endpoints.length, 1);
  world.client.remove(endpointSlices, `default/${name}`);
  await settle(30);
  assert.deepEqual(own()?.endpoints.length, 1);
  assert.ok(stored(world).some(({ metadata }) => metadata.name === "theirs"));
});

test("says what it leaves out: addresses that are none, and those beyond the limit", async (t) => {
  const world = await started(
    t,
    someEndpoints({ subsets: [subset("not-an-ip", "192.0.2.1", "192.0.2.2", "192.0.2.3")] }),
    bareService(),
    2,
  );
  assert.deepEqual(addresses(world), [["192.0.2.1", "192.0.2.2"]]);
  assert.deepEqual(
    [...new Set(world.events)],
    [
      "Warning InvalidIPAddress Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
      "Warning TooManyAddressesToMirror A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped",
    ],
  );
});

test("makes nothing twice while its cache is behind", async (t) => {
  const world = newTestContext(t);
  world.client.put(services, bareService());
  world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  let created = 0;
  world.client.react("create", "endpointslices", () => {
    created++;
    return { metadata: { name: `unseen-${created}`, uid: `u${created}`, generation: 1 } };
  });
  await world.run(newEndpointSliceMirroringController(world.ctx));
  world.client.put(endpoints, someEndpoints({ labels: { touched: "yes" }, subsets: [subset("192.0.2.1")] }));
  await settle(50);
  assert.equal(created, 1);
});

test("foreign changes of slices wait for the batch period, changes of Endpoints do not", async (t) => {
  const world = newTestContext(t, { mirroring: { maxEndpointsPerSubset: 1000, updatesBatchMs: 500 } });
  world.client.put(services, bareService());
  world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  await world.run(newEndpointSliceMirroringController(world.ctx));
  const [slice] = stored(world);
  world.client.remove(endpointSlices, `default/${slice?.metadata.name}`);
  await settle(30);
  assert.deepEqual(stored(world), []);
  await world.clock.advance(500);
  await settle(30);
  assert.equal(stored(world).length, 1);
});

test("counts what it does, under upstream's names", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1", "192.0.2.2", "2001:db8::1")] }));
  const shown = await world.ctx.registry.render();
  for (const line of [
    "endpoint_slice_mirroring_controller_endpoints_desired 3",
    "endpoint_slice_mirroring_controller_num_endpoint_slices 2",
    "endpoint_slice_mirroring_controller_desired_endpoint_slices 2",
    'endpoint_slice_mirroring_controller_changes{operation="create"} 2',
    "endpoint_slice_mirroring_controller_endpoints_added_per_sync_sum 3",
    "endpoint_slice_mirroring_controller_endpoints_sync_duration_count 1",
  ]) {
    assert.ok(shown.split("\n").includes(line), `${line}\n${shown}`);
  }
});

const plan = (object: Endpoints, existing: EndpointSlice[] = []) => atOnce(planningMirror(object, existing, 1000));

test("subsets of the same ports share a slice, whatever the order of their ports", () => {
  const [a, b] = [
    { name: "a", port: 1 },
    { name: "b", port: 2 },
  ];
  const made = plan(
    someEndpoints({
      subsets: [
        { addresses: [{ ip: "192.0.2.1" }], ports: [a, b] },
        { addresses: [{ ip: "192.0.2.2" }], ports: [b, a] },
        { addresses: [{ ip: "192.0.2.1" }], ports: [a] },
      ],
    }),
  ).create;
  assert.deepEqual(
    made.map((slice) => slice.endpoints.length),
    [2, 1],
  );
});

test("writes addresses in their usual form", () => {
  const { create } = plan(someEndpoints({ subsets: [subset("010.0.0.01", "::ffff:192.0.2.1", "2001:DB8:0::1")] }));
  assert.deepEqual(
    create.map(({ addressType, endpoints: listed }) => [addressType, listed.flatMap((endpoint) => endpoint.addresses)]),
    [
      ["IPv4", ["10.0.0.1", "192.0.2.1"]],
      ["IPv6", ["2001:db8::1"]],
    ],
  );
});

test("keeps one of several slices that say the same", () => {
  const [slice] = plan(someEndpoints({ subsets: [subset("192.0.2.1")] })).create as [EndpointSlice];
  const named = (name: string) => ({ ...slice, metadata: { ...slice.metadata, name } });
  const result = plan(someEndpoints({ subsets: [subset("192.0.2.1")] }), [named("a"), named("b")]);
  assert.deepEqual([result.create, result.update, result.delete.map(({ metadata }) => metadata.name)], [[], [], ["b"]]);
});

test("Endpoints of the name of deleted ones are mirrored though the cache never showed the slice of those", async (t) => {
  const world = newTestContext(t);
  world.client.put(services, bareService());
  world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  let unseen = 1;
  world.client.react("create", "endpointslices", () =>
    unseen-- > 0 ? { metadata: { name: "unseen", uid: "u", generation: 1 } } : undefined,
  );
  await world.run(newEndpointSliceMirroringController(world.ctx));
  world.client.remove(endpoints, "default/web");
  await settle(30);
  world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.2")] }));
  await settle(50);
  assert.deepEqual(addresses(world), [["192.0.2.2"]]);
});

test("a slice that is relabelled to another Service is made again for its own", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  world.client.put(services, { ...bareService(), metadata: { ...bareService().metadata, name: "other" } });
  world.client.put(endpoints, {
    ...someEndpoints({ subsets: [subset("192.0.2.9")] }),
    metadata: { ...someEndpoints({}).metadata, name: "other" },
  });
  await settle(30);
  const slice = stored(world).find(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === "web") as EndpointSlice;
  const labels = { ...slice.metadata.labels, "kubernetes.io/service-name": "other" };
  world.client.put(endpointSlices, { ...slice, metadata: { ...slice.metadata, labels } });
  await settle(60);
  await world.clock.advance(1_000);
  await settle(60);
  const shown = stored(world).map(({ metadata, endpoints: [first] }) => [
    metadata.labels?.["kubernetes.io/service-name"],
    first?.addresses[0],
  ]);
  assert.deepEqual(shown.sort(), [
    ["other", "192.0.2.9"],
    ["web", "192.0.2.1"],
  ]);
});

test("own changes of several slices at once lead to no further reconciliation", async (t) => {
  const two = (...last: number[]): EndpointSubset[] =>
    last.map((byte, i) => ({ ...subset(`192.0.2.${byte}`), ports: [{ name: "http", port: 80 + i, protocol: "TCP" }] }));
  const world = await started(t, someEndpoints({ subsets: two(1, 2) }));
  const synced = async (): Promise<number> => {
    await settle(60);
    const [, count] = /endpoints_sync_duration_count (\d+)/.exec(await world.ctx.registry.render()) ?? [];
    return Number(count);
  };
  const before = await synced();
  world.client.clearActions();
  world.client.put(endpoints, someEndpoints({ subsets: two(3, 4) }));
  assert.equal((await synced()) - before, 1);
  assert.equal(world.client.writes.length, 2);
});

test("Endpoints are mirrored from when their service has no selector any more", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }), aService());
  assert.deepEqual(stored(world), []);
  world.client.put(services, bareService());
  await settle(30);
  assert.deepEqual(addresses(world), [["192.0.2.1"]]);
});

test("mirrored slices are deleted when their service gets a selector", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  assert.deepEqual(addresses(world), [["192.0.2.1"]]);
  world.client.put(services, aService());
  await settle(30);
  assert.deepEqual(stored(world), []);
});

test("Endpoints are mirrored from when a service of their name is created", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }), aService({ name: "other" }));
  world.client.put(services, bareService());
  await settle(30);
  assert.deepEqual(addresses(world), [["192.0.2.1"]]);
});

test("an invalid address alone is no reason to speak of the limit", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("not-an-ip", "192.0.2.1")] }));
  assert.deepEqual(
    [...new Set(world.events)],
    ["Warning InvalidIPAddress Skipped 1 invalid IP addresses when mirroring to EndpointSlices"],
  );
});

for (const { name, failure, tries } of [
  { name: "is not tried again in a namespace that is being deleted", failure: "NamespaceTerminating", tries: 1 },
  { name: "is tried again when the server was away", failure: undefined, tries: 2 },
]) {
  test(`a slice ${name}`, async (t) => {
    const world = newTestContext(t);
    let created = 0;
    world.client.react("create", "endpointslices", () => {
      if (created++ > 0) return undefined;
      if (failure === undefined) throw serviceUnavailable("away");
      const { status } = forbidden(endpointSlices, "", "the namespace is being terminated");
      throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: failure }] } });
    });
    world.client.put(services, bareService());
    world.client.put(endpoints, someEndpoints({ subsets: [subset("192.0.2.1")] }));
    await world.run(newEndpointSliceMirroringController(world.ctx));
    await world.clock.advance(60_000);
    await settle(30);
    assert.equal(created, tries);
  });
}

test("Endpoints that are being deleted get no new slice", async (t) => {
  const world = await started(
    t,
    someEndpoints({ deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"], subsets: [subset("192.0.2.1")] }),
  );
  assert.deepEqual(stored(world), []);
});

test("an endpoint that changes its readiness, and an annotation, are written to the slice", () => {
  const made = plan(someEndpoints({ subsets: [subset("192.0.2.1")] })).create[0] as EndpointSlice;
  const slice = { ...made, metadata: { ...made.metadata, name: "s" } };
  const unready = someEndpoints({ subsets: [{ notReadyAddresses: [{ ip: "192.0.2.1" }], ports }] });
  hasFields(plan(unready, [slice]), {
    added: 0,
    updated: 1,
    removed: 0,
    update: [{ metadata: { name: "s" } }],
  });
  const noted = someEndpoints({ annotations: { note: "x" }, subsets: [subset("192.0.2.1")] });
  assert.deepEqual(plan(noted, [slice]).update[0]?.metadata.annotations, { note: "x" });
});

test("one address of two targets is two endpoints", () => {
  const addresses = ["a", "b"].map((name) => ({ ip: "192.0.2.1", targetRef: { kind: "Pod", namespace: "default", name } }));
  assert.equal(plan(someEndpoints({ subsets: [{ addresses, ports }] })).create[0]?.endpoints.length, 2);
});

test("the name of a slice has a dash unless it would be too long", () => {
  const generateName = (length: number) =>
    plan(someEndpoints({ name: "x".repeat(length), subsets: [subset("192.0.2.1")] })).create[0]?.metadata.generateName?.length;
  assert.deepEqual([generateName(252), generateName(253)], [253, 253]);
});

test("the limit holds for each subset, and counts only addresses that are valid", () => {
  const two = someEndpoints({
    subsets: [subset("x", "192.0.2.1", "192.0.2.2", "192.0.2.3"), { ...subset("192.0.2.4", "192.0.2.5"), ports: [{ port: 81 }] }],
  });
  const { create, invalid, skipped } = atOnce(planningMirror(two, [], 2));
  assert.deepEqual(
    create.map((slice) => slice.endpoints.length),
    [2, 2],
  );
  assert.deepEqual([invalid, skipped], [1, 2]);
});

test("the counts of deleted Endpoints leave the metrics", async (t) => {
  const world = await started(t, someEndpoints({ subsets: [subset("192.0.2.1")] }));
  const line = /^endpoint_slice_mirroring_controller_endpoints_desired (.*)$/m;
  const desired = async () => line.exec(await world.ctx.registry.render())?.[1];
  assert.equal(await desired(), "1");
  world.client.remove(endpoints, "default/web");
  await settle(30);
  assert.equal(await desired(), "0");
});

test("a service is looked at when it comes, goes, gets a selector or loses it, not at its other changes", async (t) => {
  const world = newTestContext(t);
  const { client, run } = world;
  const { ctx, looksAfter } = countingLooks(world.ctx);
  await run(newEndpointSliceMirroringController(ctx));
  const bare = bareService();
  const looks: number[] = [];
  for (const change of [
    () => client.put(services, bare),
    () => client.put(services, { ...bare, metadata: { ...bare.metadata, labels: { a: "b" } } }),
    () => client.put(services, aService()),
    () => client.put(services, aService({ labels: { a: "c" } })),
    () => client.put(services, aService({ spec: { selector: { app: "other" } } })),
    () => client.put(services, bare),
    () => client.remove(services, "default/web"),
    () => client.put(services, aService()),
    () => client.remove(services, "default/web"),
  ])
    looks.push(await looksAfter(change));
  assert.deepEqual(looks, [1, 0, 1, 0, 0, 1, 1, 0, 0]);
});
