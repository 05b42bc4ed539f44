import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { requestEntityTooLarge } from "../objects/errors/status-error.ts";
import type { Logger } from "../process/logging/logger.ts";
import { ServerConnection, type ServerConnectionOptions } from "../transport/http2/server/connection.ts";
import { connectionFields } from "../transport/http2/server/input.ts";
import type { ServerStream } from "../transport/http2/server/stream.ts";
import { GatheredBytes } from "../transport/http2/wire/buffers.ts";
import { errorCodes } from "../transport/http2/wire/connection-error.ts";
import { framedFields } from "../transport/http2/wire/frames.ts";
import { validateHeaderValue } from "../transport/node-http.ts";
import type { Connections, ServedExchange } from "./connections.ts";
import type { ResponseStream } from "./exchange.ts";
import {
  bodyMayFollow,
  ExchangeBase,
  goneInRequest,
  httpDate,
  newRequestFields,
  nowhere,
  plainAddress,
} from "./exchange-parts.ts";

/** The client of a connection, as the server knows it before any request. */
export interface Http2Peer {
  /** Identity for fair queueing between clients. */
  readonly name: string;
  /** undefined: the client has too many connections, and this one is refused. */
  readonly budget: ServerConnectionOptions["client"];
  refused(reason: string, isWhole: boolean): void;
}

/** Serves HTTP/2 on a socket: each stream becomes an exchange. */
export function serveHttp2(
  socket: TLSSocket,
  settings: Omit<ServerConnectionOptions, "client">,
  connections: Connections,
  peer: Http2Peer,
  log: Logger,
): void {
  const connection = new ServerConnection(
    socket,
    { ...settings, client: peer.budget },
    {
      request(stream) {
        const exchange = new Http2Exchange(connection, stream, socket, log);
        stream.onClosed = () => {
          exchange.closed();
          connections.done(exchange);
        };
        void connections.serve(exchange, peer.name, handled);
      },
      refused: (reason, isWhole) => peer.refused(reason, isWhole),
      closed(reason) {
        connections.delete(connection);
        if (reason !== undefined) log.v(4)?.info("HTTP/2 connection failed", { err: reason });
      },
    },
  );
  const handled = (): void => connection.handled();
  connections.add(connection);
  if (peer.budget === undefined) connection.refuse();
}

/** One request over HTTP/2. */
class Http2Exchange extends ExchangeBase implements ServedExchange {
  readonly httpVersion = "2.0" as const;
  readonly upgrade = undefined;
  readonly tls: TLSSocket;
  readonly #connection: ServerConnection;
  readonly #stream: ServerStream;
  readonly #log: Logger;
  #received: IncomingHttpHeaders | undefined;
  #bodyFailed: ((err: Error) => void) | undefined;
  #status = 0;

  constructor(connection: ServerConnection, stream: ServerStream, socket: TLSSocket, log: Logger) {
    super();
    this.#connection = connection;
    this.#stream = stream;
    this.#log = log;
    this.tls = socket;
    if (this.headers.expect === "100-continue") stream.inform(framedFields(stream.id, [":status", "100"], false));
  }

  /** Called by the server when the stream is closed. */
  closed(): void {
    if (!this.#stream.received) this.#bodyFailed?.(new Error(goneInRequest));
    this.#bodyFailed = undefined;
    if (this.#stream.sent) return;
    this.setGone();
  }

  abort(): void {
    this.setGone("the server is shutting down");
    this.destroy();
  }

  get isCut(): boolean {
    return this.#stream.isCut;
  }

  get refusal(): string | undefined {
    return this.#stream.head.refusal;
  }

  get isAnswered(): boolean {
    return this.#stream.ended;
  }

  get method(): string {
    return this.#stream.head.method;
  }

  get url(): string {
    return this.#stream.head.path;
  }

  get headers(): IncomingHttpHeaders {
    this.#received ??= headersOf(this.#stream);
    return this.#received;
  }

  get rawHeaders(): readonly string[] {
    return this.#stream.fields;
  }

  get remoteAddress(): string {
    return plainAddress(this.tls.remoteAddress);
  }

  body(limitBytes: number): Promise<Buffer> {
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      const tooLarge = (): void => {
        stream.discard();
        reject(requestEntityTooLarge(`limit is ${limitBytes}`));
      };
      if ((stream.head.contentLength ?? 0) > limitBytes) return tooLarge();
      this.#whenGone(reject);
      const bytes = new GatheredBytes();
      stream.receive({
        data(chunk) {
          stream.consumed(chunk.length);
          if (bytes.size + chunk.length > limitBytes) tooLarge();
          else bytes.push(chunk);
        },
        end: () => resolve(bytes.take()),
      });
    });
  }

  get bodyIsReceived(): boolean {
    return this.#stream.received;
  }

  get bodyBytes(): number {
    return this.#stream.receivedBytes;
  }

  bodyStream(): NodeJS.ReadableStream {
    const stream = this.#stream;
    /** Data that is not consumed yet, so that its flow-control window stays closed. */
    const held = new GatheredBytes();
    let isWanted = false;
    const give = (): void => {
      stream.consumed(held.size);
      isWanted = readable.push(held.take());
    };
    const readable = new Readable({
      highWaterMark: readAheadBytes,
      read() {
        isWanted = true;
        if (held.size > 0) give();
      },
      destroy(err, done) {
        stream.discard();
        done(err);
      },
    });
    readable.on("error", ignore);
    this.#whenGone((err) => readable.destroy(err));
    stream.receive({
      data(chunk) {
        held.push(chunk);
        if (isWanted) give();
      },
      end() {
        if (held.size > 0) readable.push(held.take());
        readable.push(null);
      },
    });
    return readable;
  }

  /** Reports the end of the stream as an error of the body. A body that was received but not read is lost with its stream. */
  #whenGone(failed: (err: Error) => void): void {
    if (this.#stream.isClosed) failed(new Error(goneInRequest));
    else this.#bodyFailed = failed;
  }

  get headersSent(): boolean {
    return this.#stream.headersGiven;
  }

  get status(): number {
    return this.#status;
  }

  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void {
    const stream = this.#stream;
    if (stream.headersGiven) {
      this.#log.error("a response was already sent", undefined, { method: this.method, url: this.url, status });
      return;
    }
    if (stream.isClosed) return;
    this.#status = status;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const length = bytes?.length ?? 0;
    const isWhole = length === 0 || this.method === "HEAD" || !bodyMayFollow(status);
    const fields = this.#fields(status, headers, bodyMayFollow(status) ? length : undefined);
    stream.respond(framedFields(stream.id, fields, isWhole), isWhole);
    if (isWhole || bytes === undefined) return;
    this.bytesWritten += length;
    stream.write(bytes);
    stream.end();
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    const stream = this.#stream;
    const isWhole = this.method === "HEAD" || !bodyMayFollow(status);
    if (!stream.isClosed) {
      this.#status = status;
      stream.respond(framedFields(stream.id, this.#fields(status, headers), isWhole), isWhole);
    }
    if (isWhole) return nowhere;
    const write = (chunk: Buffer | string): boolean => {
      if (stream.isClosed || stream.ended) return false;
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      this.bytesWritten += bytes.length;
      return stream.write(bytes);
    };
    return {
      write,
      drained: () => this.whenRead(stream.drained()),
      end(chunk) {
        if (chunk !== undefined) write(chunk);
        stream.end();
      },
    };
  }

  destroy(): void {
    this.#stream.reset(errorCodes.internal);
  }

  goAway(): void {
    this.#connection.leave();
  }

  /** @throws TypeError for an invalid header value */
  #fields(status: number, headers: OutgoingHttpHeaders, length?: number): string[] {
    const all = [":status", String(status)];
    let isDated = false;
    for (const [name, value] of this.answerHeaders.merged(headers)) {
      if (connectionFields.has(name) || (name === "content-length" && length !== undefined)) continue;
      if (name === "date") isDated = true; // a proxied response has its own
      for (const one of Array.isArray(value) ? value : [String(value)]) {
        validateHeaderValue(name, one);
        all.push(name, one);
      }
    }
    if (length !== undefined) all.push("content-length", String(length));
    if (!isDated) all.push("date", httpDate());
    return all;
  }
}

const readAheadBytes = 16 * 1024;

function ignore(): void {}

/** Fields that must not be repeated; the first one counts, as in Node's HTTP/1.1. */
const singleFields: ReadonlySet<string> = new Set(
  (
    "age authorization content-encoding content-language content-length content-location content-md5 content-range content-type " +
    "date etag expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location " +
    "max-forwards proxy-authorization range referer retry-after server user-agent"
  ).split(" "),
);

function headersOf({ fields, head }: ServerStream): IncomingHttpHeaders {
  const headers = newRequestFields();
  const cookies: string[] = [];
  let authorization: string | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at]!;
    if (name.charCodeAt(0) === 58 /* : */) continue;
    const value = fields[at + 1]!;
    const before = headers[name];
    if (name === "authorization") authorization ??= value;
    else if (name === "set-cookie") {
      if (cookies.push(value) === 1) headers[name] = cookies;
    } else if (before === undefined) headers[name] = value;
    // Cast: only set-cookie is a list, which is handled above.
    else if (!singleFields.has(name)) headers[name] = `${before as string}${name === "cookie" ? "; " : ", "}${value}`;
  }
  if (head.authority !== undefined) headers.host = head.authority;
  if (authorization !== undefined) headers.authorization = authorization;
  return headers;
}
