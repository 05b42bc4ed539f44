import { EventEmitter } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Exchange } from "./exchange.ts";

/** Adapts an exchange's request to the parts of Node's `IncomingMessage` that Express and its dependencies use. */
export class ExchangeRequest extends Readable {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly method: string;
  /** Express strips the mount path from it. */
  url: string;
  readonly httpVersion: Exchange["httpVersion"];
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly socket: ExchangeSocket;
  readonly upgrade: boolean;
  /** The whole body was read. */
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

  /** The body is requested only when it is read. */
  override _read(): void {
    if (this.#source !== undefined) this.#source.resume();
    else if (this.upgrade) this.#end();
    else this.#readFrom(this.#exchange.bodyStream());
  }

  #readFrom(source: NodeJS.ReadableStream): void {
    this.#source = source;
    if (!source.readable) this.#end(); // a filter has consumed it
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

  /** Destroying an incompletely read request aborts the exchange. */
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
 * The parts of a socket that frameworks use. Destroying it aborts this request only, because the connection may carry others.
 * Emits `close` when the client has disconnected.
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
