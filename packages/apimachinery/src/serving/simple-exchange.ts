import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../process/logging/logger.ts";
import { connectionFields } from "../transport/http2/server/input.ts";
import { STATUS_CODES, validateHeaderValue } from "../transport/node-http.ts";
import type { ServedExchange } from "./connections.ts";
import type { ResponseStream } from "./exchange.ts";
import {
  bodyMayFollow,
  canonicalHeader,
  ExchangeBase,
  httpDate,
  newRequestFields,
  nowhere,
  plainAddress,
} from "./exchange-parts.ts";
import type { SimpleHead } from "./simple-head.ts";
import type { SimpleOutput } from "./simple-output.ts";

/** One GET request without a body over HTTP/1.1. See SimpleConnection. */
export class SimpleExchange extends ExchangeBase implements ServedExchange {
  readonly httpVersion = "1.1" as const;
  readonly method = "GET";
  readonly isCut = false;
  readonly upgrade = undefined;
  readonly tls: TLSSocket;
  /** The connection is closed after this response, which has `Connection: close`. */
  isLast = false;
  readonly #request: SimpleHead;
  readonly #log: Logger;
  /** Called when the response was written to the socket. */
  readonly #onAnswered: () => void;
  readonly #output: SimpleOutput;
  #received: IncomingHttpHeaders | undefined;
  #isAnswered = false;
  #status = 0;

  constructor(connection: { socket: TLSSocket; output: SimpleOutput; log: Logger }, request: SimpleHead, onAnswered: () => void) {
    super();
    this.tls = connection.socket;
    this.#output = connection.output;
    this.#log = connection.log;
    this.#request = request;
    this.#onAnswered = onAnswered;
  }

  get url(): string {
    return this.#request.url;
  }

  get headers(): IncomingHttpHeaders {
    this.#received ??= headersOf(this.#request);
    return this.#received;
  }

  get rawHeaders(): readonly string[] {
    return this.#request.fields;
  }

  get remoteAddress(): string {
    return plainAddress(this.tls.remoteAddress);
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Reports that the client has disconnected. */
  gone(): void {
    if (this.#isAnswered) return;
    this.setGone();
  }

  abort(): void {
    this.gone();
    this.tls.destroy();
  }

  destroy(): void {
    this.tls.destroy();
  }

  body(): Promise<Buffer> {
    return Promise.resolve(Buffer.alloc(0));
  }

  get bodyIsReceived(): boolean {
    return true;
  }

  get bodyBytes(): number {
    return 0;
  }

  bodyStream(): NodeJS.ReadableStream {
    return Readable.from([]);
  }

  get headersSent(): boolean {
    return this.#status !== 0;
  }

  get status(): number {
    return this.#status;
  }

  goAway(): void {
    if (!this.headersSent) this.setHeader("connection", "close");
  }

  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void {
    if (this.headersSent) {
      this.#log.error("a response was already sent", undefined, { method: this.method, url: this.url, status });
      return;
    }
    const isWhole = body === undefined || !bodyMayFollow(status);
    const bytes = isWhole ? noBytes : typeof body === "string" ? Buffer.from(body) : body;
    const length = bodyMayFollow(status) ? `Content-Length: ${bytes.length}\r\n` : "";
    const head = `${this.#head(status, headers, length)}\r\n`;
    if (this.isGone) return;
    this.#isAnswered = true;
    this.bytesWritten += bytes.length;
    this.#output.answer(head, bytes, this.#onAnswered);
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    // A second stream would write into the response of a later request.
    if (this.headersSent) throw new Error("a response was already sent");
    const output = this.#output;
    // A proxied response may have a known length.
    const isChunked = headers["content-length"] === undefined && bodyMayFollow(status);
    const head = `${this.#head(status, headers, "")}${isChunked ? "Transfer-Encoding: chunked\r\n" : ""}\r\n`;
    const end = (): void => {
      if (this.#isAnswered || this.isGone) return;
      this.#isAnswered = true;
      if (isChunked) output.push(lastChunk);
      output.end(this.#onAnswered);
    };
    const write = (chunk: Buffer | string): boolean => {
      if (this.#isAnswered || this.isGone) return false;
      if (chunk.length === 0) return !output.isFull;
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      this.bytesWritten += bytes.length;
      if (isChunked) output.push(Buffer.from(`${bytes.length.toString(16)}\r\n`, "latin1"));
      output.push(bytes);
      if (isChunked) output.push(endOfChunk);
      return !output.isFull;
    };
    output.push(Buffer.from(head, "latin1"));
    if (!bodyMayFollow(status)) {
      end();
      return nowhere;
    }
    return {
      write,
      drained: () => this.whenRead(output.drained()),
      end(chunk) {
        if (chunk !== undefined) write(chunk);
        end();
      },
    };
  }

  /**
   * Builds the status line and the headers, without those that depend on the framing.
   * @param length the `Content-Length` line, or `""`
   * @throws TypeError for an invalid header value
   */
  #head(status: number, headers: OutgoingHttpHeaders, length: string): string {
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
    let isDated = false;
    for (const [name, value] of this.answerHeaders.merged(headers)) {
      if (name === "connection" && value === "close") this.isLast = true;
      else if (connectionFields.has(name) || (name === "content-length" && length !== "")) continue;
      if (name === "date") isDated = true; // a proxied response has its own
      for (const one of Array.isArray(value) ? value : [String(value)]) {
        validateHeaderValue(name, one);
        text += `${canonicalHeader(name)}: ${one}\r\n`;
      }
    }
    text += length;
    if (!isDated) text += `Date: ${httpDate()}\r\n`;
    this.#status = status;
    return text;
  }
}

const noBytes = Buffer.alloc(0);
const endOfChunk = Buffer.from("\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");

function headersOf({ names, fields }: SimpleHead): IncomingHttpHeaders {
  const headers = newRequestFields();
  let authorization = -1;
  for (let at = 0; at < names.length; at++) {
    if (names[at] === "authorization") authorization = 2 * at + 1;
    else headers[names[at]!] = fields[2 * at + 1]!;
  }
  if (authorization >= 0) headers.authorization = fields[authorization];
  return headers;
}
