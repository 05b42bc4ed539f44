import type { TLSSocket } from "node:tls";
import { GatheredBytes } from "../http2/gathered-bytes.ts";
import type { Logger } from "../logging/logger.ts";
import { SimpleExchange } from "./simple-exchange.ts";
import { SimpleHeadReader } from "./simple-head.ts";
import { SimpleOutput } from "./simple-output.ts";

export interface SimpleConnectionOptions {
  /** For the first request to come. */
  readonly headersTimeoutMs: number;
  /** For each other one. */
  readonly idleTimeoutMs: number;
  readonly log: Logger;
}

export interface SimpleConnectionEvents {
  request(exchange: SimpleExchange): void;
  /** The exchange has come to its end, one way or another. */
  done(exchange: SimpleExchange): void;
  /** The client sent anything else. From now on the socket is that of the callee, and nothing is under way on it. */
  handOver(bytes: Buffer): void;
  closed(): void;
}

/** What may come while a request is answered; beyond it nothing more is read. */
const mostHeldBytes = 16 * 1024;

/**
 * A connection over HTTP/1.1 as long as its client sends simple requests, one after the other. Node's own makes two streams with a
 * dozen events of each; it gets the connection with the first request that is not simple, and keeps it.
 */
export class SimpleConnection {
  readonly socket: TLSSocket;
  readonly output: SimpleOutput;
  readonly log: Logger;
  readonly #options: SimpleConnectionOptions;
  readonly #events: SimpleConnectionEvents;
  readonly #reader = new SimpleHeadReader();
  #exchange: SimpleExchange | undefined;
  /** Came before its turn. */
  #held: GatheredBytes | undefined;
  #isLeaving = false;
  #hasServed = false;
  /** Something came since the last check. */
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

  /** Requests that are under way. */
  get size(): number {
    return this.#exchange === undefined ? 0 : 1;
  }

  /** The answer that is under way is the last one. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#exchange === undefined) this.socket.destroySoon();
  }

  close(): void {
    this.leave();
  }

  /** Ends it when the client has exceeded its times. To be called now and then. */
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
    if (this.#isLeaving && this.#exchange === undefined) return; // the end is on its way
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

  /** The client has taken the answer; before that it gets no other, or answers that it does not read would pile up. */
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

  /** Node ends our side too, in the next turn. */
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
