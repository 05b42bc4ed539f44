import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import type { HttpServer } from "@coxswain/apimachinery/serving/https-server";
import type { Requests } from "./requests.ts";

/** The port that an in-process server reports. No socket listens there. */
export const nominalPort = 6443;

/** Replaces a listening socket: requests are passed as objects. */
export class InProcessListener implements HttpServer {
  readonly port = nominalPort;
  readonly address = "127.0.0.1";
  readonly connections = 0;
  active = 0;
  #handler: ExchangeHandler;
  readonly #requests: Requests;
  readonly #open = new Set<Exchange>();
  #isClosed = false;

  constructor(handler: ExchangeHandler, requests: Requests) {
    this.#handler = handler;
    this.#requests = requests;
  }

  /** True when requests are refused, as by a port without a listener. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Passes a request to the handler, subject to faults. Resolves when the handler has ended. */
  async handle(exchange: Exchange): Promise<void> {
    this.#open.add(exchange);
    this.active++;
    try {
      await this.#requests.pass(exchange, this.#handler);
    } finally {
      this.active--;
      this.#open.delete(exchange);
    }
  }

  handleWith(handler: ExchangeHandler): void {
    this.#handler = handler;
  }

  /** Refuses new requests and destroys those in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const exchange of this.#open) exchange.destroy();
    this.#open.clear();
  }

  /** Aborts the requests in progress that `matches` selects. */
  breakOff(matches: (exchange: Exchange) => boolean): number {
    const broken = [...this.#open].filter(matches);
    for (const exchange of broken) exchange.destroy();
    return broken.length;
  }

  reloadCertificates(): void {}
}
