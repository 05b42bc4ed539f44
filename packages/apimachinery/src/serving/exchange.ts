import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/**
 * One HTTP request and its response, independent of the protocol. Created by `https-server.ts`. The hot path uses it directly;
 * Express applications are mounted through `express-handler.ts`.
 */
export interface Exchange {
  readonly method: string;
  /** Path and query as the client sent them: `/api/v1/pods?limit=5`. */
  readonly url: string;
  /** Lower-case names; HTTP/2 pseudo headers are left out, `host` is filled from `:authority`. */
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value, … in wire order, including HTTP/2 pseudo headers; empty when only `headers` is available. */
  readonly rawHeaders: readonly string[];
  readonly httpVersion: "1.1" | "2.0";
  readonly remoteAddress: string;
  /** The TLS connection (for client certificates), undefined on a plain one. */
  readonly tls: TLSSocket | undefined;
  /** Aborted when the client disconnects before the response is complete, or when the shutdown's grace period is over. */
  readonly signal: AbortSignal;
  /** Whether the exchange was aborted; cheaper than `signal`, which is created on demand. */
  readonly isGone: boolean;

  /** Reads the whole body. @throws StatusError 413 `RequestEntityTooLarge` beyond `limitBytes`. */
  body(limitBytes: number): Promise<Buffer>;
  /** Whether the whole body was received, read or not. */
  readonly bodyIsReceived: boolean;
  /** Bytes of the body that were received. */
  readonly bodyBytes: number;
  /** The request body as it arrives, for proxies. */
  bodyStream(): NodeJS.ReadableStream;

  readonly headersSent: boolean;
  /** The status sent; 0 before. */
  readonly status: number;
  /** Bytes of body written so far. */
  readonly bytesWritten: number;
  /** Sets a response header in advance; for filters that run before the status is known. */
  setHeader(name: string, value: string | string[]): void;
  /** Adds to a header that may occur several times (`Warning`). */
  appendHeader(name: string, value: string): void;
  /** Sends a complete response and sets `content-length`. When headers were sent already, it only logs an error. */
  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void;
  /** Starts a response of unknown length. */
  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream;
  /**
   * Called whenever the handler starts waiting for the client to read; set by concurrency limiters, which release the request's
   * seat.
   */
  onUnread: (() => void) | undefined;
  /** Aborts this request without a response (after a failure in mid-stream). */
  destroy(): void;
  /** Asks the client to open a new connection: GOAWAY on HTTP/2, `Connection: close` on HTTP/1.1. */
  goAway(): void;

  /** The raw socket and bytes already read, when the request has an Upgrade header (HTTP/1.1 `upgrade` event). */
  readonly upgrade: { socket: Socket; head: Buffer } | undefined;
}

export interface ResponseStream {
  /** @returns false when the transport's buffer is full: await `drained` before writing more. */
  write(chunk: Buffer | string): boolean;
  /** Resolves when the buffer is below its limit; rejects when the client has disconnected. */
  drained(): Promise<void>;
  end(chunk?: Buffer | string): void;
}

export type ExchangeHandler = (exchange: Exchange) => void | Promise<void>;
