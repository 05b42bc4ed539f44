import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import type { TestContext } from "node:test";
import type { Ingress, IngressBackend } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { Backends } from "./backends.ts";
import { newIngressMetrics } from "./metrics.ts";
import { newRouteTable } from "./routes.ts";
import { startIngressServer } from "./server.ts";

/** Type, path and name of a Service with port 80. */
export type Path = readonly [type: "Exact" | "Prefix" | "ImplementationSpecific", path: string, service: string];

interface Extra {
  readonly created?: string;
  /** Name of a Service. */
  readonly defaultBackend?: string;
  readonly spec?: Partial<Ingress["spec"]>;
}

const backendOf = (name: string): IngressBackend => ({ service: { name, port: { number: 80 } } });

/** An Ingress in the namespace `default`. */
export const anIngress = (
  name: string,
  rules: readonly { readonly host?: string; readonly paths: readonly Path[] }[],
  { created = "2026-01-01T00:00:00Z", defaultBackend, spec }: Extra = {},
): Ingress => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { namespace: "default", name, creationTimestamp: created },
  spec: {
    ...(defaultBackend !== undefined && { defaultBackend: backendOf(defaultBackend) }),
    rules: rules.map(({ host, paths }) => ({
      ...(host !== undefined && { host }),
      http: { paths: paths.map(([pathType, path, service]) => ({ pathType, path, backend: backendOf(service) })) },
    })),
    ...spec,
  },
});

const table = newRouteTable([anIngress("a", [{ host: "web.test", paths: [["Prefix", "/", "web"]] }])]);

type Limits = "mostBodyBytes" | "idleTimeoutMs" | "connectTimeoutMs" | "responseTimeoutMs" | "connectionsPerClient";

/** An ingress for the host web.test. @param ends ports of the backend's endpoints, at 127.0.0.1 where no address is given */
export async function start(
  t: TestContext,
  ends: readonly (number | readonly [address: string, port: number])[],
  options: Partial<Record<Limits | "httpPort" | "httpsPort", number>> = {},
) {
  const registry = newMetricsRegistry();
  const { cert: certPem, key: keyPem } = await testPair();
  const server = await startIngressServer({
    ...{ address: "127.0.0.1", httpPort: 0, httpsPort: 0, connectTimeoutMs: 1_000, responseTimeoutMs: 60_000 },
    ...{ idleTimeoutMs: 60_000, mostBodyBytes: 0, connectionsPerClient: 100, log: discardLogger },
    routes: () => table,
    backends: new Backends({
      services: { get: () => aService("web") } as never,
      slicesOf: () =>
        ends
          .map((end) => (typeof end === "number" ? (["127.0.0.1", end] as const) : end))
          .map(([address, port]) => aSlice("web", [anEndpoint(address, "n1")], port)),
      isRefused: () => false,
    }),
    contextOf: () => undefined,
    defaultCertificate: { certPem, keyPem },
    metrics: newIngressMetrics(registry),
    ...options,
  });
  t.after(() => server.close(0));
  return { server, port: server.httpPort, shown: () => registry.render() };
}

/** A backend of HTTP/1.1. @returns its port */
export async function backend(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<number> {
  return listening(t, createServer(answer));
}

/** Sends bytes on a new connection. @param options `allowHalfOpen`: it stays open when the other side has ended */
export function open(t: TestContext, port: number, bytes: string, options: { readonly allowHalfOpen?: boolean } = {}) {
  const socket = connect({ port, host: "127.0.0.1", ...options }, () => socket.write(bytes));
  const state = { text: "", isClosed: false };
  socket.setEncoding("latin1").on("data", (chunk: string) => (state.text += chunk));
  socket.on("error", () => {}).on("close", () => (state.isClosed = true));
  t.after(() => void socket.destroy());
  return { socket, state };
}
export const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, "Host: web.test", ...headers, "", ""].join("\r\n");
