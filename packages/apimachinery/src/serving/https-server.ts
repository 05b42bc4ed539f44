import { once } from "node:events";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import definitions from "../metrics.json" with { type: "json" };
import { nextIteration } from "../process/event-loop/iterations.ts";
import { Turns } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { Counter, MetricsRegistry } from "../process/metrics/registry.ts";
import { errorCode } from "../process/narrowing/error-code.ts";
import { ClientBudgets } from "../transport/http2/server/client-budgets.ts";
import { FieldWork, HeaderMemory } from "../transport/http2/server/input.ts";
import { createServer } from "../transport/node-http.ts";
import { peerCertificate } from "./authentication/x509.ts";
import { Connections, type ConnectionsOptions, defaultCheckMs, type Refused } from "./connections.ts";
import type { ExchangeHandler } from "./exchange.ts";
import { plainAddress } from "./exchange-parts.ts";
import { watchFiles } from "./file-watch.ts";
import { Http1Exchange } from "./http1-exchange.ts";
import { Http1Pipeline } from "./http1-pipeline.ts";
import { refuseRequest, refuseUnreadable } from "./http1-refusal.ts";
import { type Http2Peer, serveHttp2 } from "./http2-exchange.ts";
import { SimpleConnection } from "./simple-connection.ts";
import { newTlsListener, type TlsListener } from "./tls-listener.ts";
import { filesOf, insecureCipherSuites, type TlsOptions } from "./tls-options.ts";

export type { TlsOptions } from "./tls-options.ts";

export interface HttpServerOptions extends ConnectionsOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Default all addresses, IPv4 and IPv6. */
  readonly bindAddress?: string | undefined;
  /** Sets SO_REUSEPORT, so that other processes can listen on the same port. */
  readonly reusePort?: boolean | undefined;
  /** SETTINGS_MAX_CONCURRENT_STREAMS. Default 250. */
  readonly maxConcurrentStreams?: number | undefined;
  readonly headersTimeoutMs?: number | undefined;
  readonly handshakeTimeoutMs?: number | undefined;
  /** For each client address; the oldest is closed when there is one more. Default 2,000. */
  readonly mostUnfinishedHandshakes?: number | undefined;
  /** A connection without a request is closed after this. Default 90 s. */
  readonly idleTimeoutMs?: number | undefined;
  readonly maxHeaderBytes?: number | undefined;
  /** The program's instance; default: one for this server only. */
  readonly turns?: Turns | undefined;
  /** Called for each failed TLS handshake, e.g. to count it. */
  readonly onHandshakeError?: ((err: Error) => void) | undefined;
  /** Incomplete header blocks of HTTP/2. Default: of this server. */
  readonly headerMemory?: HeaderMemory | undefined;
  /** Counts what is refused below the handlers. Default: not counted. */
  readonly metrics?: MetricsRegistry | undefined;
}

export interface HttpServer {
  readonly port: number;
  readonly address: string;
  /** Number of unanswered exchanges. */
  readonly active: number;
  /** Number of open sockets, including those in a handshake. */
  readonly connections: number;
  /** Stops listening and aborts requests that still run after `graceMs`. Default 0. */
  close(graceMs?: number): Promise<void>;
  /** Reloads the TLS files. @throws Error when they are invalid; the old ones stay */
  reloadCertificates(): void;
  /** Passes all further requests to another handler. */
  handleWith(handler: ExchangeHandler): void;
}

/**
 * Serves HTTP/1.1 and HTTP/2 on one TLS port (ALPN), or plain HTTP/1.1. Every request becomes one Exchange.
 * @throws Error when the port is taken or the certificate is invalid
 */
export async function startHttpServer(given: HttpServerOptions): Promise<HttpServer> {
  const options = { ...given, turns: given.turns ?? new Turns() };
  const refusals = newRefusals(options);
  const connections = new Connections(options, refusals);
  const http = newHttp1Server(options, connections, refusals);
  const tls = options.tls === undefined ? undefined : listenerFor(options, options.tls, http, connections, refusals);
  const listener = tls?.server ?? http;
  for (const name of options.tls?.cipherSuites ?? [])
    if (Object.hasOwn(insecureCipherSuites, name)) options.log.warn("Use of insecure cipher detected.", { cipher: name });
  await listen(listener, options);
  // A connection that cannot be accepted, for want of memory or descriptors, must not end the process.
  listener.on("error", (err) => options.log.error("cannot accept a connection", err));
  const bound = listener.address() as AddressInfo; // cast: it listens on TCP
  const watcher =
    tls === undefined || options.tls === undefined
      ? undefined
      : watchFiles(filesOf(options.tls), () => tryReload(tls, options.log));

  let closing: Promise<void> | undefined;
  return {
    port: bound.port,
    address: bound.address,
    get active() {
      return connections.active;
    },
    get connections() {
      return connections.open;
    },
    close(graceMs = 0) {
      closing ??= (async () => {
        watcher?.close();
        // The kernel resets connections in the queue of a listener that closes. Within two iterations the loop accepts what waits.
        for (let i = 0; i < 2; i++) await nextIteration();
        const closed = once(listener, "close");
        listener.close();
        if (http !== listener) http.close();
        await connections.drain(graceMs, http);
        await closed;
      })();
      return closing;
    },
    reloadCertificates: () => tls?.reload(),
    handleWith(handler) {
      connections.handler = handler;
    },
  };
}

function tryReload(tls: TlsListener, log: Logger): void {
  try {
    tls.reload();
    log.info("Reloaded serving certificates");
  } catch (err) {
    log.error("cannot load the changed serving certificates; keeping the previous ones", err);
  }
}

/** Time limits for the headers of a request, and between requests. */
function timesOf({ headersTimeoutMs = 32_000, idleTimeoutMs = 90_000 }: HttpServerOptions) {
  return { headersTimeoutMs, idleTimeoutMs };
}

const defaultHeaderBytes = 256 * 1024;

function newRefusals({ metrics, log }: HttpServerOptions): Refused {
  const refused: Counter | undefined = metrics?.counter(definitions.coxswain_http_protocol_errors_total);
  return (protocol, from, reason, isWhole) => {
    const scope = isWhole ? "connection" : "request";
    refused?.labels(protocol, scope).inc();
    log.v(2)?.info("Refused for a violation of the protocol", { protocol, scope, from, reason });
  };
}

function newHttp1Server(options: HttpServerOptions, connections: Connections, refused: Refused): Server {
  const { headersTimeoutMs, idleTimeoutMs } = timesOf(options);
  const settings: ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean } = {
    headersTimeout: headersTimeoutMs,
    // Bodies are limited by the request's own deadline.
    requestTimeout: 0,
    keepAliveTimeout: idleTimeoutMs,
    connectionsCheckingInterval: options.headersCheckMs ?? defaultCheckMs,
    maxHeaderSize: options.maxHeaderBytes ?? defaultHeaderBytes,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 180_000,
    shouldUpgradeCallback: isKnownUpgrade,
    requireHostHeader: false, // checked below, to be counted
  };
  // Node has no field for per-connection state that outlives a request.
  const pipelines = new WeakMap<Duplex, Http1Pipeline>();
  const pipelineOf = (socket: Socket): Http1Pipeline => {
    let pipeline = pipelines.get(socket);
    if (pipeline === undefined) {
      pipeline = new Http1Pipeline(socket);
      pipelines.set(socket, pipeline);
    }
    return pipeline;
  };
  const server = createServer(settings, (request: IncomingMessage, response: ServerResponse) => {
    // Node drops data it has read behind a request whose upgrade is ignored; with `Connection: close` the client sends it again.
    if (/\bupgrade\b/i.test(request.headers.connection ?? "")) response.shouldKeepAlive = false;
    if (request.headers.host === undefined && request.httpVersionMinor > 0) {
      refused("HTTP/1.1", plainAddress(request.socket.remoteAddress), "missing required Host header", false);
      return refuseRequest(response, 400, "400 Bad Request: missing required Host header");
    }
    const exchange = new Http1Exchange(request, response, undefined, options.log);
    const pipeline = pipelineOf(request.socket);
    response.once("close", () => {
      pipeline.answered();
      connections.done(exchange);
    });
    pipeline.add(request, response, () => void connections.serve(exchange, clientOf(request.socket)));
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const exchange = new Http1Exchange(request, undefined, head, options.log);
    socket.once("close", () => connections.done(exchange));
    pipelineOf(socket).addUpgrade(request, () => void connections.serve(exchange, clientOf(request.socket)));
  });
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    refused("HTTP/1.1", plainAddress(request.socket.remoteAddress), "unknown value of Expect", false);
    refuseRequest(response, 417, "");
  });
  const fail = (err: NodeJS.ErrnoException, socket: Socket): void => {
    const pipeline = pipelines.get(socket);
    if (pipeline === undefined) refuseUnreadable(err, socket, false);
    else pipeline.fail((isAnswered) => refuseUnreadable(err, socket, isAnswered));
  };
  server.on("connect", (request: IncomingMessage, socket: Socket) => {
    refused("HTTP/1.1", plainAddress(socket.remoteAddress), "CONNECT", true);
    socket.on("error", () => {});
    fail(new Error(`cannot connect to ${request.url}`), socket);
  });
  server.on("clientError", (err: NodeJS.ErrnoException, socket: Socket) => {
    if (err.code?.startsWith("HPE_")) refused("HTTP/1.1", plainAddress(socket.remoteAddress), err.message, true);
    fail(err, socket);
  });
  if (options.tls === undefined) server.on("connection", (socket) => connections.addSocket(socket));
  return server;
}

/**
 * True for the upgrades that handlers support (SPDY and WebSocket). Any other upgrade, or one with a body, is served as an
 * ordinary request.
 */
function isKnownUpgrade(request: IncomingMessage): boolean {
  if (request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0) return false;
  const wanted = (request.headers.upgrade ?? "").toLowerCase();
  return wanted.split(",").some((one) => one.trim() === "websocket" || one.trim().startsWith("spdy/"));
}

function listenerFor(
  options: HttpServerOptions & { turns: Turns },
  tls: TlsOptions,
  http: Server,
  connections: Connections,
  refused: Refused,
): TlsListener {
  const { log } = options;
  const shared = { clients: new ClientBudgets(), refused };
  const settings = {
    maxConcurrentStreams: options.maxConcurrentStreams ?? 250,
    maxHeaderBytes: options.maxHeaderBytes ?? defaultHeaderBytes,
    ...timesOf(options),
    fieldWork: new FieldWork(options.turns),
    headerMemory: options.headerMemory ?? new HeaderMemory(),
  };
  const listener = newTlsListener({
    tls,
    log,
    alpnProtocols: ["h2", "http/1.1"],
    handshakeTimeoutMs: options.handshakeTimeoutMs ?? 10_000,
    mostUnfinishedHandshakes: options.mostUnfinishedHandshakes,
    onConnection: (socket) => connections.addSocket(socket),
    onSecure(socket) {
      socket.on("error", (err) => log.v(5)?.info("connection failed", { err: String(err) }));
      if (socket.alpnProtocol === "h2") serveHttp2(socket, settings, connections, http2Peer(socket, shared), log);
      else serveHttp1(socket, options, connections, http);
    },
    onHandshakeError(err, socket) {
      if (err.code === "ERR_SSL_HTTP_REQUEST") return connections.refusePlain(socket); // no failed handshake, as upstream
      options.onHandshakeError?.(err);
      log.v(3)?.info("TLS handshake error", { from: socket.remoteAddress, err: String(err.message) });
      socket.destroy();
    },
  });
  // This server does not listen itself; without the event it would not check header timeouts.
  http.emit("listening");
  return listener;
}

/** State shared by all HTTP/2 connections of a server. */
interface Shared {
  readonly clients: ClientBudgets;
  readonly refused: Refused;
}

function http2Peer(socket: TLSSocket, { clients, refused }: Shared): Http2Peer {
  const address = plainAddress(socket.remoteAddress);
  return {
    name: clientOf(socket),
    budget: clients.admit(address, fingerprintOf(socket)),
    refused: (reason, isWhole) => refused("HTTP/2", address, reason, isWhole),
  };
}

/** Identity of a client for fair queueing. */
function clientOf(socket: Socket): string {
  return `${plainAddress(socket.remoteAddress)} ${socket instanceof TLSSocket ? fingerprintOf(socket) : ""}`;
}

/** The fingerprint of a verified certificate, otherwise empty, because a client can create any number of unverified ones. */
function fingerprintOf(socket: TLSSocket): string {
  return socket.authorized ? (peerCertificate(socket)?.fingerprint256 ?? "") : "";
}

function serveHttp1(socket: TLSSocket, options: HttpServerOptions, connections: Connections, http: Server): void {
  const client = clientOf(socket);
  const connection = new SimpleConnection(
    socket,
    { ...timesOf(options), log: options.log },
    {
      request: (exchange) => void connections.serve(exchange, client),
      done: (exchange) => connections.done(exchange),
      handOver(bytes) {
        connections.delete(connection);
        socket.pause();
        socket.unshift(bytes);
        http.emit("connection", socket);
        socket.resume();
      },
      closed: () => connections.delete(connection),
    },
  );
  connections.add(connection);
}

/** "0.0.0.0" listens on both families, as Go's wildcard does; on a host without IPv6 on IPv4 only. */
async function listen(server: NetServer, options: HttpServerOptions): Promise<void> {
  const wildcard = options.bindAddress === undefined || options.bindAddress === "" || options.bindAddress === "0.0.0.0";
  const hosts = wildcard ? ["::", "0.0.0.0"] : [options.bindAddress];
  for (const [i, host] of hosts.entries()) {
    try {
      server.listen({ port: options.port, host, reusePort: options.reusePort ?? false, backlog: 4096 });
      await once(server, "listening");
      return;
    } catch (err) {
      const code = errorCode(err);
      if (i === hosts.length - 1 || (code !== "EAFNOSUPPORT" && code !== "EADDRNOTAVAIL")) throw err;
    }
  }
}
