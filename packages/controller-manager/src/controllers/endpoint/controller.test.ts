import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { EndpointSubset, Endpoints, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aService, someEndpoints } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newEndpointController } from "./controller.ts";
import { endpointsOfPods } from "./endpoints-of-pods.ts";
import { canonicalSubsets, limitAddresses } from "./subsets.ts";

const webPod = (name: string, podIP: string, options: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name, podIP, nodeName: "n1", labels: { app: "web" }, ...options });
const shown = (subsets: readonly EndpointSubset[] | undefined) =>
  (subsets ?? []).map(({ addresses, notReadyAddresses, ports }) => ({
    ready: (addresses ?? []).map(({ ip }) => ip),
    notReady: (notReadyAddresses ?? []).map(({ ip }) => ip),
    ports: (ports ?? []).map(({ port }) => port),
  }));

test("lists pods by readiness, sorted by the text of their addresses, with who they are", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService({ labels: { team: "a" } }));
  client.put(
    pods,
    webPod("b", "10.1.0.20"),
    webPod("a", "10.1.0.3"),
    webPod("c", "10.1.0.4", { ready: false }),
    aPod({ name: "other", podIP: "10.1.0.9" }),
  );
  await run(newEndpointController(ctx));
  const stored = client.object<Endpoints>(endpoints, "default/web");
  assert.deepEqual(shown(stored?.subsets), [{ ready: ["10.1.0.20", "10.1.0.3"], notReady: ["10.1.0.4"], ports: [8080] }]);
  assert.deepEqual(stored?.metadata.labels, { team: "a" });
  assert.deepEqual(stored?.subsets?.[0]?.addresses?.[1], {
    ip: "10.1.0.3",
    nodeName: "n1",
    targetRef: { kind: "Pod", namespace: "default", name: "a", uid: "a-uid" },
  });
  assert.deepEqual(stored?.subsets?.[0]?.ports, [{ name: "http", port: 8080, protocol: "TCP" }]);
});

test("follows its pods, and writes only when something changed", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService());
  client.put(pods, webPod("a", "10.1.0.3"));
  await run(newEndpointController(ctx));
  client.clearActions();
  client.put(pods, webPod("a", "10.1.0.3", { annotations: { x: "y" } }));
  client.put(services, aService({ annotations: { x: "y" } }));
  await settle(30);
  assert.deepEqual(client.writes, []);
  client.put(pods, webPod("a", "10.1.0.3", { ready: false }));
  await settle(30);
  assert.deepEqual(shown(client.object<Endpoints>(endpoints, "default/web")?.subsets), [
    { ready: [], notReady: ["10.1.0.3"], ports: [8080] },
  ]);
  client.remove(pods, "default/a");
  await settle(30);
  assert.deepEqual(client.object<Endpoints>(endpoints, "default/web")?.subsets, []);
});

test("--endpoint-updates-batch-period: changes of pods are written that much later, together", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t, { endpointUpdatesBatchMs: 1000, endpointSliceUpdatesBatchMs: 9000 });
  client.put(services, aService());
  await run(newEndpointController(ctx));
  await clock.advance(1000);
  client.clearActions();
  client.put(pods, webPod("a", "10.1.0.3"));
  await clock.advance(999);
  client.put(pods, webPod("b", "10.1.0.4"));
  await settle(30);
  assert.deepEqual(client.writes, []);
  await clock.advance(1);
  const stored = client.object<Endpoints>(endpoints, "default/web");
  assert.deepEqual([client.writes.length, shown(stored?.subsets)[0]?.ready], [1, ["10.1.0.3", "10.1.0.4"]]);
});

test("removes endpoints of a service that is gone, but not an election's", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(
    endpoints,
    someEndpoints({ name: "left" }),
    someEndpoints({ name: "lock", annotations: { "control-plane.alpha.kubernetes.io/leader": "{}" } }),
  );
  await run(newEndpointController(ctx));
  assert.deepEqual(
    client.objects(endpoints).map(({ metadata }) => metadata.name),
    ["lock"],
  );
});

test("removes endpoints of a service that was deleted before the cache showed them", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.react("watch", "endpoints", () => ({
    async *[Symbol.asyncIterator]() {
      await new Promise(() => {});
    },
  }));
  client.put(services, aService());
  await run(newEndpointController(ctx));
  assert.equal(client.objects(endpoints).length, 1);
  client.remove(services, "default/web");
  await settle(30);
  assert.deepEqual(client.objects(endpoints), []);
});

test("endpoints of a service that is gone are deleted once, and what is made of their name then stays", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService());
  await run(newEndpointController(ctx));
  client.clearActions();
  client.remove(services, "default/web");
  await settle(30);
  client.put(endpoints, someEndpoints({ name: "web" }));
  await settle(30);
  assert.deepEqual(
    client.writes.map(({ verb, name }) => [verb, name]),
    [["delete", "web"]],
  );
  client.remove(endpoints, "default/web");
  await settle(30);
  assert.equal(client.writes.length, 1);
});

test("leaves alone what users make and change, until a service asks for its own; makes again what they delete", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService());
  await run(newEndpointController(ctx));
  const made = client.object<Endpoints>(endpoints, "default/web") as Endpoints & KubeObject;
  client.clearActions();
  client.put(endpoints, someEndpoints({ name: "theirs" }), { ...made, subsets: [{ addresses: [{ ip: "192.0.2.1" }] }] });
  await settle(30);
  assert.deepEqual(client.writes, []);
  client.remove(endpoints, "default/web");
  await settle(30);
  assert.deepEqual(
    client.writes.map(({ verb, name }) => [verb, name]),
    [["create", "web"]],
  );
});

test("leaves endpoints of a service without a selector alone", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const { selector: _, ...spec } = aService().spec ?? {};
  client.put(services, { ...aService(), spec });
  client.put(endpoints, someEndpoints({ subsets: [{ addresses: [{ ip: "1.2.3.4" }] }] }));
  await run(newEndpointController(ctx));
  assert.deepEqual(client.writes, []);
});

test("marks the endpoints of a headless service, and lists pods without ports if it has none", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService({ spec: { clusterIP: "None", ports: [] } }));
  client.put(pods, webPod("a", "10.1.0.3", { spec: { hostname: "a", subdomain: "web" } }));
  await run(newEndpointController(ctx));
  const stored = client.object<Endpoints>(endpoints, "default/web");
  assert.deepEqual(stored?.metadata.labels, { "service.kubernetes.io/headless": "" });
  hasFields(stored?.subsets, [{ addresses: [{ ip: "10.1.0.3", hostname: "a" }] }]);
});

test("a service that publishes what is not ready lists everything as ready", () => {
  const service = aService({ spec: { publishNotReadyAddresses: true } });
  const found: Pod[] = [
    webPod("a", "10.1.0.3", { ready: false }),
    webPod("b", "10.1.0.4", { deletedAt: "2022-01-01T00:00:00Z" }),
  ];
  assert.deepEqual(shown(canonicalSubsets(endpointsOfPods(service, found))), [
    { ready: ["10.1.0.3", "10.1.0.4"], notReady: [], ports: [8080] },
  ]);
});

for (const [annotation, field, want] of [
  ["true", false, "ready"],
  ["1", false, "ready"],
  ["false", true, "notReady"],
  ["perhaps", true, "ready"],
] as const) {
  test(`the older annotation ${annotation} beside a field that says ${field} lists what is not ready as ${want}`, () => {
    const annotations = { "service.alpha.kubernetes.io/tolerate-unready-endpoints": annotation };
    const service = aService({ annotations, spec: { publishNotReadyAddresses: field } });
    const [subset] = shown(canonicalSubsets(endpointsOfPods(service, [webPod("a", "10.1.0.3", { ready: false })])));
    assert.deepEqual(subset?.[want], ["10.1.0.3"]);
  });
}

test("an address that is ready in one subset and not in another is not ready, whichever is first", () => {
  const ports = [{ port: 80 }];
  const [ready, notReady]: EndpointSubset[] = [
    { addresses: [{ ip: "10.1.0.3" }], ports },
    { notReadyAddresses: [{ ip: "10.1.0.3" }], ports },
  ];
  for (const subsets of [
    [ready, notReady],
    [notReady, ready],
  ] as EndpointSubset[][])
    assert.deepEqual(shown(canonicalSubsets(subsets)), [{ ready: [], notReady: ["10.1.0.3"], ports: [80] }]);
});

test("addresses with other ports are a separate subset", () => {
  const subsets: EndpointSubset[] = [
    {
      addresses: [{ ip: "1.0.0.1" }],
      ports: [
        { name: "a", port: 1 },
        { name: "b", port: 2 },
      ],
    },
    {
      addresses: [{ ip: "1.0.0.2" }],
      ports: [
        { name: "b", port: 2 },
        { name: "a", port: 1 },
      ],
    },
    { addresses: [{ ip: "1.0.0.3" }], ports: [{ name: "a", port: 9 }] },
  ];
  assert.deepEqual(shown(canonicalSubsets(subsets)), [
    { ready: ["1.0.0.1", "1.0.0.2"], notReady: [], ports: [1, 2] },
    { ready: ["1.0.0.3"], notReady: [], ports: [9] },
  ]);
});

test("an address that is listed twice is not ready if one place says so", () => {
  const subsets: EndpointSubset[] = [
    { notReadyAddresses: [{ ip: "1.0.0.1" }], ports: [{ port: 1 }] },
    { addresses: [{ ip: "1.0.0.1" }], ports: [{ port: 1 }] },
  ];
  assert.deepEqual(shown(canonicalSubsets(subsets)), [{ ready: [], notReady: ["1.0.0.1"], ports: [1] }]);
});

for (const { name, given, want } of [
  { name: "a thousand addresses, the ready ones first", given: [[900, 900]], want: [[900, 100]] },
  {
    name: "of each subset its share, rounded up",
    given: [
      [1000, 5],
      [500, 0],
    ],
    want: [
      [667, 0],
      [333, 0],
    ],
  },
  {
    name: "of those that are not ready what the ready ones leave room for",
    given: [
      [300, 600],
      [300, 600],
      [300, 0],
    ],
    want: [
      [300, 50],
      [300, 50],
      [300, 0],
    ],
  },
]) {
  test(`keeps ${name}`, () => {
    const some = (count = 0) => Array.from({ length: count }, (_, i) => ({ ip: `10.1.${Math.floor(i / 250)}.${i % 250}` }));
    const { subsets, truncated } = limitAddresses(
      given.map(([ready, notReady], i) => ({ addresses: some(ready), notReadyAddresses: some(notReady), ports: [{ port: i }] })),
    );
    assert.equal(truncated, true);
    assert.deepEqual(
      subsets.map(({ addresses = [], notReadyAddresses = [] }) => [addresses.length, notReadyAddresses.length]),
      want,
    );
  });
}

test("says for which change it wrote, as long as there is one", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const written = () => client.object<Endpoints>(endpoints, "default/web")?.metadata.annotations;
  const name = "endpoints.kubernetes.io/last-change-trigger-time";
  client.put(services, aService({ createdAt: "2022-01-01T00:00:00Z" }));
  client.put(pods, webPod("a", "10.1.0.3", { readySince: "2022-01-01T00:01:00Z" }));
  await run(newEndpointController(ctx));
  assert.equal(written()?.[name], "2022-01-01T00:00:00Z");
  client.put(pods, webPod("a", "10.1.0.3", { ready: false, readySince: "2022-01-01T00:02:00Z" }));
  await settle(30);
  assert.equal(written()?.[name], "2022-01-01T00:02:00Z");
  client.remove(pods, "default/a");
  await settle(30);
  assert.equal(written()?.[name], undefined);
});

for (const { name, verb, failure, want } of [
  {
    name: "reports Endpoints that may not be created, and tries again",
    verb: "create" as const,
    failure: forbidden(endpoints, "web", "exceeded quota"),
    want: 'Warning FailedToCreateEndpoint Failed to create endpoint for service default/web: endpoints "web" is forbidden: exceeded quota',
  },
  {
    name: "reports Endpoints that may not be changed, and tries again",
    verb: "update" as const,
    failure: forbidden(endpoints, "web", "no"),
    want: 'Warning FailedToUpdateEndpoint Failed to update endpoint default/web: endpoints "web" is forbidden: no',
  },
  {
    name: "does not report Endpoints that the cache does not show yet",
    verb: "create" as const,
    failure: alreadyExists(endpoints, "web"),
  },
]) {
  test(name, async (t) => {
    const { client, clock, ctx, events, regarding, run } = newTestContext(t);
    let failures = 0;
    client.react(verb, "endpoints", () => {
      if (failures++ === 0) throw failure;
    });
    client.put(services, aService());
    if (verb === "update") client.put(endpoints, { metadata: { namespace: "default", name: "web" } });
    client.put(pods, webPod("a", "10.1.0.3"));
    await run(newEndpointController(ctx));
    await clock.advance(1000);
    await waitFor(() => client.object<Endpoints>(endpoints, "default/web")?.subsets?.length === 1);
    assert.deepEqual([events, regarding], want === undefined ? [[], []] : [[want], ["Endpoints default/web"]]);
  });
}

test("endpoints that are no longer too many do not say that they were cut", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService());
  client.put(pods, webPod("a", "10.1.0.3"));
  const annotations = { "endpoints.kubernetes.io/over-capacity": "truncated" };
  client.put(endpoints, { metadata: { name: "web", namespace: "default", annotations } });
  await run(newEndpointController(ctx));
  const stored = client.object<Endpoints>(endpoints, "default/web");
  assert.deepEqual(
    [stored?.subsets?.length, stored?.metadata.annotations?.["endpoints.kubernetes.io/over-capacity"]],
    [1, undefined],
  );
});

test("a service of the name of a deleted one begins with its own time", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService({ createdAt: "2022-01-01T00:00:00Z" }));
  client.put(pods, webPod("a", "10.1.0.3", { readySince: "2022-01-01T00:00:00Z" }));
  await run(newEndpointController(ctx));
  client.remove(services, "default/web");
  await settle(30);
  client.put(pods, webPod("a", "10.1.0.3", { readySince: "2022-01-01T00:01:00Z" }));
  client.put(services, aService({ createdAt: "2022-01-01T00:02:00Z" }));
  await settle(30);
  const written = client.object<Endpoints>(endpoints, "default/web")?.metadata.annotations;
  assert.equal(written?.["endpoints.kubernetes.io/last-change-trigger-time"], "2022-01-01T00:02:00Z");
});
