/**
 * Connections through a proxy that speaks HTTP CONNECT.
 * Source: k8s.io/apiserver pkg/server/egressselector/egress_selector.go, metrics/metrics.go
 */
import { readFileSync } from "node:fs";
import { Agent as HttpAgent, request as httpRequest, type RequestOptions } from "node:http";
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIPv6, type Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Transport } from "./configuration.ts";

/** @returns a connection to a host behind the proxy @throws Error of the proxy, or of the way to it */
export type Tunnel = (host: string, port: number) => Promise<Socket>;

const proxyTimeoutMs = 30_000;

/** The proxy's certificate files are read once. @throws Error when they cannot be read */
export function newTunnel(transport: Transport, clock: Clock, metrics: MetricsRegistry): Tunnel {
  const { request, options, name } = wayTo(transport);
  const labels = { protocol: "http_connect", transport: transport.uds ? "uds" : "tcp" };
  const durations = metrics.histogram({
    name: "apiserver_egress_dialer_dial_duration_seconds",
    help: "Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp or uds)",
    labels: ["protocol", "transport"],
    buckets: [0.005, 0.025, 0.1, 0.5, 2.5, 12.5],
  });
  const failures = metrics.counter({
    name: "apiserver_egress_dialer_dial_failure_count",
    help: "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage (connect or proxy). The stage indicates at which stage the dial failed",
    labels: ["protocol", "transport", "stage"],
  });
  const failed = (stage: "connect" | "proxy"): void => failures.labels(labels.protocol, labels.transport, stage).inc();

  return (host, port) => {
    const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const startedMs = clock.monotonic();
    return new Promise((resolve, reject) => {
      const connect = request({ ...options, method: "CONNECT", path: target, headers: { host: name }, timeout: proxyTimeoutMs });
      let isConnected = false;
      connect.once("socket", (socket) => socket.once("connect", () => (isConnected = true)));
      connect.once("timeout", () => connect.destroy(new Error(`dial proxy ${name}: i/o timeout`)));
      connect.once("error", (err) => {
        failed(isConnected ? "proxy" : "connect");
        reject(err);
      });
      const refuse = (code: number | undefined, status: string | undefined): void => {
        failed("proxy");
        reject(new Error(`proxy error from ${name} while dialing ${target}, code ${code}: ${code} ${status}`));
      };
      connect.once("response", (answer) => {
        answer.destroy();
        refuse(answer.statusCode, answer.statusMessage);
      });
      connect.once("connect", ({ statusCode, statusMessage }, socket, head) => {
        if (statusCode !== 200) {
          socket.destroy();
          return refuse(statusCode, statusMessage);
        }
        socket.setTimeout(0);
        if (head.length > 0) socket.unshift(head);
        durations.labels(labels.protocol, labels.transport).observe((clock.monotonic() - startedMs) / 1000);
        resolve(socket as Socket);
      });
      connect.end();
    });
  };
}

function wayTo({ tcp, uds }: Transport) {
  if (uds) return { request: httpRequest, options: { socketPath: uds.udsName, agent: false }, name: uds.udsName ?? "" };
  const { host, hostname, port, protocol } = new URL(tcp?.url ?? "");
  const { caBundle, clientCert, clientKey } = tcp?.tlsConfig ?? {};
  const isSecure = protocol === "https:";
  const read = (path: string | undefined) => (path ? readFileSync(path) : undefined);
  const options: RequestOptions & AgentOptions = {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (isSecure ? 443 : 80),
    agent: false,
    ...(isSecure && { ca: read(caBundle), cert: read(clientCert), key: read(clientKey) }),
  };
  return { request: isSecure ? httpsRequest : httpRequest, options, name: host };
}

/** An agent whose connections go through the tunnel, if there is one; TLS is spoken with the host behind it. */
export function tunnelledAgent(options: AgentOptions, tunnel: Tunnel | undefined): HttpsAgent {
  return tunnel === undefined ? new HttpsAgent(options) : throughTunnel(new HttpsAgent(options), tunnel, true);
}

/** The same for one request without TLS. */
export function tunnelledPlainAgent(tunnel: Tunnel): HttpAgent {
  return throughTunnel(new HttpAgent(), tunnel, false);
}

/** Node lets `createConnection` answer later; its types do not say so. */
type LateConnection = (
  options: AgentOptions & { host: string; port: number },
  done: (err: Error | null, socket?: Socket) => void,
) => void;

function throughTunnel<A extends HttpAgent>(agent: A, tunnel: Tunnel, isSecure: boolean): A {
  const createConnection: LateConnection = (options, done) => {
    tunnel(options.host, Number(options.port)).then(
      (socket) => done(null, isSecure ? tlsConnect({ ...options, socket }) : socket),
      (err: Error) => done(err),
    );
  };
  return Object.assign(agent, { createConnection });
}
