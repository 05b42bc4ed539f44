/** A DNS server over a small cluster, real sockets on loopback, and another server for it to forward to. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import type { Service, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type Answer, type DecodedPacket, decode, encode, type RecordType } from "dns-packet";
import { newDnsMetrics } from "./metrics.ts";
import { startDnsServer } from "./server.ts";
import { addressKey, addressKeysOf, clusterIpsOf } from "./service-records.ts";
import { withLength } from "./stream-frames.ts";
import type { ClusterView } from "./zone.ts";

export interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

interface TestView extends ClusterView {
  isSynced: boolean;
  services: Service[];
  slices: EndpointSlice[];
  namespaces: string[];
}

export function aService(name: string, spec: ServiceSpec, namespace = "default"): Service {
  return { metadata: { name, namespace }, spec };
}

export function aSlice(
  service: string,
  endpoints: readonly Endpoint[],
  ports: EndpointSlice["ports"] = [],
  namespace = "default",
): EndpointSlice {
  const metadata = { name: `${service}-1`, namespace, labels: { "kubernetes.io/service-name": service } };
  return { metadata, addressType: "IPv4", endpoints: [...endpoints], ports };
}

/** Two Services with addresses, a headless one, two with other names, and one without endpoints. */
export function aView(): TestView {
  const view: TestView = {
    isSynced: true,
    namespaces: ["default", "kube-system", "empty"],
    services: [
      aService("kubernetes", { clusterIP: "10.96.0.1", ports: [{ name: "https", port: 443 }] }),
      aService("dual", { clusterIP: "10.96.0.20", clusterIPs: ["10.96.0.20", "fd00:1::20"], ports: [{ port: 80 }] }),
      aService("db", { clusterIP: "None", ports: [{ name: "SQL", port: 5432 }] }),
      aService("none", { clusterIP: "None", ports: [{ port: 80 }] }),
      aService("outside", { type: "ExternalName", externalName: "www.example.com" }),
      aService("inside", { type: "ExternalName", externalName: "kubernetes.default.svc.cluster.local" }),
      aService("circle", { type: "ExternalName", externalName: "circle.default.svc.cluster.local" }),
      aService("long", { type: "ExternalName", externalName: `${"a".repeat(64)}.example` }),
    ],
    slices: [
      aSlice(
        "db",
        [
          { addresses: ["10.244.0.5"], hostname: "db-0", conditions: { ready: true } },
          { addresses: ["10.244.0.6"], conditions: {} },
          { addresses: ["10.244.0.7"], hostname: "db-2", conditions: { ready: false } },
        ],
        [{ name: "SQL", protocol: "TCP", port: 5432 }],
      ),
      aSlice("none", [{ addresses: ["10.244.0.9"], conditions: { ready: false } }]),
    ],
    service: (key) => view.services.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
    slicesOf: (key) =>
      view.slices.filter(({ metadata }) => `${metadata.namespace}/${metadata.labels?.["kubernetes.io/service-name"]}` === key),
    servicesAt: (address) => view.services.filter((service) => clusterIpsOf(service).map(addressKey).includes(address)),
    slicesAt: (address) => view.slices.filter((slice) => addressKeysOf(slice).includes(address)),
    hasNamespace: (name) => view.namespaces.includes(name),
  };
  return view;
}

interface TestUpstream {
  readonly port: number;
  /** Names that were queried, with the type. */
  readonly requested: string[];
}

/** A server that answers by a function; undefined: not at all. Over TCP as well. */
export async function startUpstream(
  t: TestContext,
  answer: (request: DecodedPacket, transport: "udp" | "tcp") => Buffer | undefined,
  host = "127.0.0.1",
): Promise<TestUpstream> {
  const requested: string[] = [];
  const reply = (message: Buffer, transport: "udp" | "tcp"): Buffer | undefined => {
    const request = decode(message);
    const question = request.questions?.[0];
    if (question?.name.endsWith("loop-check.invalid") !== true) requested.push(`${question?.type} ${question?.name}`);
    return answer(request, transport);
  };
  const [tcp, udp] = await bindBoth(host);
  const { port } = udp.address();
  tcp.on("connection", (socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      const response = reply(bytes.subarray(2), "tcp");
      if (response !== undefined) socket.write(withLength(response));
    });
  });
  udp.on("message", (message, from) => {
    const response = reply(message, "udp");
    if (response !== undefined) udp.send(response, from.port, from.address);
  });
  t.after(() => {
    udp.close();
    tcp.close();
  });
  return { port, requested };
}

/** One free port for both protocols. */
export async function bindBoth(host: string): Promise<[Server, Socket]> {
  for (;;) {
    const tcp = createServer();
    tcp.listen(0, host);
    await once(tcp, "listening");
    const udp = createSocket("udp4");
    const bound = once(udp, "listening");
    udp.bind((tcp.address() as AddressInfo).port, host);
    const failure = await bound.then(
      () => undefined,
      (err: NodeJS.ErrnoException) => err,
    );
    if (failure === undefined) return [tcp, udp];
    tcp.close();
    if (failure.code !== "EADDRINUSE") throw failure;
  }
}

/** The response of an upstream server. @param flags beside "response", e.g. an rcode */
export function upstreamReply(request: DecodedPacket, answers: Answer[], flags = 0, authorities: Answer[] = []): Buffer {
  const { id = 0, questions = [] } = request;
  return encode({ id, type: "response", flags, questions, answers, authorities });
}

export async function startTestDns(
  t: TestContext,
  options: { view?: TestView; upstreams?: readonly number[] | Promise<readonly number[]> } = {},
) {
  const view = options.view ?? aView();
  const registry = newMetricsRegistry();
  const ending = new AbortController();
  const server = await startDnsServer({
    addresses: ["127.0.0.1"],
    port: 0,
    zone: { domain: "cluster.local", dnsAddresses: ["10.96.0.10"], podRecords: true, serial: 1 },
    view,
    upstreams: async () => ((await options.upstreams) ?? []).map((port) => ({ address: "127.0.0.1", port })),
    log: discardLogger,
    clock: realClock,
    metrics: newDnsMetrics(registry),
    signal: ending.signal,
  });
  t.after(async () => {
    ending.abort();
    await server.close();
  });
  const { port } = server;
  return {
    server,
    view,
    port,
    metrics: () => registry.render(),
    ask: (name: string, type: RecordType = "A", extra: object = {}) =>
      queryUdp(port, encode({ id: 7, type: "query", flags: 0x100, questions: [{ name, type }], ...extra })).then((bytes) =>
        decode(bytes),
      ),
    send: (bytes: Buffer) => queryUdp(port, bytes),
  };
}

function queryUdp(port: number, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    socket.on("error", reject);
    socket.once("message", (message) => {
      socket.close();
      resolve(message);
    });
    socket.connect(port, "127.0.0.1", () => socket.send(request));
  });
}

/** Sends bytes on a new connection. @returns what came until the server closed it, or `most` bytes */
export function queryTcp(port: number, bytes: Buffer, most: number): Promise<Buffer> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = connect({ host: "127.0.0.1", port });
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(received)));
    socket.on("data", (chunk: Buffer) => {
      received.push(chunk);
      if (Buffer.concat(received).length >= most) socket.destroy();
    });
    socket.write(bytes);
  });
}
