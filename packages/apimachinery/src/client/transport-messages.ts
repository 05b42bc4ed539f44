/** Requests and responses, independent of the HTTP version. */
import type http from "node:http";
import type { Readable } from "node:stream";

export interface TransportRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: http.IncomingHttpHeaders;
  /** The value of one of `headers`, at less cost. @param name lower-case */
  header?(name: string): string | undefined;
  /** Must be read completely or destroyed. Reading slowly exerts backpressure on the server (flow control). */
  readonly body: Readable;
  /** Reads the complete body, at less cost than from the stream. May be called once, instead of using `body`. @throws like `readBody` */
  bytes?(): Promise<Buffer>;
  /** The chunks of the body as they arrive, at less cost than from the stream. May be called once, instead of using `body`. */
  parts?(): AsyncIterableIterator<Buffer>;
}
