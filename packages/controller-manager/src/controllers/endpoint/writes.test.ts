import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, notFound, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { EndpointSubset, Endpoints, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aService, someEndpoints } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newEndpointController } from "./controller.ts";
import { endpointsOfPods } from "./endpoints-of-pods.ts";
import { missingAddresses } from "./missing-addresses.ts";
import { canonicalSubsets, limitAddresses } from "./subsets.ts";

const webPod = (name: string, podIP: string, options: Parameters<typeof aPod>[0] = {}): Pod =>
  aPod({ name, podIP, labels: { app: "web" }, ...options });

test("nothing is tried again, and nothing is reported, in a namespace that is being deleted", async (t) => {
  const { client, clock, ctx, events, run } = newTestContext(t);
  let tries = 0;
  client.react("create", "endpoints", () => {
    tries++;
    const { status } = forbidden(endpoints, "web", "the namespace is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  client.put(services, aService());
  await run(newEndpointController(ctx));
  await clock.advance(60_000);
  assert.deepEqual([tries, events], [1, []]);
});

test("a service of type ExternalName has no endpoints, though it has a selector", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService({ spec: { type: "ExternalName", externalName: "example.com" } }));
  client.put(pods, webPod("a", "10.1.0.1"));
  await run(newEndpointController(ctx));
  assert.deepEqual(client.writes, []);
});

for (const { name, failure, deletions } of [
  { name: "are gone already are not deleted again", failure: notFound(endpoints, "left"), deletions: 1 },
  { name: "cannot be deleted are deleted later", failure: serviceUnavailable("away"), deletions: 2 },
]) {
  test(`endpoints without a service that ${name}, and only those that were seen`, async (t) => {
    const { client, clock, ctx, run } = newTestContext(t);
    const sent: unknown[] = [];
    client.react("delete", "endpoints", (action) => {
      sent.push(action.sent);
      if (sent.length === 1) throw failure;
      return undefined;
    });
    client.put(endpoints, someEndpoints({ name: "left" }));
    await run(newEndpointController(ctx));
    await clock.advance(1000);
    await settle(30);
    assert.equal(sent.length, deletions);
    assert.deepEqual(sent[0], { preconditions: { uid: "left-uid" } });
  });
}

test("endpoints follow the labels of their service and keep their own annotations and other metadata", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const stored = () => client.object<Endpoints>(endpoints, "default/web")?.metadata;
  client.put(endpoints, someEndpoints({ annotations: { note: "mine" }, finalizers: ["example.com/x"], subsets: [] }));
  client.put(services, aService({ labels: { team: "a" }, spec: { clusterIP: "None" } }));
  await run(newEndpointController(ctx));
  hasFields(stored(), {
    labels: { team: "a", "service.kubernetes.io/headless": "" },
    annotations: { note: "mine" },
    finalizers: ["example.com/x"],
  });
  client.put(services, aService({ labels: { team: "b", "service.kubernetes.io/headless": "" } }));
  await settle(30);
  assert.deepEqual(stored()?.labels, { team: "b" }, "the label of headless services is not copied");
});

test("endpoints of more than a thousand pods are cut and say so", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(services, aService());
  client.put(pods, ...Array.from({ length: 1001 }, (_, i) => webPod(`p${i}`, `10.1.${Math.floor(i / 250)}.${i % 250}`)));
  await run(newEndpointController(ctx));
  const stored = client.object<Endpoints>(endpoints, "default/web");
  assert.equal(stored?.subsets?.[0]?.addresses?.length, 1000);
  assert.equal(stored?.metadata.annotations?.["endpoints.kubernetes.io/over-capacity"], "truncated");
});

test("exactly a thousand addresses are not cut; a subset that loses all of them is left out", () => {
  const some = (count: number) => Array.from({ length: count }, (_, i) => ({ ip: `10.1.${Math.floor(i / 250)}.${i % 250}` }));
  assert.equal(limitAddresses([{ addresses: some(600), notReadyAddresses: some(400) }]).truncated, false);
  const { subsets } = limitAddresses([
    { addresses: some(1000), ports: [{ port: 1 }] },
    { notReadyAddresses: some(1), ports: [{ port: 2 }] },
  ]);
  assert.deepEqual(
    subsets.map(({ ports }) => ports),
    [[{ port: 1 }]],
  );
});

test("pods that name their ports differently are in separate subsets, one without the port in none", () => {
  const service = aService({ spec: { ports: [{ name: "http", port: 80, targetPort: "web" }] } });
  const withPort = (name: string, podIP: string, containerPort: number) =>
    webPod(name, podIP, { spec: { containers: [{ name: "main", image: "x", ports: [{ name: "web", containerPort }] }] } });
  const found = endpointsOfPods(service, [
    withPort("a", "10.1.0.1", 8080),
    withPort("b", "10.1.0.2", 8081),
    webPod("c", "10.1.0.3"),
    withPort("d", "10.1.0.4", 8080),
  ]);
  assert.deepEqual(
    canonicalSubsets(found).map(({ addresses, ports }) => [addresses?.map(({ ip }) => ip), ports?.map(({ port }) => port)]),
    [
      [["10.1.0.1", "10.1.0.4"], [8080]],
      [["10.1.0.2"], [8081]],
    ],
  );
  const headless = { ...service, spec: { ...service.spec, clusterIP: "None" } };
  assert.deepEqual(endpointsOfPods(headless, [webPod("c", "10.1.0.3")]), [], "nor for a headless service");
  const noPorts = aService({ spec: { ports: [] } });
  assert.deepEqual(endpointsOfPods(noPorts, [webPod("a", "10.1.0.1")]), [], "without ports only a headless service has any");
});

test("addresses are of the service's first family, with the protocol of each port", () => {
  const service = aService({
    spec: {
      ipFamilies: ["IPv6", "IPv4"],
      ports: [
        { name: "dns", port: 53, protocol: "UDP", appProtocol: "dns" },
        { name: "dns-tcp", port: 53 },
      ],
    },
  });
  const dual = webPod("a", "10.1.0.1", { status: { podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }] } });
  const [subset] = canonicalSubsets(endpointsOfPods(service, [webPod("b", "10.1.0.2"), dual, webPod("c", "10.1.0.3")]));
  assert.deepEqual(
    subset?.addresses?.map(({ ip, nodeName }) => [ip, nodeName]),
    [["fd00::1", undefined]],
  );
  assert.deepEqual(subset?.ports, [
    { name: "dns", port: 53, protocol: "UDP", appProtocol: "dns" },
    { name: "dns-tcp", port: 53, protocol: "TCP" },
  ]);
});

test("one address of two pods is listed for each, and ports that differ in protocol alone are kept apart", () => {
  const address = (uid: string) => ({ ip: "10.1.0.1", targetRef: { kind: "Pod", name: uid, uid } });
  const subsets: EndpointSubset[] = [
    { addresses: [address("b")], ports: [{ port: 53, protocol: "UDP" }] },
    { addresses: [address("a")], ports: [{ port: 53, protocol: "UDP" }] },
    { addresses: [address("a")], ports: [{ port: 53, protocol: "TCP" }] },
  ];
  assert.deepEqual(
    canonicalSubsets(subsets).map(({ addresses, ports }) => [
      ports?.map(({ protocol }) => protocol),
      addresses?.map(({ targetRef }) => targetRef?.uid),
    ]),
    [
      [["TCP"], ["a"]],
      [["UDP"], ["a", "b"]],
    ],
  );
});

test("the ports of a subset are in the order of their names and protocols, however they were listed", () => {
  const ports = [
    { name: "a", port: 9, protocol: "TCP" },
    { name: "b", port: 1, protocol: "SCTP" },
    { name: "b", port: 1, protocol: "TCP" },
    { name: "b", port: 1, protocol: "TCP", appProtocol: "http" },
    { name: "b", port: 2, protocol: "TCP" },
  ];
  const orders = [ports, ports.toReversed(), [2, 4, 0, 3, 1].map((at) => ports[at] as (typeof ports)[number])];
  for (const listed of orders) {
    assert.deepEqual(canonicalSubsets([{ addresses: [{ ip: "10.1.0.1" }], ports: listed }])[0]?.ports, ports);
  }
});

const v4 = { clusterIP: "10.0.0.1" };
const named = { ...v4, ports: [{ name: "http", port: 80, targetPort: "web" }] };
for (const { name, pod, spec = v4, why } of [
  { name: "that ended", pod: webPod("a", "10.1.0.1", { phase: "Succeeded" }), why: "ended" },
  { name: "that is being deleted", pod: webPod("a", "10.1.0.1", { deletedAt: "2024-01-01T00:00:00Z" }), why: "being deleted" },
  { name: "without an address", pod: aPod({ name: "a" }), why: "without an address yet" },
  { name: "of the other family", pod: webPod("a", "fd00::1"), why: "without an IPv4 address" },
  { name: "without the named port", pod: webPod("a", "10.1.0.1"), spec: named, why: "without a port named web" },
  { name: "that is not ready", pod: webPod("a", "10.1.0.1", { ready: false }), why: "not ready" },
  {
    name: "that is not ready where that does not matter",
    pod: webPod("a", "10.1.0.1", { ready: false }),
    spec: { ...v4, publishNotReadyAddresses: true },
    why: undefined,
  },
]) {
  test(`the decision about a pod ${name} ${why === undefined ? "is that nothing is missing" : `says ${why}`}`, () => {
    const good = webPod("good", "10.1.0.9", {
      spec: { containers: [{ name: "main", image: "x", ports: [{ name: "web", containerPort: 8080 }] }] },
    });
    const outcome = missingAddresses(aService({ spec }), [good, pod]);
    assert.equal(outcome?.reason, why === undefined ? undefined : "EndpointsMissing");
    if (why === undefined) return;
    const description = typeof outcome?.description === "function" ? outcome.description() : undefined;
    assert.partialDeepStrictEqual(description, {
      summary: `1 of 2 selected pods are not endpoints: 1 ${why}`,
      details: { pods: { a: why } },
    });
    assert.equal(missingAddresses(aService({ spec }), [pod])?.reason, "NoEndpoints");
  });
}
