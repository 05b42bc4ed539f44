import type { Transport } from "@coxswain/apimachinery/client/transport";
import { ConnectionLost } from "@coxswain/apimachinery/client/transport-errors";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import { LoopbackExchange } from "@coxswain/apiserver/loopback/exchange";
import type { InProcessListener } from "./listener.ts";

/** Sends requests to a server in this process, without a socket. */
export class InProcessTransport implements Transport {
  readonly #listener: () => InProcessListener;
  readonly #open = new Set<LoopbackExchange>();
  #isClosed = false;

  /** @param listener returns the server's listener; called for each request, because it may be replaced */
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
    exchange.onOver = forget;
    // Deferred to the next turn of the event loop, so that a sequence of requests does not starve timers and sockets.
    setImmediate(() => {
      listener.handle(exchange).catch((err: unknown) => exchange.destroy(new ConnectionLost(String(err))));
    });
    try {
      return await exchange.response;
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
