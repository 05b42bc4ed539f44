import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/**
 * One HTTP request and its answer, the same over HTTP/1.1 and HTTP/2. Made by `https-server.ts`; the hot path writes
 * to it directly, Express is mounted beside it for the edge (`express-handler.ts`).
 */
export interface Exchange {
  readonly method: string;
  /** Path and query as the client sent them: `/api/v1/pods?limit=5`. */
  readonly url: string;
  /** Lower-case names; HTTP/2 pseudo headers are left out, `host` is filled from `:authority`. */
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value, … as they came, with HTTP/2's pseudo headers; empty where `headers` is all there is. */
  readonly rawHeaders: readonly string[];
  readonly httpVersion: "1.1" | "2.0";
  readonly remoteAddress: string;
  /** The TLS connection (for client certificates), undefined on a plain one. */
  readonly tls: TLSSocket | undefined;
  /** Aborted when the client went away before the answer was complete, or the server's drain ran out. */
  readonly signal: AbortSignal;
  /** Whether `signal` is aborted, or would be; a signal is not made for it. */
  readonly isGone: boolean;

  /** Reads the whole body. @throws StatusError 413 `RequestEntityTooLarge` beyond `limitBytes`. */
  body(limitBytes: number): Promise<Buffer>;
  /** The request body as it arrives, for proxies. */
  bodyStream(): NodeJS.ReadableStream;

  readonly headersSent: boolean;
  /** The status that was sent, 0 before. */
  readonly status: number;
  /** Bytes of body written so far. */
  readonly bytesWritten: number;
  /** Sets a header of the answer that is sent later; for filters that run before the status is known. */
  setHeader(name: string, value: string | string[]): void;
  /** Adds to a header that may occur several times (`Warning`). */
  appendHeader(name: string, value: string): void;
  /** Sends a whole answer. `content-length` is set here. Ignored with a log line when headers were sent. */
  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void;
  /** Starts an answer of unknown length. */
  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream;
  /** Called whenever the handler begins to wait for its client to read; set by who limits how much is worked on at a time. */
  onUnread: (() => void) | undefined;
  /** Ends the connection's part of this request without an answer (after a panic in mid-stream). */
  destroy(): void;
  /** Asks the client to open a new connection: GOAWAY on HTTP/2, `Connection: close` on HTTP/1.1. */
  goAway(): void;

  /** The raw socket and bytes already read, when the request asks for an upgrade (HTTP/1.1 `upgrade` event). */
  readonly upgrade: { socket: Socket; head: Buffer } | undefined;
}

export interface ResponseStream {
  /** @returns false when the transport's buffer is full: await `drained` before writing more. */
  write(chunk: Buffer | string): boolean;
  /** Resolves when the buffer has room again; rejects when the client is gone. */
  drained(): Promise<void>;
  end(chunk?: Buffer | string): void;
}

export type ExchangeHandler = (exchange: Exchange) => void | Promise<void>;
