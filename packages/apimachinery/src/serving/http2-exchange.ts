import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { constants, type IncomingHttpHeaders as Http2Headers, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { requestEntityTooLarge } from "../errors/status-error.ts";
import type { Logger } from "../logging/logger.ts";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { bodyMayFollow, httpDate, plainAddress, ResponseHeaders, whenDrained } from "./exchange-parts.ts";

/** Headers of a connection, which HTTP/2 does not have. */
const connectionHeaders: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** One request over HTTP/2, on node's core stream. */
export class Http2Exchange implements Exchange {
  readonly httpVersion = "2.0" as const;
  readonly upgrade = undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly tls: TLSSocket;
  bytesWritten = 0;
  /** In the server's roster. */
  place = -1;
  /** See Connections. */
  answeredMs: number | undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #log: Logger;
  readonly #goAway: (session: ServerHttp2Session) => void;
  readonly #headers = new ResponseHeaders();
  #controller: AbortController | undefined;
  #gone = false;
  /** Kept, because node puts all headers that it sent into an object for whoever asks it. */
  #status = 0;

  constructor(
    stream: ServerHttp2Stream,
    headers: Http2Headers,
    rawHeaders: readonly string[],
    socket: TLSSocket,
    log: Logger,
    goAway: (session: ServerHttp2Session) => void,
  ) {
    this.#stream = stream;
    this.rawHeaders = rawHeaders;
    this.#log = log;
    this.#goAway = goAway;
    this.tls = socket;
    this.method = headers[":method"] ?? "GET";
    this.url = headers[":path"] ?? "/";
    this.headers = withoutPseudoHeaders(headers);
    stream.on("error", ignore);
    if (headers["expect"] === "100-continue") stream.additionalHeaders({ ":status": 100 });
  }

  /** Called by the server when the stream is closed. */
  closed(): void {
    // Node ends the writable side of a stream that the client resets: ended alone does not mean sent. It may close one
    // before it says that the last bytes are written, so that finished is not what to wait for either.
    const { writableEnded, aborted, rstCode } = this.#stream;
    if (writableEnded && !aborted && rstCode === constants.NGHTTP2_NO_ERROR) return;
    this.#gone = true;
    this.#controller?.abort(new Error("the client went away"));
  }

  /** The server's drain ran out, or the client did not take its answer. */
  abort(): void {
    this.#gone = true;
    this.#controller?.abort(new Error("the server is shutting down"));
    this.destroy();
  }

  /** Is the whole answer given? The client may not have taken it. */
  get isAnswered(): boolean {
    return this.#stream.writableEnded;
  }

  get remoteAddress(): string {
    return plainAddress(this.tls.remoteAddress);
  }

  get isGone(): boolean {
    return this.#gone;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#gone && !this.#controller.signal.aborted) this.#controller.abort(new Error("the client went away"));
    return this.#controller.signal;
  }

  body(limitBytes: number): Promise<Buffer> {
    const stream = this.#stream;
    if (stream.endAfterHeaders) return Promise.resolve(Buffer.alloc(0));
    return new Promise((resolve, reject) => {
      const tooLarge = (): void => {
        stream.off("data", onData);
        stream.resume();
        reject(requestEntityTooLarge(`limit is ${limitBytes}`));
      };
      const chunks: Buffer[] = [];
      let size = 0;
      const onData = (chunk: Buffer): void => {
        size += chunk.length;
        if (size > limitBytes) tooLarge();
        else chunks.push(chunk);
      };
      if (Number(this.headers["content-length"] ?? 0) > limitBytes) return tooLarge();
      stream.on("data", onData);
      stream.once("end", () => {
        stream.off("data", onData); // young collections take streams that have ended for alive, and what they hold
        if (stream.aborted) reject(new Error("the client went away while it sent its request"));
        else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
      });
      stream.once("close", () => {
        if (!stream.readableEnded) reject(new Error("the client went away while it sent its request"));
      });
    });
  }

  bodyStream(): NodeJS.ReadableStream {
    return this.#stream.endAfterHeaders ? Readable.from([]) : this.#stream;
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get status(): number {
    return this.#status;
  }

  setHeader(name: string, value: string | string[]): void {
    this.#headers.set(name, value);
  }

  appendHeader(name: string, value: string): void {
    this.#headers.append(name, value);
  }

  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void {
    const stream = this.#stream;
    if (stream.headersSent) {
      this.#log.error("an answer was given twice", undefined, { method: this.method, url: this.url, status });
      return;
    }
    if (stream.destroyed || stream.closed) return;
    this.#status = status;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const all = this.#allHeaders(status, headers, bodyMayFollow(status) ? (bytes?.length ?? 0) : undefined);
    if (bytes === undefined || bytes.length === 0 || this.method === "HEAD" || !bodyMayFollow(status)) {
      stream.respond(all, { endStream: true });
      this.#refuseRest();
      return;
    }
    stream.respond(all);
    this.bytesWritten += bytes.length;
    stream.end(bytes);
    this.#refuseRest();
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    const stream = this.#stream;
    if (!stream.destroyed && !stream.closed) {
      this.#status = status;
      stream.respond(this.#allHeaders(status, headers));
    }
    const exchange = this;
    const open = (): boolean => !stream.destroyed && !stream.closed && !stream.writableEnded;
    return {
      write(chunk) {
        if (!open()) return false;
        exchange.bytesWritten += chunk.length;
        return stream.write(chunk);
      },
      drained: () => whenDrained(stream),
      end(chunk) {
        if (!open()) return;
        exchange.bytesWritten += chunk?.length ?? 0;
        if (chunk === undefined) stream.end();
        else stream.end(chunk);
        exchange.#refuseRest();
      },
    };
  }

  /**
   * What is left of a request that was answered early is not wanted (RFC 9113, 8.1). Not at once: a reset can overtake
   * the answer in clients, node's among them.
   */
  #refuseRest(): void {
    const stream = this.#stream;
    if (stream.closed || stream.destroyed || stream.readableEnded || stream.endAfterHeaders) return;
    stream.resume();
    const refuse = (): void => {
      if (stream.closed || stream.destroyed || stream.readableEnded) return;
      if (stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR);
      else setTimeout(refuse, 1000).unref();
    };
    setTimeout(refuse, 1000).unref();
  }

  destroy(): void {
    // Not `close`: node would end the answer first, and what came of it would pass for the whole.
    this.#stream.destroy(new Error("the answer was broken off"));
  }

  goAway(): void {
    const session = this.#stream.session;
    if (session !== undefined) this.#goAway(session as ServerHttp2Session);
  }

  /** As a flat list, which node passes on without sorting it into an object again. */
  #allHeaders(status: number, headers: OutgoingHttpHeaders, length?: number): string[] {
    const all = [":status", String(status)];
    let dated = false;
    for (const [name, value] of this.#headers.merged(headers)) {
      if (connectionHeaders.has(name) || (name === "content-length" && length !== undefined)) continue;
      if (name === "date") dated = true; // a proxied answer has its own
      if (typeof value === "string") all.push(name, value);
      else if (Array.isArray(value)) for (const one of value) all.push(name, one);
      else all.push(name, String(value));
    }
    if (length !== undefined) all.push("content-length", String(length));
    if (!dated) all.push("date", httpDate());
    return all;
  }
}

/**
 * Not a closure of the exchange: the native side of a stream keeps it through young collections after its end, and with
 * it all that its listeners hold.
 */
function ignore(): void {}

function withoutPseudoHeaders(headers: Http2Headers): IncomingHttpHeaders {
  const plain: IncomingHttpHeaders = {};
  for (const name in headers) if (name.charCodeAt(0) !== 58 /* : */) plain[name] = headers[name];
  const authority = headers[":authority"];
  if (authority !== undefined) plain.host = authority;
  return plain;
}
