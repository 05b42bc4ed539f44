import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { internalError } from "../errors/status-error.ts";
import { ServerConnection } from "../http2/server-connection.ts";
import type { Logger } from "../logging/logger.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { watchFiles } from "./file-watch.ts";
import { Http1Exchange } from "./http1-exchange.ts";
import { refuseUnreadable } from "./http1-refusal.ts";
import { Http2Exchange } from "./http2-exchange.ts";
import { Roster } from "./roster.ts";
import { newTlsListener, type TlsListener } from "./tls-listener.ts";
import { filesOf, insecureCipherSuites, type TlsOptions } from "./tls-options.ts";

export type { TlsOptions } from "./tls-options.ts";

export interface HttpServerOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Default all addresses, IPv4 and IPv6. */
  readonly bindAddress?: string | undefined;
  /** Without it, plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  readonly handler: ExchangeHandler;
  readonly log: Logger;
  /** More processes may listen on this port. */
  readonly reusePort?: boolean | undefined;
  /** Streams at a time on one HTTP/2 connection. Default 250. */
  readonly maxConcurrentStreams?: number | undefined;
  readonly headersTimeoutMs?: number | undefined;
  /** How often connections are looked through for those that exceed their times. Default 5 s. */
  readonly headersCheckMs?: number | undefined;
  readonly handshakeTimeoutMs?: number | undefined;
  /** How long a client may take for an answer that is complete; then it is cut off. Default: as long as it wants. */
  readonly answerTimeoutMs?: number | undefined;
  /** A connection without a request is closed after this. Default 90 s. */
  readonly idleTimeoutMs?: number | undefined;
  readonly maxHeaderBytes?: number | undefined;
  /** Only HTTP/1.1, for servers that peers expect to be so. */
  readonly http1Only?: boolean | undefined;
  /** A TLS handshake failed (a metric counts them). */
  readonly onHandshakeError?: ((err: Error) => void) | undefined;
}

export interface HttpServer {
  readonly port: number;
  readonly address: string;
  /** Exchanges that are not answered yet. */
  readonly active: number;
  /** That are open, in a handshake too. */
  readonly connections: number;
  /** Stops listening, lets what runs come to its end for `graceMs`, then cuts it off. */
  close(graceMs?: number): Promise<void>;
  /** Reads the TLS files again now. @throws Error and keeps the old ones when they do not fit. */
  reloadCertificates(): void;
  /** Closes connections that have no request. */
  closeIdle(): void;
}

/**
 * HTTP/1.1 and HTTP/2 on one TLS port, split by ALPN, or plain HTTP/1.1. Every request becomes one Exchange.
 * @throws Error when the port is taken or the certificate does not load
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const connections = new Connections(options);
  const http = newHttp1Server(options, connections);
  const tls = options.tls === undefined ? undefined : listenerFor(options, options.tls, http, connections);
  const listener = tls?.server ?? http;
  for (const name of options.tls?.cipherSuites ?? [])
    if (Object.hasOwn(insecureCipherSuites, name)) options.log.warn("Use of insecure cipher detected.", { cipher: name });
  await listen(listener, options);
  const bound = listener.address() as AddressInfo;
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
        const closed = once(listener, "close");
        listener.close();
        if (http !== listener) http.close();
        await connections.drain(graceMs, http);
        await closed;
      })();
      return closing;
    },
    reloadCertificates: () => tls?.reload(),
    closeIdle() {
      http.closeIdleConnections();
      connections.closeIdleHttp2();
    },
  };
}

function tryReload(tls: TlsListener, log: Logger): void {
  try {
    tls.reload();
    log.info("Reloaded serving certificates");
  } catch (err) {
    log.error("cannot load the changed serving certificates; the old ones stay", err);
  }
}

const headersCheckMs = 5_000;
const defaultHeadersTimeoutMs = 32_000;
const defaultIdleTimeoutMs = 90_000;
const defaultHeaderBytes = 256 * 1024;
/** At the end, for clients to hear of it. */
const goodbyeMs = 1_000;

/** What is open, so that it can be drained. */
class Connections {
  readonly #options: HttpServerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #http2 = new Set<ServerConnection>();
  readonly #exchanges = new Roster<Http1Exchange | Http2Exchange>();
  #draining = false;
  /** An exchange or a connection has ended while this drains. */
  #onLess: (() => void) | undefined;
  readonly #sweeper: NodeJS.Timeout | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    if (options.tls === undefined && options.answerTimeoutMs === undefined) return;
    this.#sweeper = setInterval(() => this.#sweep(), options.headersCheckMs ?? headersCheckMs).unref();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#http2) connection.check(now);
    const { answerTimeoutMs } = this.#options;
    if (answerTimeoutMs !== undefined) this.#endUnread(answerTimeoutMs, now);
  }

  /** Ends what has been answered for too long: a client that does not read holds the answer's memory. */
  #endUnread(answerTimeoutMs: number, now: number): void {
    for (const exchange of this.#exchanges.all()) {
      if (!exchange.isAnswered) continue;
      exchange.answeredMs ??= now;
      if (now - exchange.answeredMs >= answerTimeoutMs) exchange.abort();
    }
  }

  get active(): number {
    return this.#exchanges.size;
  }

  get open(): number {
    return this.#sockets.size;
  }

  addSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#onLess?.();
    });
  }

  /** Tells a client that it forgot about TLS. @param wrapped by TLS, which has read its request */
  refusePlain(wrapped: TLSSocket): void {
    const ends = ["remotePort", "remoteAddress", "localPort", "localAddress"] as const;
    const plain = [...this.#sockets].find((socket) => ends.every((end) => socket[end] === wrapped[end]));
    if (plain === undefined || plain.destroyed) wrapped.destroy();
    else plain.end(forgotTls, () => wrapped.destroy());
  }

  addHttp2(connection: ServerConnection): void {
    this.#http2.add(connection);
  }

  deleteHttp2(connection: ServerConnection): void {
    this.#http2.delete(connection);
  }

  closeIdleHttp2(): void {
    for (const connection of this.#http2) if (connection.size === 0) connection.close();
  }

  /** Runs the handler; whatever it throws ends here. @param handled called when it is done */
  async serve(exchange: Http1Exchange | Http2Exchange, handled?: () => void): Promise<void> {
    this.#exchanges.add(exchange);
    if (this.#draining) exchange.goAway();
    try {
      if (exchange.isCut) exchange.respond(431, { "content-type": "text/html; charset=utf-8" }, tooManyHeaders);
      else if (brokenPath.test(exchange.url)) refuseUrl(exchange);
      else if (exchange.method === "OPTIONS" && exchange.url === "*") exchange.respond(200, {}, "");
      else await this.#options.handler(exchange);
    } catch (err) {
      this.#failed(exchange, err);
    } finally {
      handled?.();
    }
  }

  done(exchange: Http1Exchange | Http2Exchange): void {
    this.#exchanges.delete(exchange);
    this.#onLess?.();
  }

  #failed(exchange: Exchange, err: unknown): void {
    if (exchange.signal.aborted) return;
    this.#options.log.error("request failed", err, { method: exchange.method, url: exchange.url });
    try {
      if (exchange.headersSent) exchange.destroy();
      else
        exchange.respond(
          500,
          { "content-type": "application/json" },
          JSON.stringify(internalError(new Error("the server panicked")).status),
        );
    } catch (second) {
      this.#options.log.error("cannot answer a request that failed", second);
      exchange.destroy();
    }
  }

  async drain(graceMs: number, http: Server): Promise<void> {
    this.#draining = true;
    clearInterval(this.#sweeper);
    http.closeIdleConnections();
    for (const connection of this.#http2) {
      if (connection.size === 0 || graceMs === 0) connection.close();
      else connection.leave();
    }
    await this.#until(() => this.#exchanges.size === 0, graceMs);
    for (const exchange of this.#exchanges.all()) exchange.abort();
    // Who is told which requests nobody has seen can send them elsewhere; who is only cut off has to guess.
    http.closeIdleConnections();
    for (const connection of this.#http2) connection.close();
    await this.#until(() => this.#sockets.size === 0, Math.min(graceMs, goodbyeMs));
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when it is so, or after `limitMs`. */
  async #until(isSo: () => boolean, limitMs: number): Promise<void> {
    if (limitMs === 0 || isSo()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, limitMs);
    this.#onLess = () => {
      if (isSo()) resolve();
    };
    await promise;
    clearTimeout(timer);
  }
}

function newHttp1Server(options: HttpServerOptions, connections: Connections): Server {
  const settings: ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean } = {
    headersTimeout: options.headersTimeoutMs ?? defaultHeadersTimeoutMs,
    // A body may take as long as the request's own deadline allows.
    requestTimeout: 0,
    keepAliveTimeout: options.idleTimeoutMs ?? defaultIdleTimeoutMs,
    connectionsCheckingInterval: options.headersCheckMs ?? headersCheckMs,
    maxHeaderSize: options.maxHeaderBytes ?? defaultHeaderBytes,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 180_000,
    shouldUpgradeCallback: isKnownUpgrade,
  };
  const answering = new WeakMap<Duplex, ServerResponse>();
  const server = createServer(settings, (request: IncomingMessage, response: ServerResponse) => {
    answering.set(request.socket, response);
    const exchange = new Http1Exchange(request, response, undefined, options.log);
    response.once("close", () => connections.done(exchange));
    void connections.serve(exchange);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const exchange = new Http1Exchange(request, undefined, head, options.log);
    socket.once("close", () => connections.done(exchange));
    void connections.serve(exchange);
  });
  server.on("clientError", (err, socket) => {
    const response = answering.get(socket);
    refuseUnreadable(err, socket, response?.headersSent === true && !response.writableFinished);
  });
  if (options.tls === undefined) server.on("connection", (socket) => connections.addSocket(socket));
  return server;
}

/** Exec, attach, port-forward and proxied websockets; any other wish to upgrade, or one with a body, is answered as if it were not there. */
function isKnownUpgrade(request: IncomingMessage): boolean {
  if (request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0) return false;
  const wanted = (request.headers.upgrade ?? "").toLowerCase();
  return wanted.split(",").some((one) => one.trim() === "websocket" || one.trim().startsWith("spdy/"));
}

function listenerFor(options: HttpServerOptions, tls: TlsOptions, http: Server, connections: Connections): TlsListener {
  const { log } = options;
  const listener = newTlsListener({
    tls,
    alpnProtocols: options.http1Only === true ? ["http/1.1"] : ["h2", "http/1.1"],
    handshakeTimeoutMs: options.handshakeTimeoutMs ?? 10_000,
    onConnection: (socket) => connections.addSocket(socket),
    onSecure(socket) {
      socket.on("error", (err) => log.v(5)?.info("connection failed", { err: String(err) }));
      if (socket.alpnProtocol === "h2") serveHttp2(socket, options, connections);
      else http.emit("connection", socket);
    },
    onHandshakeError(err, socket) {
      if (err.code === "ERR_SSL_HTTP_REQUEST") return connections.refusePlain(socket); // neither logged nor counted upstream
      options.onHandshakeError?.(err);
      log.v(3)?.info("TLS handshake error", { from: socket.remoteAddress, err: String(err.message) });
      socket.destroy();
    },
  });
  // Never listening itself, it would not look for connections that send no headers.
  http.emit("listening");
  return listener;
}

function serveHttp2(socket: TLSSocket, options: HttpServerOptions, connections: Connections): void {
  const { log } = options;
  const connection = new ServerConnection(
    socket,
    {
      maxConcurrentStreams: options.maxConcurrentStreams ?? 250,
      maxHeaderBytes: options.maxHeaderBytes ?? defaultHeaderBytes,
      headersTimeoutMs: options.headersTimeoutMs ?? defaultHeadersTimeoutMs,
      idleTimeoutMs: options.idleTimeoutMs ?? defaultIdleTimeoutMs,
    },
    {
      request(stream) {
        const exchange = new Http2Exchange(connection, stream, socket, log);
        stream.onClosed = () => {
          exchange.closed();
          connections.done(exchange);
        };
        void connections.serve(exchange, handled);
      },
      closed(reason) {
        connections.deleteHttp2(connection);
        if (reason !== undefined) log.v(4)?.info("HTTP/2 connection failed", { err: reason });
      },
    },
  );
  const handled = (): void => connection.handled();
  connections.addHttp2(connection);
}

/** "0.0.0.0" means both families, as Go's wildcard does; on a machine without IPv6 it is IPv4 alone. */
async function listen(server: NetServer, options: HttpServerOptions): Promise<void> {
  const wildcard = options.bindAddress === undefined || options.bindAddress === "" || options.bindAddress === "0.0.0.0";
  const hosts = wildcard ? ["::", "0.0.0.0"] : [options.bindAddress as string];
  for (const [i, host] of hosts.entries()) {
    try {
      server.listen({ port: options.port, host, reusePort: options.reusePort ?? false, backlog: 4096 });
      await once(server, "listening");
      return;
    } catch (err) {
      const code = (err as NodeJS.ErrnoException).code;
      if (i === hosts.length - 1 || (code !== "EAFNOSUPPORT" && code !== "EADDRNOTAVAIL")) throw err;
    }
  }
}

/** Source: Go net/http server.go, conn.serve */
const forgotTls = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** Source: golang.org/x/net http2/server.go handleHeaderListTooLong */
const tooManyHeaders = "<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>";

/** An escape that is none, before the query. */
const brokenPath = /^[^?]*%(?![0-9a-fA-F]{2})/;

/** What Go's server answers by itself, as it does `OPTIONS *`: nobody behind it sees such a request. */
function refuseUrl(exchange: Exchange): void {
  exchange.respond(400, { "content-type": "text/plain; charset=utf-8" }, "400 Bad Request");
}
