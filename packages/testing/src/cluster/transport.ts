import type { Transport } from "@coxswain/apimachinery/client/transport";
import { ConnectionLost } from "@coxswain/apimachinery/client/transport-errors";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import { LoopbackExchange } from "@coxswain/apiserver/loopback/exchange";
import type { InProcessListener } from "./listener.ts";

/** Requests to a server of this process, without a socket. */
export class InProcessTransport implements Transport {
  readonly #listener: () => InProcessListener;
  readonly #open = new Set<LoopbackExchange>();
  #isClosed = false;

  /** @param listener of the server; called for each request, since another one may take its place */
  constructor(listener: () => InProcessListener) {
    this.#listener = listener;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    request.signal?.throwIfAborted();
    const listener = this.#listener();
    if (this.#isClosed || listener.isClosed) {
      throw Object.assign(new Error("connect ECONNREFUSED: the cluster is stopped"), { code: "ECONNREFUSED" });
    }
    const exchange = new LoopbackExchange(request);
    this.#open.add(exchange);
    const forget = (): void => void this.#open.delete(exchange);
    exchange.signal.addEventListener("abort", forget, { once: true });
    // A turn of the event loop: requests that follow each other must not keep timers and sockets waiting.
    setImmediate(() => {
      listener.handle(exchange).catch((err: unknown) => exchange.destroy(new ConnectionLost(String(err))));
    });
    try {
      const response = await exchange.response;
      response.body.once("close", forget);
      // Only readers of the stream need the error.
      response.body.on("error", () => {});
      return response;
    } catch (err) {
      forget();
      request.signal?.throwIfAborted();
      throw err instanceof ConnectionLost ? err : new ConnectionLost("the connection was lost", { cause: err });
    }
  }

  reconnect(): void {}

  close(): void {
    this.#isClosed = true;
    for (const exchange of this.#open) exchange.destroy(new ConnectionLost("the connection was closed"));
    this.#open.clear();
  }
}
