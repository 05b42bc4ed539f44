import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { type TestContext, test } from "node:test";
import { connect, type PeerCertificate } from "node:tls";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { alreadyExists } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Ingress, IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import {
  endpointSlices,
  ingressClasses,
  ingresses,
  nodes,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "../flags.ts";
import type { PartContext } from "../part.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { newIngressClass } from "./classes.ts";
import { startIngress } from "./part.ts";
import { anIngress } from "./testing.ts";
import { byService, byServiceIndex, watchedBackends } from "./watched-backends.ts";

const aNode = (address: string): Node => ({
  metadata: { name: "n1" },
  spec: {},
  status: { addresses: [{ type: "InternalIP", address }] },
});
const relabelled = (slice: EndpointSlice, service: string): EndpointSlice => ({
  ...slice,
  metadata: { ...slice.metadata, labels: { "kubernetes.io/service-name": service } },
});

async function seen(t: TestContext) {
  const clock = newFakeClock();
  const web = aSlice("web", [anEndpoint("203.0.113.7", "n1")]);
  const client = newFakeClient({
    clock,
    objects: [
      [services, aService("web")],
      [services, aService("other")],
      [endpointSlices, web],
      [nodes, aNode("192.0.2.1")],
    ],
  });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const all = {
    services: informers.for<Service>(services),
    slices: informers.for<EndpointSlice>(endpointSlices),
    nodes: informers.for<Node>(nodes),
  };
  all.slices.addIndex(byServiceIndex, byService);
  informers.start(ending.signal);
  await informers.waitForSync(ending.signal);
  const backends = watchedBackends({ clock }, all);
  const urlsOf = async (name: string): Promise<readonly string[] | string> => {
    await settle();
    const found = backends.endpointsOf({ service: `default/${name}`, port: 80 });
    return "problem" in found ? found.problem.reason : found.urls;
  };
  return { clock, client, web, urlsOf };
}

test("endpoints follow their slices, also one that is relabelled to another Service", async (t) => {
  const { client, web, urlsOf } = await seen(t);
  assert.deepEqual(await urlsOf("web"), ["http://203.0.113.7:8080"]);
  assert.equal(await urlsOf("other"), "NoEndpoints");
  client.put(endpointSlices, relabelled(web, "other"));
  assert.equal(await urlsOf("web"), "NoEndpoints");
  assert.deepEqual(await urlsOf("other"), ["http://203.0.113.7:8080"]);
  client.remove(endpointSlices, "default/web-1");
  assert.equal(await urlsOf("other"), "NoEndpoints");
});

test("endpoints follow their Service when it is removed, made again and changed", async (t) => {
  const { client, urlsOf } = await seen(t);
  await urlsOf("web");
  client.remove(services, "default/web");
  assert.equal(await urlsOf("web"), "MissingService");
  client.put(services, aService("web"));
  assert.deepEqual(await urlsOf("web"), ["http://203.0.113.7:8080"]);
  client.put(services, aService("web", { ports: [{ port: 81, protocol: "TCP" }] }));
  assert.equal(await urlsOf("web"), "MissingPort");
});

test("an endpoint is refused from when a node has its address, and used again when the node has another one", async (t) => {
  const { client, clock, urlsOf } = await seen(t);
  await urlsOf("web");
  client.put(nodes, aNode("203.0.113.7"));
  await settle();
  await clock.advance(60_000);
  assert.equal(await urlsOf("web"), "NotServed");
  client.put(nodes, aNode("192.0.2.1"));
  await settle();
  await clock.advance(60_000);
  assert.deepEqual(await urlsOf("web"), ["http://203.0.113.7:8080"]);
});

const flags = {
  ...{ "ingress-http-port": 0, "ingress-https-port": 0, "ingress-response-timeout": 60_000, "ingress-idle-timeout": 60_000 },
  ...{ "ingress-max-body-bytes": 1_000, "ingress-connections-per-client": 10 },
} as ServicesFlags;

/** Starts the whole part on a loopback address. */
async function start(
  t: TestContext,
  {
    own = [],
    prepare = () => {},
    log: logged = {},
  }: {
    readonly own?: readonly Ingress[];
    readonly prepare?: (client: FakeClient, clock: FakeClock) => void;
    readonly log?: { readonly error?: (text: string) => void; readonly warn?: (text: string) => void };
  } = {},
) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects: [[nodes, aNode("192.0.2.1")], ...own.map((one) => [ingresses, one] as const)] });
  prepare(client, clock);
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  let [port, httpsPort] = [0, 0];
  const info = (text: string, fields: { readonly httpPort: number; readonly httpsPort: number }): void => {
    if (text === "Serving Ingresses") [port, httpsPort] = [fields.httpPort, fields.httpsPort];
  };
  const log = Object.assign(Object.create(discardLogger, { info: { value: info } }), logged) as typeof discardLogger;
  informers.start(ending.signal);
  const failures: unknown[] = [];
  const events: string[] = [];
  const part = await startIngress(
    {
      ...{ nodeName: "n1", flags, client, informers, log, clock, turns: newUnlimitedTurns(), metrics: newMetricsRegistry() },
      reconnection: new Reconnection({ periodMs: () => 500, clock }),
      recorder: {
        event: (object, type, reason) =>
          void events.push(`${"metadata" in object ? object.metadata.name : ""} ${type} ${reason}`),
        flush: async () => {},
      },
      signal: ending.signal,
      fail: (err) => void failures.push(err),
    },
    "127.0.0.1",
  );
  const stop = async (): Promise<void> => {
    if (ending.signal.aborted) return;
    ending.abort(new Error("the test ends"));
    await part.stop?.();
  };
  t.after(stop);
  const passed = async (): Promise<void> => {
    await settle();
    await clock.advance(200);
    await settle();
  };
  const codeOf = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const asked = request({ port, host: "127.0.0.1", headers: { host }, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.once("error", reject);
      asked.end();
    });
  const certificateOf = async (servername: string): Promise<PeerCertificate> => {
    const socket = connect({ port: httpsPort, host: "127.0.0.1", servername, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const certificate = socket.getPeerCertificate();
    socket.destroy();
    return certificate;
  };
  const addressesOf = (name: string) =>
    client.object<Ingress>(ingresses, `default/${name}`)?.status?.loadBalancer?.ingress?.map(({ ip }) => ip) ?? [];
  return { clock, client, part, failures, events, stop, passed, codeOf, certificateOf, addressesOf };
}

const ingressOf = (host: string): Ingress =>
  anIngress(host, [{ host, paths: [["Prefix", "/", "web"]] }], { spec: { ingressClassName: "coxswain" } });

test("the part makes its class, and serves an Ingress from when it is made until it is removed or has another class", async (t) => {
  const { client, part, passed, codeOf, failures } = await start(t);
  await passed();
  assert.ok(client.object<IngressClass>(ingressClasses, "coxswain"), "the class");
  assert.equal(await codeOf("a.test"), 404);
  client.put(ingresses, ingressOf("a.test"), ingressOf("b.test"));
  await passed();
  assert.deepEqual([await codeOf("a.test"), await codeOf("b.test")], [503, 503], "no endpoints yet");
  client.put(
    ingresses,
    anIngress("a.test", [{ host: "a.test", paths: [["Prefix", "/", "web"]] }], { spec: { ingressClassName: "x" } }),
  );
  await passed();
  assert.deepEqual([await codeOf("a.test"), await codeOf("b.test")], [404, 503]);
  client.remove(ingresses, "default/b.test");
  await passed();
  assert.equal(await codeOf("b.test"), 404);
  await part.check?.();
  assert.deepEqual(failures, []);
});

test("the certificates of its Ingresses are read before it serves", async (t) => {
  const ingress = ingressOf("a.test");
  const own = [{ ...ingress, spec: { ...ingress.spec, tls: [{ hosts: ["a.test"], secretName: "s" }] } }];
  const { promise: answer, resolve: answered } = Promise.withResolvers<undefined>();
  let [asked, isServing] = [false, false];
  const prepare = (client: FakeClient): void => {
    client.put(ingressClasses, newIngressClass([]));
    client.react("get", "secrets", () => {
      asked = true;
      return answer;
    });
  };
  const starting = start(t, { own, prepare }).then(() => {
    isServing = true;
  });
  await waitFor(() => asked, { what: "the Secret to be asked for" });
  await testPair(); // takes as long as the rest of the start
  await settle();
  assert.equal(isServing, false);
  answered(undefined);
  await starting;
});

test("a client gets the certificate of the host that it names, else one that says that there is none", async (t) => {
  const { cert, key } = await testPair();
  const ingress = ingressOf("a.test");
  ingress.spec.tls = [{ hosts: ["a.test"], secretName: "s" }];
  const data = Object.fromEntries(
    Object.entries({ "tls.crt": cert, "tls.key": key }).map(([name, text]) => [name, Buffer.from(text).toString("base64")]),
  );
  const { certificateOf, failures } = await start(t, {
    own: [ingress],
    prepare(client) {
      client.put(ingressClasses, newIngressClass([]));
      client.react("get", "secrets", () => ({ metadata: { resourceVersion: "1" }, data }));
    },
  });
  assert.equal((await certificateOf("a.test")).fingerprint256, new X509Certificate(cert).fingerprint256);
  const none = await certificateOf("b.test");
  assert.deepEqual([none.subject.CN, none.subjectaltname], ["no certificate for this host", "DNS:ingress.invalid"]);
  assert.deepEqual(failures, []);
});

test("neither the start nor the rules of others wait for the Secrets of an Ingress", async (t) => {
  const slow = ingressOf("slow.test");
  slow.spec.tls = [{ hosts: ["slow.test"], secretName: "slow" }];
  const { client, codeOf, passed } = await start(t, {
    own: [slow],
    prepare(client, clock) {
      client.put(ingressClasses, newIngressClass([]));
      client.react("get", "secrets", () => {
        void settle().then(() => clock.advance(5_000));
        return new Promise(() => {}); // the server does not answer
      });
    },
  });
  assert.equal(await codeOf("slow.test"), 503);
  client.put(ingresses, ingressOf("other.test"));
  await passed();
  assert.equal(await codeOf("other.test"), 503);
});

test("a class that another node has made meanwhile is no failure", async (t) => {
  const errors: string[] = [];
  let refusals = 0;
  const { passed } = await start(t, {
    prepare: (client) =>
      client.react("create", "ingressclasses", () => {
        refusals++;
        throw alreadyExists(ingressClasses, "coxswain");
      }),
    log: { error: (text) => void errors.push(text) },
  });
  await passed();
  assert.deepEqual([refusals, errors], [1, []]);
});

test("a class that cannot be made is made at a later attempt", async (t) => {
  let isAway = true;
  const { client, clock, passed } = await start(t, {
    prepare: (client) =>
      client.react("create", "ingressclasses", () => {
        if (isAway) throw new Error("etcd is away");
        return undefined;
      }),
  });
  await passed();
  assert.equal(client.object(ingressClasses, "coxswain"), undefined);
  isAway = false;
  await waitFor(async () => (await clock.advance(1_000)) ?? client.object(ingressClasses, "coxswain") !== undefined);
});

test("an address that cannot be taken back at the end is a warning", async (t) => {
  const warnings: string[] = [];
  const { client, passed, stop } = await start(t, {
    own: [ingressOf("a.test")],
    log: { warn: (text) => void warnings.push(text) },
  });
  await passed();
  client.react("patch", "ingresses", () => {
    throw new Error("etcd is away");
  });
  await stop();
  assert.deepEqual(warnings, ["cannot remove this node's address from the status of Ingresses"]);
});

test("the status of Ingresses has the node's addresses while the part runs, and no longer when it has stopped", async (t) => {
  const { client, passed, stop, addressesOf } = await start(t, { own: [ingressOf("a.test"), ingressOf("b.test")] });
  await passed();
  assert.deepEqual([addressesOf("a.test"), addressesOf("b.test")], [["192.0.2.1"], ["192.0.2.1"]]);
  client.put(nodes, aNode("192.0.2.9"));
  await passed();
  assert.deepEqual([addressesOf("a.test"), addressesOf("b.test")], [["192.0.2.9"], ["192.0.2.9"]], "all Ingresses follow");
  await stop();
  assert.deepEqual([addressesOf("a.test"), addressesOf("b.test")], [[], []]);
});

test("the annotation with the class is followed, and a class of the part that is deleted is made again", async (t) => {
  const ingress = anIngress("a.test", [{ host: "a.test", paths: [["Prefix", "/", "web"]] }], { spec: { ingressClassName: "x" } });
  const { client, passed, codeOf } = await start(t, { own: [ingress] });
  await passed();
  assert.equal(await codeOf("a.test"), 404);
  const annotations = { "kubernetes.io/ingress.class": "coxswain" };
  client.put(ingresses, { ...ingress, metadata: { ...ingress.metadata, annotations } });
  await passed();
  assert.equal(await codeOf("a.test"), 503);
  client.remove(ingressClasses, "coxswain");
  await passed();
  await passed();
  assert.ok(client.object<IngressClass>(ingressClasses, "coxswain"), "made again");
  assert.equal(await codeOf("a.test"), 503);
});

test("what an Ingress names that does not exist is an event after five seconds, and a Service without endpoints none", async (t) => {
  const ingress = ingressOf("a.test");
  ingress.spec.tls = [{ hosts: ["a.test"], secretName: "cert" }];
  const { client, clock, events, passed } = await start(t, { own: [ingress] });
  client.put(services, aService("other"));
  await passed();
  await clock.advance(4_000);
  assert.deepEqual(events, []);
  await clock.advance(2_000);
  await passed();
  assert.deepEqual(events.splice(0).sort(), ["a.test Warning MissingCertificate", "a.test Warning MissingService"]);
  client.put(services, aService("web"));
  await passed();
  await clock.advance(6_000);
  await passed();
  assert.deepEqual(events.splice(0), ["a.test Warning MissingCertificate"], "changed, and reported anew");
  client.put(services, aService("web", { ports: [{ port: 81, protocol: "TCP" }] }));
  await passed();
  await clock.advance(6_000);
  await passed();
  assert.deepEqual(events.sort(), ["a.test Warning MissingCertificate", "a.test Warning MissingPort"]);
});

test("Secrets of a new Ingress are read at once; while they cannot be read health says so", async (t) => {
  const { client, clock, part, passed } = await start(t);
  await passed();
  client.react("get", "secrets", () => {
    throw new Error("no right to read it");
  });
  const ingress = ingressOf("a.test");
  ingress.spec.tls = [{ hosts: ["a.test"], secretName: "cert" }];
  client.put(ingresses, ingress);
  await passed();
  assert.equal(client.actions.filter(({ resource }) => resource === "secrets").length, 1);
  assert.throws(() => void part.check?.(), /cannot read the Secret default\/cert for its certificate: no right to read it/);
  client.remove(ingresses, "default/a.test");
  await clock.advance(30_000);
  await passed();
  await part.check?.();
});

for (const [flag, port] of [
  ["ingress-http-port", 65_536],
  ["ingress-https-port", -1],
] as const)
  test(`--${flag}=${port} is refused`, async () => {
    const context = { flags: { ...flags, [flag]: port } } as unknown as PartContext;
    await assert.rejects(startIngress(context), { message: `--${flag} must be within the range [0, 65535], not ${port}` });
  });
