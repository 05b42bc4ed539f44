import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { internalError } from "../errors/status-error.ts";
import type { Logger } from "../logging/logger.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { watchFiles } from "./file-watch.ts";
import { Http1Exchange } from "./http1-exchange.ts";
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
      connections.closeIdleSessions();
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

/** What is open, so that it can be drained. */
class Connections {
  readonly #options: HttpServerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Map<ServerHttp2Session, { streams: number; leaving: boolean }>();
  readonly #exchanges = new Roster<Http1Exchange | Http2Exchange>();
  #draining = false;
  #emptied: (() => void) | undefined;
  readonly #sweeper: NodeJS.Timeout | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const { answerTimeoutMs } = options;
    if (answerTimeoutMs === undefined) return;
    this.#sweeper = setInterval(() => this.#sweep(answerTimeoutMs), options.headersCheckMs ?? headersCheckMs).unref();
  }

  /** Ends what has been answered for too long: a client that does not read holds the answer's memory. */
  #sweep(answerTimeoutMs: number): void {
    const now = performance.now();
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
      this.#maybeEmpty();
    });
  }

  addSession(session: ServerHttp2Session): void {
    this.#sessions.set(session, { streams: 0, leaving: false });
    session.once("close", () => this.#sessions.delete(session));
    session.on("error", (err) => this.#options.log.v(4)?.info("HTTP/2 connection failed", { err: String(err) }));
    session.setTimeout(this.#options.idleTimeoutMs ?? 90_000, () => {
      // Quiet streams (watches) are no reason to close.
      if (this.#sessions.get(session)?.streams === 0) session.close();
    });
  }

  streamOpened(session: ServerHttp2Session): void {
    const entry = this.#sessions.get(session);
    if (entry !== undefined) entry.streams++;
  }

  streamClosed(session: ServerHttp2Session): void {
    const entry = this.#sessions.get(session);
    if (entry === undefined) return;
    entry.streams--;
    if (entry.leaving && entry.streams === 0) session.close();
  }

  /** Two steps: tell the client first, and refuse new streams only after it had time to hear. */
  goAway(session: ServerHttp2Session): void {
    const entry = this.#sessions.get(session);
    if (entry === undefined || entry.leaving || session.closed || session.destroyed) return;
    entry.leaving = true;
    session.goaway(0, 2 ** 31 - 1);
    setTimeout(() => {
      if (!session.closed && !session.destroyed) session.close();
    }, 1000).unref();
  }

  closeIdleSessions(): void {
    for (const [session, { streams }] of this.#sessions) if (streams === 0) session.close();
  }

  /** Runs the handler; whatever it throws ends here. */
  async serve(exchange: Http1Exchange | Http2Exchange): Promise<void> {
    this.#exchanges.add(exchange);
    if (this.#draining) exchange.goAway();
    try {
      if (brokenPath.test(exchange.url)) refuseUrl(exchange);
      else if (exchange.method === "OPTIONS" && exchange.url === "*") exchange.respond(200, {}, "");
      else await this.#options.handler(exchange);
    } catch (err) {
      this.#failed(exchange, err);
    }
  }

  done(exchange: Http1Exchange | Http2Exchange): void {
    this.#exchanges.delete(exchange);
    this.#maybeEmpty();
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
    }
  }

  async drain(graceMs: number, http: Server): Promise<void> {
    this.#draining = true;
    clearInterval(this.#sweeper);
    http.closeIdleConnections();
    for (const [session, entry] of this.#sessions) {
      if (entry.streams === 0 || graceMs === 0) session.close();
      else this.goAway(session);
    }
    if (graceMs > 0 && this.#exchanges.size > 0) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        new Promise<void>((resolve) => {
          this.#emptied = resolve;
        }),
        new Promise((resolve) => {
          timer = setTimeout(resolve, graceMs);
        }),
      ]);
      clearTimeout(timer);
    }
    for (const exchange of this.#exchanges.all()) exchange.abort();
    for (const session of this.#sessions.keys()) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  #maybeEmpty(): void {
    if (this.#exchanges.size === 0) this.#emptied?.();
  }
}

function newHttp1Server(options: HttpServerOptions, connections: Connections): Server {
  const settings: ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean } = {
    headersTimeout: options.headersTimeoutMs ?? 32_000,
    // A body may take as long as the request's own deadline allows.
    requestTimeout: 0,
    keepAliveTimeout: options.idleTimeoutMs ?? 90_000,
    connectionsCheckingInterval: options.headersCheckMs ?? headersCheckMs,
    maxHeaderSize: options.maxHeaderBytes ?? 256 * 1024,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 180_000,
    shouldUpgradeCallback: isKnownUpgrade,
  };
  const server = createServer(settings, (request: IncomingMessage, response: ServerResponse) => {
    const exchange = new Http1Exchange(request, response, undefined, options.log);
    response.once("close", () => connections.done(exchange));
    void connections.serve(exchange);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const exchange = new Http1Exchange(request, undefined, head, options.log);
    socket.once("close", () => connections.done(exchange));
    void connections.serve(exchange);
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
      options.onHandshakeError?.(err);
      log.v(3)?.info("TLS handshake error", { from: socket.remoteAddress, err: String(err.message) });
    },
  });
  // Never listening itself, it would not look for connections that send no headers.
  http.emit("listening");
  return listener;
}

function serveHttp2(socket: TLSSocket, options: HttpServerOptions, connections: Connections): void {
  const session = performServerHandshake(socket, {
    maxSessionMemory: 1024,
    settings: { maxConcurrentStreams: options.maxConcurrentStreams ?? 250, initialWindowSize: 256 * 1024, enablePush: false },
  });
  connections.addSession(session);
  session.once("connect", () => session.setLocalWindowSize(4 * 1024 * 1024));
  const goAway = (one: ServerHttp2Session): void => connections.goAway(one);
  session.on("stream", (stream: ServerHttp2Stream, headers, _flags, rawHeaders) => {
    const exchange = new Http2Exchange(stream, headers, rawHeaders as unknown as readonly string[], socket, options.log, goAway);
    connections.streamOpened(session);
    // One listener for all who want to know: a watch holds it for an hour, and a small request makes it too.
    stream.once("close", () => {
      exchange.closed();
      connections.streamClosed(session);
      connections.done(exchange);
    });
    void connections.serve(exchange);
  });
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

/** An escape that is none, before the query. */
const brokenPath = /^[^?]*%(?![0-9a-fA-F]{2})/;

/** What Go's server answers by itself, as it does `OPTIONS *`: nobody behind it sees such a request. */
function refuseUrl(exchange: Exchange): void {
  exchange.respond(400, { "content-type": "text/plain; charset=utf-8" }, "400 Bad Request");
}
