import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { Writable } from "node:stream";
import { errorOf } from "../process/narrowing/error-of.ts";
import { validateHeaderName, validateHeaderValue } from "../transport/node-http.ts";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { bodyMayFollow } from "./exchange-parts.ts";
import type { ExchangeRequest, ExchangeSocket } from "./express-request.ts";

type EndCallback = () => void;
type HeaderList = readonly (readonly [name: string, value: OutgoingHttpHeader])[];

/**
 * Adapts an exchange's response to the parts of Node's `ServerResponse` that Express and its dependencies use. A body passed to
 * one `end()` is sent with `content-length`, anything else as a stream. Headers that filters have set on the exchange are sent
 * too, but are not visible here; those set here win.
 */
export class ExchangeResponse extends Writable {
  statusCode = 200;
  /** Accepted and ignored: HTTP/2 has no reason phrases, and over HTTP/1.1 the standard one is sent. */
  statusMessage = "";
  req: ExchangeRequest;
  readonly #exchange: Exchange;
  /** Keys in lower case. */
  readonly #headers = new Map<string, OutgoingHttpHeader>();
  #headIsFixed = false;
  #stream: ResponseStream | undefined;
  #isAnswered = false;

  constructor(exchange: Exchange, request: ExchangeRequest) {
    super();
    this.#exchange = exchange;
    this.req = request;
    this.on("error", () => {});
  }

  get socket(): ExchangeSocket {
    return this.req.socket;
  }
  get connection(): ExchangeSocket {
    return this.req.socket;
  }
  get headersSent(): boolean {
    return this.#headIsFixed;
  }
  get finished(): boolean {
    return this.writableEnded;
  }

  /** @throws TypeError for an invalid name or value; Error when the headers are sent */
  setHeader(name: string, value: number | string | readonly string[]): this {
    validateHeaderName(name);
    validateHeaderValue(name, value as string); // cast: it checks lists, too, which its type does not say
    this.#refuseLate("set");
    this.#headers.set(name.toLowerCase(), value as OutgoingHttpHeader); // cast: a header is not changed
    return this;
  }

  appendHeader(name: string, value: number | string | readonly string[]): this {
    const before = this.getHeader(name);
    if (before === undefined) return this.setHeader(name, value);
    return this.setHeader(name, [before, value as OutgoingHttpHeader].flat().map(String)); // cast: a header is not changed
  }

  removeHeader(name: string): void {
    this.#refuseLate("remove");
    this.#headers.delete(name.toLowerCase());
  }

  getHeader(name: string): OutgoingHttpHeader | undefined {
    return this.#headers.get(name.toLowerCase());
  }
  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }
  getHeaderNames(): string[] {
    return [...this.#headers.keys()];
  }
  getHeaders(): OutgoingHttpHeaders {
    return Object.fromEntries(this.#headers);
  }

  #refuseLate(verb: string): void {
    if (!this.#headIsFixed) return;
    const err = new Error(`Cannot ${verb} headers after they are sent to the client`);
    throw Object.assign(err, { code: "ERR_HTTP_HEADERS_SENT" });
  }

  /** Sends nothing before the first byte of the body, as in Node. Headers: an object, pairs, or a flat list. */
  writeHead(status: number, headers?: OutgoingHttpHeaders | HeaderList | OutgoingHttpHeader[]): this;
  writeHead(status: number, reason: string, headers?: OutgoingHttpHeaders | HeaderList | OutgoingHttpHeader[]): this;
  writeHead(status: number, ...rest: unknown[]): this {
    this.#refuseLate("write");
    this.statusCode = status;
    const pairs = pairsOf(typeof rest[0] === "string" ? rest[1] : rest[0]);
    for (const [name] of pairs) this.removeHeader(name);
    for (const [name, value] of pairs) this.appendHeader(name, value);
    this.#headIsFixed = true;
    return this;
  }

  flushHeaders(): void {
    if (!this.writableEnded) this.#begin();
  }

  override end(callback?: EndCallback): this;
  override end(chunk: unknown, callback?: EndCallback): this;
  override end(chunk: unknown, encoding: BufferEncoding, callback?: EndCallback): this;
  override end(...given: unknown[]): this {
    // Cast: `end` takes one function, the callback.
    const callback = given.find((one) => typeof one === "function") as EndCallback | undefined;
    // Cast: the arguments of `end` other than the callback.
    const [chunk, encoding] = given.filter((one) => typeof one !== "function") as [unknown, BufferEncoding | undefined];
    const isWhole = this.#stream === undefined && this.writableLength === 0 && !this.writableEnded && !this.destroyed;
    if (isWhole && !this.#sendsLengthOnly(chunk)) this.#answer(bytesOf(chunk, encoding));
    else if (chunk !== undefined && chunk !== null) this.write(bytesOf(chunk, encoding));
    return super.end(callback);
  }

  /** A response to HEAD may have a `content-length` without a body. */
  #sendsLengthOnly(chunk: unknown): boolean {
    return this.req.method === "HEAD" && !chunk && this.hasHeader("content-length");
  }

  #answer(body: Buffer | undefined): void {
    this.#exchange.respond(this.statusCode, this.getHeaders(), body);
    this.#headIsFixed = true;
    this.#isAnswered = true;
  }

  #begin(): ResponseStream {
    if (this.#stream !== undefined) return this.#stream;
    if (this.#exchange.headersSent) throw new Error("the request was answered already");
    this.#stream = this.#exchange.stream(this.statusCode, this.getHeaders());
    this.#headIsFixed = true;
    return this.#stream;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (err?: Error) => void): void {
    try {
      const stream = this.#begin();
      const isSent = this.req.method === "HEAD" || !bodyMayFollow(this.statusCode) || stream.write(chunk);
      if (isSent) done();
      else stream.drained().then(() => done(), done);
    } catch (err) {
      done(errorOf(err));
    }
  }

  override _final(done: (err?: Error) => void): void {
    try {
      if (!this.#isAnswered) this.#begin().end();
      this.#isAnswered = true;
      done();
    } catch (err) {
      done(errorOf(err));
    }
  }

  /** Destroying an incomplete response aborts the exchange, unless another response was sent (by the request deadline). */
  override _destroy(err: Error | null, done: (err?: Error | null) => void): void {
    if (!this.#isAnswered && (this.#stream !== undefined || !this.#exchange.headersSent)) this.#exchange.destroy();
    done(err);
  }
}

function pairsOf(headers: unknown): HeaderList {
  // Cast: what is no list is a record of headers.
  if (!Array.isArray(headers)) return Object.entries((headers ?? {}) as Record<string, OutgoingHttpHeader>);
  if (Array.isArray(headers[0])) return headers;
  return Array.from({ length: Math.ceil(headers.length / 2) }, (_, i) => [headers[2 * i], headers[2 * i + 1]] as const);
}

/** @throws TypeError for a chunk that is neither a string nor bytes */
function bytesOf(chunk: unknown, encoding: BufferEncoding | undefined): Buffer | undefined {
  if (chunk === undefined || chunk === null) return undefined;
  if (typeof chunk === "string") return Buffer.from(chunk, encoding);
  if (!(chunk instanceof Uint8Array)) throw new TypeError(`a body is text or bytes, not ${typeof chunk}`);
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
