import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { internalError } from "../objects/errors/status-error.ts";
import { RequestGate, type Turns } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import { redactedUrl } from "../process/logging/redacted-url.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { plainAddress } from "./exchange-parts.ts";
import type { TlsOptions } from "./tls-options.ts";

export interface ConnectionsOptions {
  /** TLS settings; undefined: plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  readonly handler: ExchangeHandler;
  readonly log: Logger;
  /** Interval of the timeout checks. Default 5 s. */
  readonly headersCheckMs?: number | undefined;
  /** Time limit for a client that reads nothing of a response being written; then it is disconnected. Default 60 s. */
  readonly readTimeoutMs?: number | undefined;
  /** Time limit for a client to read a complete response; then it is disconnected. Default: none. */
  readonly answerTimeoutMs?: number | undefined;
  /** Replaces both limits when the server closes and they are longer. Default 10 s. */
  readonly closingReadTimeoutMs?: number | undefined;
}

/** Reports what was refused before a handler saw it. @param isWhole the connection, not a request of it */
export type Refused = (protocol: "HTTP/1.1" | "HTTP/2", from: string, reason: string, isWhole: boolean) => void;

/** A connection whose protocol is implemented here and not by Node. */
interface ServedConnection {
  /** Number of running requests. */
  readonly size: number;
  /** Graceful shutdown: notifies the client and completes running requests. */
  leave(): void;
  /** Accepts no more requests. */
  close(): void;
  /** Enforces the connection's timeouts. To be called periodically. @param now `performance.now()` */
  check(now: number): void;
}

/** The server's view of an exchange. */
export interface ServedExchange extends Exchange {
  /** Index in the server's set of exchanges. */
  place: number;
  /** The header fields exceeded the limit and are truncated. */
  readonly isCut: boolean;
  /** Why the request is to be answered with 400 instead of by the handler. */
  readonly refusal?: string | undefined;
  /** The handler has ended the response; the client may not have received all of it. */
  readonly isAnswered: boolean;
  /** When a check first found `isAnswered`, as `performance.now()`. */
  answeredMs: number | undefined;
  /** Since when the handler has been waiting for the client to read, as `performance.now()`; undefined when it is not. */
  readonly unreadMs: number | undefined;
  /** Aborts the exchange: the shutdown's grace period is over, or the client does not read. */
  abort(): void;
}

export const defaultCheckMs = 5_000;
const defaultReadTimeoutMs = 60_000;
/** A client that does not read must not keep the server from ending for the whole grace period. */
const defaultClosingReadTimeoutMs = 10_000;
/** Time for clients to see the final GOAWAY. */
const goodbyeMs = 1_000;

/**
 * Tracks open sockets, connections and exchanges for timeouts and shutdown, and dispatches requests to the handler. Answers
 * invalid requests itself.
 */
export class Connections {
  /** Answers the requests. */
  handler: ExchangeHandler;
  readonly #options: ConnectionsOptions;
  readonly #refused: Refused;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<ServedConnection>();
  readonly #gate: RequestGate;
  readonly #exchanges = new UnorderedSet<ServedExchange>();
  #draining = false;
  /** When draining began, as `performance.now()`. */
  #drainingMs = Number.POSITIVE_INFINITY;
  /** Called during shutdown when an exchange or a socket has ended. */
  #onLess: (() => void) | undefined;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: ConnectionsOptions & { readonly turns: Turns }, refused: Refused) {
    this.#options = options;
    this.#refused = refused;
    this.handler = options.handler;
    this.#gate = new RequestGate(options.turns);
    this.#sweeper = setInterval(() => this.#sweep(), options.headersCheckMs ?? defaultCheckMs).unref();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.check(now);
    const { answerTimeoutMs = Number.POSITIVE_INFINITY, readTimeoutMs = defaultReadTimeoutMs } = this.#options;
    const { closingReadTimeoutMs = defaultClosingReadTimeoutMs } = this.#options;
    for (const exchange of this.#exchanges.all()) {
      const { unreadMs } = exchange;
      if (exchange.isAnswered) exchange.answeredMs ??= now;
      const answeredFor = now - (exchange.answeredMs ?? now);
      const unreadFor = now - (unreadMs ?? now);
      const closingFor = Math.min(now - this.#drainingMs, Math.max(answeredFor, unreadFor));
      if (answeredFor >= answerTimeoutMs || unreadFor >= readTimeoutMs || closingFor >= closingReadTimeoutMs) exchange.abort();
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

  /** Answers a plain HTTP request on a TLS port. @param wrapped the TLS socket, which has consumed the request */
  refusePlain(wrapped: TLSSocket): void {
    this.#refused("HTTP/1.1", plainAddress(wrapped.remoteAddress), "plain HTTP on a TLS port", true);
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

  /**
   * Runs the handler and answers its errors. Never rejects.
   * @param client identity for fair queueing between clients
   * @param handled called when the handler has returned
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
      else if (exchange.refusal !== undefined) exchange.respond(400, plainText, `${exchange.refusal}\n`);
      else if (brokenPath.test(exchange.url)) this.#refuseUrl(exchange);
      else if (exchange.method === "OPTIONS" && exchange.url === "*") exchange.respond(200, {}, "");
      else await this.handler(exchange);
    } catch (err) {
      this.#failed(exchange, err);
    } finally {
      handled?.();
    }
  }

  /** Answered by Go's server itself, like `OPTIONS *`, before any handler. */
  #refuseUrl(exchange: Exchange): void {
    const protocol = exchange.httpVersion === "2.0" ? "HTTP/2" : "HTTP/1.1";
    this.#refused(protocol, exchange.remoteAddress, "broken percent escape in the path", false);
    exchange.respond(400, { "content-type": "text/plain; charset=utf-8" }, "400 Bad Request");
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
      this.#options.log.error("cannot send an error response", second);
      exchange.destroy();
    }
  }

  /** Waits until running requests have ended, at most `graceMs`, then closes all connections. */
  async drain(graceMs: number, http: Server): Promise<void> {
    this.#draining = true;
    this.#drainingMs = performance.now();
    http.closeIdleConnections();
    for (const connection of this.#connections) {
      if (connection.size === 0 || graceMs === 0) connection.close();
      else connection.leave();
    }
    await this.#until(() => this.#exchanges.size === 0, graceMs);
    clearInterval(this.#sweeper);
    for (const exchange of this.#exchanges.all()) exchange.abort();
    // A final GOAWAY tells clients which requests were not processed and can be retried; a closed socket does not.
    http.closeIdleConnections();
    for (const connection of this.#connections) connection.close();
    await this.#until(() => this.#sockets.size === 0, Math.min(graceMs, goodbyeMs));
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when the condition holds, or after `limitMs`. */
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

/** Headers of errors sent with Go's http.Error. */
const plainText = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" } as const;

/** An invalid percent escape in the path. */
const brokenPath = /^[^?]*%(?![0-9a-fA-F]{2})/;

/** An element of an UnorderedSet: `place` is its index, -1 when it is not in the set. */
interface Listed {
  place: number;
}

/**
 * A set of objects that are added and removed with every request. Replaces Set because of garbage collection: a Set that outgrows
 * its table leaves the old table with a pointer to the next. Once one of these is in the old generation, all later tables survive
 * young collections with everything they held: 10 of 18 MB instead of 2, and a third of the CPU time of a small request.
 */
export class UnorderedSet<T extends Listed> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** No effect when the member is present. */
  add(member: T): void {
    if (member.place >= 0) return;
    member.place = this.#members.length;
    this.#members.push(member);
  }

  delete(member: T): void {
    if (member.place < 0) return;
    const last = this.#members.pop()!;
    if (last !== member) {
      this.#members[member.place] = last;
      last.place = member.place;
    }
    member.place = -1;
  }

  /** A copy of the current members, unordered. */
  all(): readonly T[] {
    return [...this.#members];
  }
}
