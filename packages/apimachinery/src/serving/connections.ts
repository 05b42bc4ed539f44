import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { internalError } from "../errors/status-error.ts";
import { newRequestGate } from "../event-loop/request-gate.ts";
import type { Logger } from "../logging/logger.ts";
import { redactedUrl } from "../logging/redacted-url.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { Roster } from "./roster.ts";
import type { TlsOptions } from "./tls-options.ts";

export interface ConnectionsOptions {
  /** Without it, plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  readonly handler: ExchangeHandler;
  readonly log: Logger;
  /** How often connections are looked through for those that exceed their times. Default 5 s. */
  readonly headersCheckMs?: number | undefined;
  /** How long a client may read nothing of an answer that is being written; then it is cut off. Default 60 s. */
  readonly readTimeoutMs?: number | undefined;
  /** How long a client may take for an answer that is complete; then it is cut off. Default: as long as it wants. */
  readonly answerTimeoutMs?: number | undefined;
}

/** A connection whose protocol is ours. */
export interface ServedConnection {
  /** Requests that are under way. */
  readonly size: number;
  /** Tells the client to go, and lets what is under way come to its end. */
  leave(): void;
  /** Takes no more requests. */
  close(): void;
  /** Ends it when the client has exceeded its times. To be called now and then. */
  check(now: number): void;
}

/** An exchange as it is served. */
export interface ServedExchange extends Exchange {
  /** In the server's roster. */
  place: number;
  /** There were more header fields than a request may have. */
  readonly isCut: boolean;
  /** Is the whole answer given? The client may not have taken it. */
  readonly isAnswered: boolean;
  /** When it was found to be so, as `performance.now()`. */
  answeredMs: number | undefined;
  /** When the client was last waited for and has not read since, as `performance.now()`. */
  readonly unreadMs: number | undefined;
  /** The server's drain ran out, or the client did not take its answer. */
  abort(): void;
}

export const defaultCheckMs = 5_000;
const defaultReadTimeoutMs = 60_000;
/** At the end, for clients to hear of it. */
const goodbyeMs = 1_000;

/** What is open, so that it can be drained; and what is served without asking anybody. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<ServedConnection>();
  readonly #gate = newRequestGate();
  readonly #exchanges = new Roster<ServedExchange>();
  #draining = false;
  /** An exchange or a connection has ended while this drains. */
  #onLess: (() => void) | undefined;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.#sweep(), options.headersCheckMs ?? defaultCheckMs).unref();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.check(now);
    const { answerTimeoutMs = Number.POSITIVE_INFINITY, readTimeoutMs = defaultReadTimeoutMs } = this.#options;
    for (const exchange of this.#exchanges.all()) {
      const { unreadMs } = exchange;
      if (exchange.isAnswered) exchange.answeredMs ??= now;
      const answeredFor = now - (exchange.answeredMs ?? now);
      if (answeredFor >= answerTimeoutMs || now - (unreadMs ?? now) >= readTimeoutMs) exchange.abort();
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

  add(connection: ServedConnection): void {
    this.#connections.add(connection);
  }

  delete(connection: ServedConnection): void {
    this.#connections.delete(connection);
  }

  closeIdle(): void {
    for (const connection of this.#connections) if (connection.size === 0) connection.close();
  }

  /**
   * Runs the handler; whatever it throws ends here.
   * @param client who takes turns with other clients where requests have to wait
   * @param handled called when it is done
   */
  async serve(exchange: ServedExchange, client: string, handled?: () => void): Promise<void> {
    this.#exchanges.add(exchange);
    if (this.#draining) exchange.goAway();
    try {
      const turn = this.#gate.enter(client);
      if (turn !== undefined) {
        await turn;
        if (exchange.isGone) return;
      }
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

  done(exchange: ServedExchange): void {
    this.#exchanges.delete(exchange);
    this.#onLess?.();
  }

  #failed(exchange: Exchange, err: unknown): void {
    if (exchange.signal.aborted) return;
    this.#options.log.error("request failed", err, { method: exchange.method, url: redactedUrl(exchange.url) });
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
    for (const connection of this.#connections) {
      if (connection.size === 0 || graceMs === 0) connection.close();
      else connection.leave();
    }
    await this.#until(() => this.#exchanges.size === 0, graceMs);
    for (const exchange of this.#exchanges.all()) exchange.abort();
    // Who is told which requests nobody has seen can send them elsewhere; who is only cut off has to guess.
    http.closeIdleConnections();
    for (const connection of this.#connections) connection.close();
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
