import { EventEmitter } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Exchange } from "./exchange.ts";

/** An exchange's request as Express and what it is built of want it: node's `IncomingMessage`, as far as they look. */
export class ExchangeRequest extends Readable {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly method: string;
  /** Express shortens it for what is mounted at a path. */
  url: string;
  readonly httpVersion: Exchange["httpVersion"];
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly socket: ExchangeSocket;
  readonly upgrade: boolean;
  /** The body has been read to its end. */
  complete = false;
  aborted = false;
  readonly #exchange: Exchange;
  #source: NodeJS.ReadableStream | undefined;

  constructor(exchange: Exchange) {
    super();
    this.#exchange = exchange;
    this.headers = exchange.headers;
    this.rawHeaders = exchange.rawHeaders;
    this.method = exchange.method;
    this.url = exchange.url;
    this.httpVersion = exchange.httpVersion;
    [this.httpVersionMajor, this.httpVersionMinor] = exchange.httpVersion === "2.0" ? [2, 0] : [1, 1];
    this.socket = new ExchangeSocket(exchange);
    this.upgrade = exchange.upgrade !== undefined;
    this.on("error", () => {});
  }

  get connection(): ExchangeSocket {
    return this.socket;
  }

  /** The body is asked for only when somebody reads it. */
  override _read(): void {
    if (this.#source !== undefined) this.#source.resume();
    else if (this.upgrade) this.#end();
    else this.#readFrom(this.#exchange.bodyStream());
  }

  #readFrom(source: NodeJS.ReadableStream): void {
    this.#source = source;
    if (!source.readable) this.#end(); // a filter has read it
    source.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) source.pause();
    });
    source.once("end", () => this.#end());
    source.once("error", (err) => this.destroy(err));
    source.once("close", () => {
      if (!this.complete) this.destroy();
    });
  }

  #end(): void {
    if (this.complete || this.destroyed) return;
    this.complete = true;
    this.push(null);
  }

  /** Who gives a request up that is not read to its end breaks it off. */
  override _destroy(err: Error | null, done: (err?: Error | null) => void): void {
    if (!this.complete) {
      this.aborted = true;
      this.emit("aborted");
      this.#exchange.destroy();
    }
    done(err);
  }
}

/**
 * What is looked at of a request's connection, and what ends this request alone: the connection itself may carry others.
 * Emits `close` when the client has gone away.
 */
export class ExchangeSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly encrypted: boolean;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    super();
    this.#exchange = exchange;
    this.remoteAddress = exchange.remoteAddress;
    this.encrypted = exchange.tls !== undefined;
    exchange.signal.addEventListener("abort", () => this.emit("close"), { once: true });
  }

  get readable(): boolean {
    return !this.#exchange.isGone;
  }
  get writable(): boolean {
    return !this.#exchange.isGone;
  }
  get destroyed(): boolean {
    return this.#exchange.isGone;
  }

  destroy(): void {
    this.#exchange.destroy();
  }
}
