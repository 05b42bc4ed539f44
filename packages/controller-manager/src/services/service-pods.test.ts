import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aService, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../testing/test-context.ts";
import {
  addressesOf,
  countsAsEndpoint,
  endpointChange,
  familiesOf,
  hostnameIn,
  isSelectedBy,
  missingPort,
  podsOf,
  portsResolver,
  serviceSources,
} from "./service-pods.ts";

for (const { name, labels, selector, want } of [
  { name: "all labels of the selector", labels: { app: "web", tier: "x" }, selector: { app: "web" }, want: true },
  { name: "the first label of the selector only", labels: { app: "web" }, selector: { app: "web", tier: "x" }, want: false },
  { name: "another value", labels: { app: "api" }, selector: { app: "web" }, want: false },
  { name: "no labels", labels: {}, selector: { app: "web" }, want: false },
  { name: "an empty selector", labels: { app: "web" }, selector: {}, want: false },
  { name: "a label named like a method of objects", labels: {}, selector: { constructor: "x" }, want: false },
] as { name: string; labels: Record<string, string>; selector: Record<string, string>; want: boolean }[]) {
  test(`a pod with ${name} is ${want ? "" : "not "}selected`, () => {
    assert.equal(isSelectedBy(aPod({ labels }), aService({ spec: { selector } })), want);
  });
}

test("a service finds its pods by its rarest label, in its own namespace, also after they changed", async (t) => {
  const { client, ctx, signal } = newTestContext(t);
  const labels = { part: "shop", app: "web" };
  client.put(
    pods,
    aPod({ name: "a", labels }),
    aPod({ name: "b", labels: { ...labels, more: "x" } }),
    aPod({ name: "c", labels: { part: "shop", app: "api" } }),
    aPod({ name: "d", labels: { app: "web" } }),
    aPod({ name: "e", namespace: "other", labels }),
  );
  ctx.informers.for(pods);
  ctx.informers.start(signal);
  await ctx.informers.waitForSync(signal);
  const found = (selector?: Record<string, string>, namespace = "default") =>
    podsOf(ctx.informers, aService({ namespace, spec: { selector } }))
      .map(({ metadata }) => metadata.name)
      .toSorted();
  assert.deepEqual(found(labels), ["a", "b"]);
  assert.deepEqual(found(labels, "other"), ["e"]);
  assert.deepEqual(found({ part: "shop" }), ["a", "b", "c"]);
  assert.deepEqual(found({ ...labels, app: "nobody" }), []);
  assert.deepEqual([found({}), found(undefined)], [[], []]);
  client.put(pods, aPod({ name: "a", labels: { app: "web", part: "blog" } }), aPod({ name: "d", labels }));
  client.remove(pods, "default/b");
  await settle();
  assert.deepEqual(found(labels), ["d"]);
});

test("a pod of 300 labels, which are not indexed, is found by its services and wakes them", async (t) => {
  const { client, ctx, signal } = newTestContext(t);
  const labels = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`l${at}`, "v"]));
  const [first, second] = [{ l5: "v" }, { l5: "w" }].map((selector, at) => aService({ name: `s${at}`, spec: { selector } }));
  client.put(services, first!, second!);
  ctx.informers.for(pods);
  ctx.informers.for(services);
  ctx.informers.start(signal);
  await ctx.informers.waitForSync(signal);
  const woken: string[] = [];
  const [, ofPods] = serviceSources(ctx.informers);
  ofPods?.start({ enqueue: (key) => void woken.push(key), enqueueAfter: () => {} });
  const found = () => [first!, second!].map((service) => podsOf(ctx.informers, service).length);
  client.put(pods, aPod({ name: "large", labels }));
  await settle();
  assert.deepEqual([woken, found()], [["default/s0"], [1, 0]]);
  client.put(pods, aPod({ name: "large", labels: { ...labels, l5: "w" } }));
  await settle();
  assert.deepEqual(
    [woken, found()],
    [
      ["default/s0", "default/s0", "default/s1"],
      [0, 1],
    ],
  );
  client.put(pods, aPod({ name: "large", labels: { l5: "v" } }));
  await settle();
  assert.deepEqual(
    [woken.slice(3), found()],
    [
      ["default/s1", "default/s0"],
      [1, 0],
    ],
  );
});

test("a pod wakes the services that select it, or did, once each", async (t) => {
  const { client, ctx, signal } = newTestContext(t);
  const selecting = (name: string, selector: Record<string, string>, namespace = "default") =>
    aService({ name, namespace, spec: { selector } });
  client.put(
    services,
    selecting("web", { app: "web" }),
    selecting("frontend", { tier: "front", app: "web" }),
    selecting("api", { app: "api" }),
    selecting("all", {}),
    selecting("web", { app: "web" }, "other"),
  );
  const woken: string[] = [];
  ctx.informers.for(services);
  ctx.informers.start(signal);
  await ctx.informers.waitForSync(signal);
  const [, ofPods] = serviceSources(ctx.informers);
  ofPods?.start({ enqueue: (key) => void woken.push(key), enqueueAfter: () => {} });
  const wokenBy = async (change: () => void): Promise<string[]> => {
    woken.length = 0;
    change();
    await settle();
    return woken.toSorted();
  };
  const put = (labels: Record<string, string>) => () => client.put(pods, aPod({ labels }));
  const frontend = { app: "web", tier: "front" };
  assert.deepEqual(await wokenBy(put({ app: "web" })), ["default/web"]);
  assert.deepEqual(await wokenBy(put(frontend)), ["default/frontend", "default/web"]);
  assert.deepEqual(await wokenBy(put({ app: "api" })), ["default/api", "default/frontend", "default/web"]);
  client.put(services, selecting("api", { app: "other" }));
  await settle();
  assert.deepEqual(await wokenBy(put({ app: "other", more: "x" })), ["default/api"]);
  assert.deepEqual(await wokenBy(() => client.remove(pods, "default/pod")), ["default/api"]);
});

for (const { name, pod, terminating, want } of [
  { name: "that runs", pod: { podIP: "10.1.0.1" }, terminating: false, want: true },
  { name: "without an address", pod: {}, terminating: false, want: false },
  { name: "that finished", pod: { podIP: "10.1.0.1", phase: "Succeeded" }, terminating: true, want: false },
  { name: "on its way out", pod: { podIP: "10.1.0.1", deletedAt: "2022-01-01T00:00:00Z" }, terminating: false, want: false },
  {
    name: "on its way out, where that is wanted",
    pod: { podIP: "10.1.0.1", deletedAt: "2022-01-01T00:00:00Z" },
    terminating: true,
    want: true,
  },
] as { name: string; pod: PodOptions; terminating: boolean; want: boolean }[]) {
  test(`a pod ${name} is ${want ? "an" : "no"} endpoint`, () => assert.equal(countsAsEndpoint(aPod(pod), terminating), want));
}

const ported = aPod({
  spec: {
    containers: [
      { name: "a", ports: [{ name: "web", containerPort: 8080 }] },
      {
        name: "b",
        ports: [
          { name: "dns", containerPort: 53, protocol: "UDP" },
          { name: "web", containerPort: 9090 },
        ],
      },
    ],
  },
});
for (const { name, port, want } of [
  { name: "a number", port: { port: 80, targetPort: 9000 }, want: 9000 },
  { name: "nothing", port: { port: 80 }, want: 80 },
  { name: "0, as nothing", port: { port: 80, targetPort: 0 }, want: 80 },
  { name: "an empty text, as nothing", port: { port: 80, targetPort: "" }, want: 80 },
  { name: "a name, of two ports the first", port: { port: 80, targetPort: "web" }, want: 8080 },
  { name: "a name of another protocol", port: { port: 53, targetPort: "dns" }, want: undefined },
  { name: "a name with its protocol", port: { port: 53, targetPort: "dns", protocol: "UDP" }, want: 53 },
  { name: "a name that the pod lacks", port: { port: 80, targetPort: "nope" }, want: undefined },
]) {
  test(`a target port that is ${name}`, () => {
    const service = aService({ spec: { ports: [port] } });
    assert.deepEqual(portsResolver(service, (_, number) => number)(ported), want === undefined ? [] : [want]);
    assert.equal(missingPort(service, ported), want === undefined ? port : undefined);
  });
}

test("pods with the same numbers of named ports share one list; the work is not ports times pods", () => {
  const ports = Array.from({ length: 20_000 }, (_, at) => ({ port: at + 1, name: `p${at}`, targetPort: at === 0 ? "web" : at }));
  const portsOf = portsResolver(aService({ spec: { ports } }), (_, number) => number);
  const lists = new Set<number[]>();
  const ms = cpuMsOf(() => {
    for (let at = 0; at < 1000; at++) {
      const web = { name: "web", containerPort: 8000 + (at % 2) };
      lists.add(portsOf(aPod({ spec: { containers: [{ name: "a", ports: [web] }] } })));
    }
  });
  assert.equal(lists.size, 2);
  assert.ok(ms < 1000, `${ms} ms`); // 4 s when each pod's ports are resolved
});

test("families come from the service, or from its address", () => {
  assert.deepEqual(familiesOf(aService({ spec: { ipFamilies: ["IPv6", "IPv4"] } })), ["IPv6", "IPv4"]);
  const { ipFamilies: _, ...spec } = aService().spec ?? {};
  assert.deepEqual(familiesOf({ metadata: {}, spec: { ...spec, clusterIP: "fd00::1" } }), ["IPv6"]);
  assert.deepEqual(familiesOf({ metadata: {}, spec: { ...spec, clusterIP: "None" } }), ["IPv4", "IPv6"]);
  assert.deepEqual(familiesOf({ metadata: {}, spec: { ...spec, ipFamilies: [], clusterIP: "fd00::1" } }), ["IPv6"]);
});

test("only what endpoints show wakes services", () => {
  const before = aPod({ podIP: "10.1.0.1" });
  const at = (resourceVersion: string, options: PodOptions) => {
    const pod = aPod({ podIP: "10.1.0.1", ...options });
    pod.metadata.resourceVersion = resourceVersion;
    return pod;
  };
  assert.equal(endpointChange(before, at("2", { annotations: { a: "b" } })), "none");
  assert.equal(endpointChange(before, at("2", { ready: false })), "other");
  assert.equal(endpointChange(before, at("2", { labels: { app: "web" } })), "labels");
  assert.equal(endpointChange(before, at("2", { deletedAt: "2022-01-01T00:00:00Z" })), "other");
});

test("labels have changed when one is another, missing or more, whatever objects inherit", () => {
  const aLabelled = (labels: Record<string, string> | undefined): Pod => {
    const pod = aPod({});
    if (labels === undefined) delete pod.metadata.labels;
    else pod.metadata.labels = labels;
    return pod;
  };
  const change = (old: Record<string, string> | undefined, now: Record<string, string> | undefined) =>
    endpointChange(aLabelled(old), aLabelled(now));
  assert.equal(change({ a: "1", b: "2" }, { b: "2", a: "1" }), "none");
  assert.equal(change({}, undefined), "none");
  assert.equal(change({ a: "1" }, { a: "2" }), "labels");
  assert.equal(change({ a: "1" }, { b: "1" }), "labels");
  assert.equal(change({ a: "1", b: "2" }, { a: "1" }), "labels");
  assert.equal(change(undefined, { a: "1" }), "labels");
  assert.equal(change({ toString: "1" }, { a: "1" }), "labels");
  assert.equal(change({ a: "1" }, { toString: "1" }), "labels");
});

for (const { name, options } of [
  { name: "its phase", options: { phase: "Succeeded", ready: true } },
  { name: "its address", options: { podIP: "10.1.0.2" } },
  { name: "its node", options: { nodeName: "n2" } },
  { name: "its host name", options: { spec: { hostname: "x" } } },
  { name: "its subdomain", options: { spec: { subdomain: "x" } } },
  { name: "its uid", options: { uid: "another" } },
] as { name: string; options: PodOptions }[]) {
  test(`a pod that changes ${name} shows in endpoints; a resync does not`, () => {
    const before = aPod({ podIP: "10.1.0.1", nodeName: "n1" });
    const now = aPod({ podIP: "10.1.0.1", nodeName: "n1", ...options });
    assert.equal(endpointChange(now, now), "none");
    assert.equal(endpointChange(before, now), "other");
  });
}

test("a host name is a pod's in a service's DNS only with that service's subdomain and namespace", () => {
  const service = aService({ name: "web" });
  const pod = (hostname: string, subdomain: string, namespace = "default") => aPod({ namespace, spec: { hostname, subdomain } });
  assert.equal(hostnameIn(pod("x", "web"), service), "x");
  assert.equal(hostnameIn(pod("x", "api"), service), undefined);
  assert.equal(hostnameIn(pod("x", "web", "shop"), service), undefined);
  assert.equal(hostnameIn(pod("", "web"), service), undefined);
});

for (const { name, status, want } of [
  {
    name: "a list of them",
    status: { podIP: "10.1.0.1", podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }] },
    want: ["10.1.0.1", "fd00::1"],
  },
  { name: "one alone", status: { podIP: "10.1.0.1" }, want: ["10.1.0.1"] },
  { name: "one beside a list of empty ones", status: { podIP: "10.1.0.1", podIPs: [{ ip: "" }, {}] }, want: ["10.1.0.1"] },
  { name: "an empty one", status: { podIP: "" }, want: [] },
])
  test(`the addresses of a pod with ${name} are [${want}]`, () => assert.deepEqual(addressesOf({ ...aPod(), status }), want));
