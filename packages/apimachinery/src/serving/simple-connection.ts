import type { TLSSocket } from "node:tls";
import type { Logger } from "../process/logging/logger.ts";
import { GatheredBytes } from "../transport/http2/wire/buffers.ts";
import { SimpleExchange } from "./simple-exchange.ts";
import { SimpleHeadReader } from "./simple-head.ts";
import { SimpleOutput } from "./simple-output.ts";

interface SimpleConnectionOptions {
  /** Time limit for the first request. */
  readonly headersTimeoutMs: number;
  /** Time limit between requests. */
  readonly idleTimeoutMs: number;
  readonly log: Logger;
}

interface SimpleConnectionEvents {
  request(exchange: SimpleExchange): void;
  /** The exchange is complete or aborted. */
  done(exchange: SimpleExchange): void;
  /** The client sent anything but a simple request. The callee takes over the idle socket and the bytes already read. */
  handOver(bytes: Buffer): void;
  closed(): void;
}

/** Bytes buffered while a request is being answered; above it the socket is paused. */
const mostHeldBytes = 16 * 1024;

/**
 * Serves an HTTP/1.1 connection for as long as its client sends simple requests sequentially. Node's server creates two streams
 * with a dozen events each per request; it takes over the connection at the first request that is not simple.
 */
export class SimpleConnection {
  readonly socket: TLSSocket;
  readonly output: SimpleOutput;
  readonly log: Logger;
  readonly #options: SimpleConnectionOptions;
  readonly #events: SimpleConnectionEvents;
  readonly #reader = new SimpleHeadReader();
  #exchange: SimpleExchange | undefined;
  /** Data received before the current request was answered. */
  #held: GatheredBytes | undefined;
  #isLeaving = false;
  #hasServed = false;
  /** Data was received since the last check. */
  #isBusy = true;
  #idleSince = 0;

  constructor(socket: TLSSocket, options: SimpleConnectionOptions, events: SimpleConnectionEvents) {
    this.socket = socket;
    this.output = new SimpleOutput(socket);
    this.log = options.log;
    this.#options = options;
    this.#events = events;
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
  }

  /** Number of running requests. */
  get size(): number {
    return this.#exchange === undefined ? 0 : 1;
  }

  /** Closes the connection after the current response. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#exchange === undefined) this.socket.destroySoon();
  }

  close(): void {
    this.leave();
  }

  /** Enforces the timeouts. To be called periodically. @param now `performance.now()` */
  check(now: number): void {
    if (this.#isBusy || this.#exchange !== undefined) {
      this.#isBusy = false;
      this.#idleSince = now;
      return;
    }
    const { headersTimeoutMs, idleTimeoutMs } = this.#options;
    if (now - this.#idleSince >= (this.#hasServed ? idleTimeoutMs : headersTimeoutMs)) this.socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isLeaving && this.#exchange === undefined) return; // the connection is closing
    if (this.#exchange !== undefined) {
      this.#held ??= new GatheredBytes();
      this.#held.push(chunk);
      if (this.#held.size > mostHeldBytes) this.socket.pause();
      return;
    }
    this.#isBusy = true;
    const head = this.#reader.read(chunk);
    if (head === undefined) {
      this.#handOver(chunk);
      return;
    }
    this.#hasServed = true;
    this.#exchange = new SimpleExchange(this, head, this.#onAnswered);
    this.#events.request(this.#exchange);
  };

  /** The response was written to the socket. The next request is served only then, or unread responses would pile up. */
  readonly #onAnswered = (): void => {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.#exchange = undefined;
    this.#events.done(exchange);
    if (this.socket.destroyed) return;
    if (this.#isLeaving || exchange.isLast) {
      this.#isLeaving = true;
      this.socket.destroySoon();
    } else if (this.#held !== undefined) {
      const bytes = this.#held.take();
      this.#held = undefined;
      this.socket.resume();
      this.#onData(bytes);
    }
  };

  #handOver(bytes: Buffer): void {
    this.socket.off("data", this.#onData);
    this.socket.off("end", this.#onEnd);
    this.socket.off("close", this.#onClose);
    this.#events.handOver(bytes);
  }

  /** Node ends the writable side as well, in the next event-loop turn. */
  readonly #onEnd = (): void => {
    if (this.#exchange?.isAnswered === true) this.output.flush();
    else this.#exchange?.gone();
    this.output.close();
  };

  readonly #onClose = (): void => {
    this.output.close();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    if (exchange !== undefined) {
      exchange.gone();
      this.#events.done(exchange);
    }
    this.#events.closed();
  };
}
