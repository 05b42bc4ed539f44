import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { isRefused } from "./addresses.ts";
import { Backends } from "./backends.ts";
import { isServed, newIngressClass } from "./classes.ts";
import { ClientLimits } from "./client-limits.ts";
import { requestHeaders, responseHeaders } from "./headers.ts";
import { controllerName } from "./names.ts";
import { newNodeAddresses } from "./node-addresses.ts";
import { addressesWith } from "./status.ts";
import { anIngress } from "./testing.ts";

const aClass = (name: string, controller: string, isDefault = false): IngressClass => ({
  metadata: { name, ...(isDefault && { annotations: { "ingressclass.kubernetes.io/is-default-class": "true" } }) },
  spec: { controller },
});

describe("Ingresses that are served", () => {
  const own = aClass("coxswain", controllerName, true);
  const nginx = aClass("nginx", "k8s.io/ingress-nginx");
  const withAnnotation = (name: string) => {
    const ingress = anIngress("a", []);
    return { ...ingress, metadata: { ...ingress.metadata, annotations: { "kubernetes.io/ingress.class": name } } };
  };
  for (const { name, ingress, classes = [own, nginx], want } of [
    { name: "one of the own class", ingress: anIngress("a", [], { spec: { ingressClassName: "coxswain" } }), want: true },
    { name: "not one of another class", ingress: anIngress("a", [], { spec: { ingressClassName: "nginx" } }), want: false },
    {
      name: "not one of a class that does not exist",
      ingress: anIngress("a", [], { spec: { ingressClassName: "x" } }),
      want: false,
    },
    { name: "one whose annotation names the own class", ingress: withAnnotation("coxswain"), want: true },
    { name: "not one whose annotation names another", ingress: withAnnotation("nginx"), want: false },
    { name: "one without class, where the own is the default", ingress: anIngress("a", []), want: true },
    {
      name: "not without class, where none is the default",
      ingress: anIngress("a", []),
      classes: [aClass("c", controllerName)],
      want: false,
    },
    {
      name: "not without class, where two are the default",
      ingress: anIngress("a", []),
      classes: [own, aClass("b", "b", true)],
      want: false,
    },
  ])
    test(name, () => assert.equal(isServed(ingress, classes), want));

  test("the class that is made is the default one, unless another is", () => {
    assert.ok(newIngressClass([nginx]).metadata.annotations);
    assert.equal(newIngressClass([aClass("nginx", "n", true)]).metadata.annotations, undefined);
  });
});

describe("addresses that are refused", () => {
  const nodes = new Set(["192.0.2.11", "2001:db8::11"]);
  for (const address of ["127.0.0.1", "127.9.9.9", "169.254.169.254", "0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.11"])
    test(address, () => assert.equal(isRefused(address, nodes), true));
  for (const address of [
    "::1",
    "::",
    "fe80::1",
    "febf::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2001:db8::11",
    "2001:DB8:0:0::0011",
    "fe80::1%eth0",
    "2001:db8::7%eth0",
    "localhost",
    "",
  ])
    test(address || "none", () => assert.equal(isRefused(address, nodes), true));
  for (const address of ["10.244.0.7", "192.0.2.12", "2001:db8::7", "fd00::7"])
    test(`${address} is not`, () => assert.equal(isRefused(address, nodes), false));
});

test("a node's addresses are known in any spelling of its object, and those of this machine's interfaces", () => {
  const addresses = ["2001:DB8::0011", "192.0.2.11", "node-1.example"].map((address) => ({ type: "InternalIP", address }));
  const nodes = () => [{ metadata: { name: "n1" }, spec: {}, status: { addresses } }];
  const known = newNodeAddresses({ nodes, now: () => 0 })();
  for (const address of ["2001:db8::11", "192.0.2.11", "127.0.0.1"]) assert.equal(known.has(address), true, address);
  assert.equal(known.has("node-1.example"), false);
});

test("the interfaces are looked at every quarter of a second at most", () => {
  let [now, looks] = [0, 0];
  const interfaces = () => {
    looks++;
    return {};
  };
  const addresses = newNodeAddresses({ nodes: () => [], now: () => now, interfaces });
  for (const at of [0, 100, 249, 250, 499, 500]) {
    now = at;
    addresses();
  }
  assert.equal(looks, 3);
});

test("an interface that comes is known a quarter of a second later, and its endpoints are refused although they were known before", () => {
  let now = 0;
  const interfaces: NodeJS.Dict<{ address: string }[]> = { eth0: [{ address: "192.0.2.1" }] };
  const nodeAddresses = newNodeAddresses({ nodes: () => [], now: () => now, interfaces: () => interfaces as never });
  const slices = [aSlice("web", [anEndpoint("10.88.0.1", "n1")])];
  const backends = new Backends({
    services: { get: () => aService("web") } as never,
    slicesOf: () => slices,
    isRefused: (address) => isRefused(address, nodeAddresses()),
    addresses: nodeAddresses,
  });
  const find = () => backends.endpointsOf({ service: "default/web", port: 80 });
  const before = find();
  assert.deepEqual(before, { urls: ["http://10.88.0.1:8080"] });
  now += 250;
  assert.equal(find(), before, "while the addresses are the same nothing is looked up again");
  interfaces["bridge0"] = [{ address: "10.88.0.1" }];
  now += 250;
  assert.partialDeepStrictEqual(find(), { problem: { reason: "NotServed" } });
  delete interfaces["bridge0"];
  now += 250;
  assert.deepEqual(find(), before);
});

test("a Service that is made anew under the same name has its own endpoints, not those of the removed one", () => {
  let service: ReturnType<typeof aService> | undefined = aService("web");
  let slices = [aSlice("web", [anEndpoint("10.88.0.1", "n1")])];
  const services = { get: () => service } as never;
  const backends = new Backends({ services, slicesOf: () => slices, isRefused: () => false });
  const find = () => backends.endpointsOf({ service: "default/web", port: 80 });
  assert.deepEqual(find(), { urls: ["http://10.88.0.1:8080"] });
  service = undefined;
  backends.changed("default/web");
  assert.partialDeepStrictEqual(find(), { problem: { reason: "MissingService" } });
  service = aService("web");
  slices = [aSlice("web", [anEndpoint("10.88.0.2", "n1")])];
  assert.deepEqual(find(), { urls: ["http://10.88.0.2:8080"] });
});

describe("endpoints of a backend", () => {
  const services = new Map([
    ["default/web", aService("web")],
    ["default/named", aService("named", { ports: [{ name: "http", port: 80, protocol: "TCP" }] })],
    ["default/udp", aService("udp", { ports: [{ port: 80, protocol: "UDP" }] })],
    [
      "default/both",
      aService("both", { ports: ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), port: 80, protocol })) }),
    ],
    ["default/elsewhere", aService("elsewhere", { type: "ExternalName", externalName: "localhost" })],
  ]);
  const slices = [
    aSlice("web", [
      anEndpoint("10.244.0.1", "n1"),
      anEndpoint("10.244.0.2", "n1", { conditions: { ready: false } }),
      anEndpoint("127.0.0.1", "n1"),
      { addresses: ["10.244.0.3"] },
    ]),
  ];
  const backends = (own = slices) =>
    new Backends({
      services: { get: (key: string) => services.get(key) } as never,
      slicesOf: (key) => own.filter(({ metadata }) => `default/${metadata.labels?.["kubernetes.io/service-name"]}` === key),
      isRefused: (address) => isRefused(address, new Set()),
    });
  const problemOf = (service: string, port: number | string, own = slices): string | undefined => {
    const found = backends(own).endpointsOf({ service: `default/${service}`, port });
    return "problem" in found ? found.problem.reason : undefined;
  };
  test("ready ones, also those that do not say, and none that is refused", () => {
    assert.deepEqual(backends().endpointsOf({ service: "default/web", port: 80 }), {
      urls: ["http://10.244.0.1:8080", "http://10.244.0.3:8080"],
    });
  });
  for (const [service, port, want] of [
    ["absent", 80, "MissingService"],
    ["web", 81, "MissingPort"],
    ["web", "http", "MissingPort"],
    ["named", "http", "NoEndpoints"],
    ["udp", 80, "NotServed"],
    ["both", 80, "NoEndpoints"], // the first port of the number
    ["both", "udp", "NotServed"],
    ["elsewhere", 80, "NotServed"],
  ] as const)
    test(`${service}:${port} is ${want}`, () => assert.equal(problemOf(service, port), want));
  test("a backend that is no Service is not served", () => {
    assert.deepEqual(backends().endpointsOf(undefined), {
      problem: { reason: "NotServed", message: "a backend is not a Service" },
    });
  });
  test("of all slices with addresses, each endpoint once, IPv6 in brackets; names of hosts are no endpoints", () => {
    const own = [
      aSlice("web", [anEndpoint("10.244.0.1", "n1")]),
      aSlice("web", [anEndpoint("10.244.0.1", "n1"), anEndpoint("10.244.0.2", "n1")]),
      aSlice("web", [anEndpoint("fd00::7", "n1")], 8080, { addressType: "IPv6" }),
      aSlice("web", [anEndpoint("2001.example", "n1"), anEndpoint("10.244.0.9", "n1")], 8080, { addressType: "FQDN" }),
      aSlice("web", [anEndpoint("10.244.0.8", "n1")], 8080, { ports: [{ name: "other", port: 1 }] }),
    ];
    assert.deepEqual(backends(own).endpointsOf({ service: "default/web", port: 80 }), {
      urls: ["http://10.244.0.1:8080", "http://10.244.0.2:8080", "http://[fd00::7]:8080"],
    });
  });
  test("a Service whose endpoints are all refused says so", () => {
    const refused = ["127.0.0.1", "127.0.0.2"].map((address) =>
      aSlice(
        "web",
        ["127.0.0.9", address].map((one) => anEndpoint(one, "n1")),
      ),
    );
    assert.deepEqual(backends(refused).endpointsOf({ service: "default/web", port: 80 }), {
      problem: {
        reason: "NotServed",
        message: "the Service default/web has the endpoint 127.0.0.2, which belongs to a node or is no address of a pod",
      },
    });
  });
  test("a port that does not name its protocol is TCP", () => {
    services.set("default/plain", aService("plain", { ports: [{ port: 80 }] }));
    assert.equal(problemOf("plain", 80), "NoEndpoints");
  });
  test("endpoints are cached until something has changed", () => {
    const own = [aSlice("web", [anEndpoint("10.244.0.1", "n1")])];
    const found = backends(own);
    const backend = { service: "default/web", port: 80 };
    assert.deepEqual(found.endpointsOf(backend), { urls: ["http://10.244.0.1:8080"] });
    own[0] = aSlice("web", [anEndpoint("10.244.0.9", "n1")]);
    assert.deepEqual(found.endpointsOf(backend), { urls: ["http://10.244.0.1:8080"] });
    found.changed("default/web");
    assert.deepEqual(found.endpointsOf(backend), { urls: ["http://10.244.0.9:8080"] });
  });
  test("each request begins with another endpoint, and has three of them at most", () => {
    const found = backends();
    const turns = Array.from({ length: 4 }, () => found.inTurn({ service: "default/web" }, ["a", "b", "c", "d"]).join(""));
    assert.deepEqual(turns, ["abc", "bcd", "cda", "dab"]);
    assert.deepEqual(found.inTurn({ service: "default/one" }, ["a"]), ["a"]);
    for (const service of ["default/web", "default/absent"]) found.changed(service);
    assert.deepEqual(found.inTurn({ service: "default/web" }, ["a", "b"]), ["a", "b"], "the fifth");
    assert.deepEqual(found.inTurn({ service: "default/web" }, ["a", "b"]), ["b", "a"]);
    assert.deepEqual(found.inTurn({ service: "default/web" }, ["a", "b"]), ["a", "b"]);
    services.delete("default/web");
    found.changed("default/web");
    assert.deepEqual(found.inTurn({ service: "default/web" }, ["a", "b"]), ["a", "b"], "a removed Service is forgotten");
    services.set("default/web", aService("web"));
  });
});

describe("headers", () => {
  const forwarded = { clientAddress: "192.0.2.1", protocol: "https", host: "h:8443", port: 8443 } as const;
  test("those of the connection stay behind, and a client's word about itself is replaced", () => {
    const headers = requestHeaders(
      {
        ":path": "/",
        host: "other",
        connection: "close, X-Secret, content-length",
        "x-secret": "1",
        "content-length": "3",
        te: "trailers",
        "transfer-encoding": "chunked",
        "x-forwarded-for": "1.2.3.4",
        "x-forwarded-user": "root",
        forwarded: "for=1.2.3.4",
        accept: "*/*",
      },
      forwarded,
    );
    assert.deepEqual(headers, {
      "content-length": "3",
      accept: "*/*",
      host: "h:8443",
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-host": "h:8443",
      "x-forwarded-port": "8443",
      "x-forwarded-proto": "https",
      "x-real-ip": "192.0.2.1",
    });
  });
  test("what a backend relies on cannot be removed by the header Connection, cookies are one header, and Expect was answered", () => {
    const received = {
      connection: "authorization, cookie, content-type, host",
      authorization: "Bearer x",
      "content-type": "text/plain",
      cookie: ["a=1", "b=2"],
      expect: "100-continue",
      "x-real-ip": "1.2.3.4",
    };
    assert.partialDeepStrictEqual(requestHeaders(received as never, forwarded), {
      authorization: "Bearer x",
      "content-type": "text/plain",
      cookie: "a=1; b=2",
      "x-real-ip": "192.0.2.1",
    });
    assert.ok(!("expect" in requestHeaders(received as never, forwarded)));
  });
  test("a response keeps each cookie", () => {
    const cookies = ["a=1", "b=2"];
    assert.deepEqual(responseHeaders({ "set-cookie": cookies, "keep-alive": "timeout=5", connection: "keep-alive" }), {
      "set-cookie": cookies,
    });
  });
});

test("connections are counted for each client and together", () => {
  const limits = new ClientLimits({ perClient: 2, together: 3 });
  assert.deepEqual(
    ["a", "a", "a", "b", "c"].map((client) => limits.enter(client)),
    [true, true, false, true, false],
  );
  limits.left("a");
  assert.deepEqual(
    ["c", "a"].map((client) => limits.enter(client)),
    [true, false],
  );
});

describe("addresses in the status", () => {
  const aNode = (name: string, ...addresses: [string, string][]): Node => ({
    metadata: { name },
    spec: {},
    status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
  });
  const nodes = [aNode("n1", ["InternalIP", "10.0.0.1"]), aNode("n2", ["InternalIP", "10.0.0.2"], ["ExternalIP", "192.0.2.2"])];
  const withStatus = (...ips: string[]) => ({
    ...anIngress("a", []),
    status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } },
  });
  for (const { name, ingress, node = "n1", isServing = true, want } of [
    { name: "the node's own is added", ingress: anIngress("a", []), want: ["10.0.0.1"] },
    { name: "an external one is preferred", ingress: anIngress("a", []), node: "n2", want: ["192.0.2.2"] },
    { name: "those of other nodes stay", ingress: withStatus("192.0.2.2"), want: ["10.0.0.1", "192.0.2.2"] },
    { name: "those of no node go", ingress: withStatus("10.0.0.9"), want: ["10.0.0.1"] },
    { name: "nothing to change", ingress: withStatus("10.0.0.1"), want: undefined },
    {
      name: "its own is removed with the part",
      ingress: withStatus("10.0.0.1", "192.0.2.2"),
      isServing: false,
      want: ["192.0.2.2"],
    },
  ])
    test(name, () =>
      assert.deepEqual(
        addressesWith(ingress, nodes, node, isServing)?.map(({ ip }) => ip),
        want,
      ),
    );
});
