import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { requestEntityTooLarge } from "../objects/errors/status-error.ts";
import type { Logger } from "../process/logging/logger.ts";
import { GatheredBytes } from "../transport/http2/wire/buffers.ts";
import { ServerResponse, STATUS_CODES } from "../transport/node-http.ts";
import type { ServedExchange } from "./connections.ts";
import type { ResponseStream } from "./exchange.ts";
import { bodyMayFollow, canonicalHeader, ExchangeBase, goneInRequest, plainAddress, whenDrained } from "./exchange-parts.ts";

/** Bytes of an oversized body that are read and discarded before the connection is closed. */
const discardedBytes = 64 << 20;

/** Time limit for the rest of a request after the response was sent. */
const lingerMs = 5_000;

/**
 * One request over HTTP/1.1 on Node's server. For upgrades, a ServerResponse is created only when the handler sends a response.
 */
export class Http1Exchange extends ExchangeBase implements ServedExchange {
  readonly httpVersion = "1.1" as const;
  /** Node rejects oversized headers itself. */
  readonly isCut = false;
  readonly upgrade: { socket: Socket; head: Buffer } | undefined;
  readonly #request: IncomingMessage;
  readonly #socket: Socket;
  /** What was read of the body. */
  #received: GatheredBytes | undefined;
  readonly #log: Logger;
  #response: ServerResponse | undefined;

  constructor(request: IncomingMessage, response: ServerResponse | undefined, upgradeHead: Buffer | undefined, log: Logger) {
    super();
    this.#request = request;
    this.#socket = request.socket;
    this.#log = log;
    if (response === undefined) {
      this.upgrade = { socket: request.socket, head: upgradeHead ?? Buffer.alloc(0) };
      request.socket.once("close", () => this.setGone());
      request.socket.on("error", () => {});
    } else this.#adopt(response);
    request.on("error", () => {});
  }

  #adopt(response: ServerResponse): void {
    this.#response = response;
    response.on("error", () => {});
    response.once("finish", () => this.#linger());
    response.once("close", () => {
      if (!response.writableFinished) this.setGone();
    });
  }

  /** A client that sends its body byte by byte would keep the connection open forever. */
  #linger(): void {
    const request = this.#request;
    if (request.complete || this.upgrade !== undefined) return;
    setTimeout(() => {
      if (!request.complete) this.#socket.destroy();
    }, lingerMs).unref();
  }

  get isAnswered(): boolean {
    return this.#response?.writableEnded === true;
  }

  abort(): void {
    this.setGone();
    this.#socket.destroy();
  }

  get method(): string {
    return this.#request.method ?? "GET";
  }
  get url(): string {
    return this.#request.url ?? "/";
  }
  get headers(): IncomingMessage["headers"] {
    return this.#request.headers;
  }
  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }
  get remoteAddress(): string {
    return plainAddress(this.#socket.remoteAddress);
  }
  get tls(): TLSSocket | undefined {
    return this.#socket instanceof TLSSocket ? this.#socket : undefined;
  }
  body(limitBytes: number): Promise<Buffer> {
    const request = this.#request;
    if (this.upgrade !== undefined) return Promise.resolve(Buffer.alloc(0));
    return new Promise((resolve, reject) => {
      const bytes = new GatheredBytes();
      this.#received = bytes;
      let discarded = 0;
      const tooLarge = (): void => {
        request.off("data", onData);
        // A client disconnected while sending never reads the response.
        request.on("data", (chunk: Buffer) => {
          discarded += chunk.length;
          if (discarded > discardedBytes) request.destroy();
        });
        reject(requestEntityTooLarge(`limit is ${limitBytes}`));
      };
      const onData = (chunk: Buffer): void => {
        if (bytes.size + chunk.length > limitBytes) tooLarge();
        else bytes.push(chunk);
      };
      if (Number(request.headers["content-length"] ?? 0) > limitBytes) return tooLarge();
      if (request.destroyed) return reject(new Error(goneInRequest)); // emits no further events
      request.on("data", onData);
      request.once("end", () => resolve(bytes.take()));
      request.once("close", () => {
        if (!request.complete) reject(new Error(goneInRequest));
      });
      request.once("error", reject);
    });
  }

  get bodyIsReceived(): boolean {
    return this.#request.complete || this.upgrade !== undefined;
  }

  get bodyBytes(): number {
    return this.#received?.size ?? 0;
  }

  bodyStream(): NodeJS.ReadableStream {
    return this.#request;
  }

  get headersSent(): boolean {
    return this.#response?.headersSent ?? false;
  }
  get status(): number {
    return this.#response?.headersSent === true ? this.#response.statusCode : 0;
  }

  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void {
    const response = this.#answer();
    if (response.headersSent) {
      this.#log.error("a response was already sent", undefined, { method: this.method, url: this.url, status });
      return;
    }
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    if (bodyMayFollow(status)) headers = { ...headers, "content-length": bytes?.length ?? 0 };
    this.#writeHead(response, status, headers);
    this.bytesWritten += bytes?.length ?? 0;
    response.end(bytes);
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    const response = this.#answer();
    this.#writeHead(response, status, headers);
    response.flushHeaders();
    const exchange = this;
    return {
      write(chunk) {
        exchange.bytesWritten += chunk.length;
        return response.write(chunk);
      },
      drained: () => this.whenRead(whenDrained(response)),
      end(chunk) {
        exchange.bytesWritten += chunk?.length ?? 0;
        if (chunk === undefined) response.end();
        else response.end(chunk);
      },
    };
  }

  destroy(): void {
    this.#socket.destroy();
  }

  goAway(): void {
    if (!this.headersSent) this.setHeader("connection", "close");
  }

  #writeHead(response: ServerResponse, status: number, headers: OutgoingHttpHeaders): void {
    const all: OutgoingHttpHeaders = {};
    for (const [name, value] of this.answerHeaders.merged(headers)) all[canonicalHeader(name)] = value;
    // Keep-alive is the default in HTTP/1.1, and Go does not send the header.
    if (response.shouldKeepAlive && this.#request.httpVersion === "1.1") response.removeHeader("connection");
    response.writeHead(status, STATUS_CODES[status] ?? "unknown", all); // a failed call may have left another text
  }

  /** Creates a plain response to an upgrade request on the raw socket, which is closed after it. */
  #answer(): ServerResponse {
    if (this.#response !== undefined) return this.#response;
    const response = new ServerResponse(this.#request);
    response.shouldKeepAlive = false;
    response.assignSocket(this.#socket);
    response.once("finish", () => {
      response.detachSocket(this.#socket);
      this.#socket.end();
      // Read to its end, or given up: a client that does not close its side would keep the connection open forever.
      this.#socket.resume();
      setTimeout(() => this.#socket.destroy(), lingerMs).unref();
    });
    this.#adopt(response);
    return response;
  }
}
