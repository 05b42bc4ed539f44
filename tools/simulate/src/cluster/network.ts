import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { ConnectionLost } from "@coxswain/apimachinery/client/transport-errors";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import type { ExchangeHandler, ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import { LoopbackExchange } from "@coxswain/apiserver/loopback/exchange";
import type { SimulatedProcess } from "@coxswain/testing/time/time-line";
import type { Observed } from "../invariants/observed.ts";
import type { World } from "../world/world.ts";

/** Faults and delays of requests to API servers. */
export interface ApiNetwork {
  /** Delay in one direction, in ms. */
  delayMs(): number;
  /** `request`: the request is lost; `answer`: the request is executed but its response is lost. */
  loses(process: SimulatedProcess, method: string, path: string): "request" | "answer" | undefined;
  /** Called when a server has executed a request of a process, before the response is sent. */
  carriedOut?(process: SimulatedProcess, method: string): void;
  /** Responses of a server that is not simulated, such as the metrics API. */
  answers?(path: string): object | undefined;
  /** false: events are acknowledged and dropped before they reach the server. */
  readonly storesEvents?: boolean;
  /** Observes everything that servers send. */
  observed?: Observed | undefined;
}

/** The server that a process's requests currently reach; undefined: none. */
export type Backend = () => { readonly serve: ExchangeHandler; readonly process: SimulatedProcess } | undefined;

export interface SimulatedTransport extends Transport {
  /** Breaks all watches, as when a connection is closed. */
  breakWatches(): void;
}

/** A process's connections to an API server, simulated on the virtual time line instead of a socket. */
export function newSimulatedTransport(
  world: World,
  owner: SimulatedProcess,
  backend: Backend,
  network: ApiNetwork,
): SimulatedTransport {
  const open = new Set<SimulatedExchange>();
  return {
    request(request) {
      request.signal?.throwIfAborted();
      if (network.storesEvents === false && request.method !== "GET" && eventPath.test(request.path)) return accepted(request);
      const made = network.answers?.(request.path);
      if (made !== undefined) return accepted({ ...request, body: JSON.stringify(made) });
      const fate = network.loses(owner, request.method, request.path);
      const what = `${request.method} ${request.path}`;
      return new Promise((resolve, reject) => {
        let over = false;
        const settle = (label: string, act: () => void): void => {
          if (over) return;
          over = true;
          world.after(network.delayMs(), `${owner.name}: ${label} ${what}`, () => {
            if (owner.alive) act();
          });
        };
        const onAbort = (): void => {
          over = true;
          reject(request.signal?.reason);
        };
        request.signal?.addEventListener("abort", onAbort, { once: true });
        const forget = (): void => request.signal?.removeEventListener("abort", onAbort);
        const fail = (err: Error): void =>
          settle("loses", () => {
            forget();
            reject(err);
          });
        world.after(network.delayMs(), `${owner.name}: ${what}`, () => {
          const target = backend();
          if (target === undefined || !target.process.alive) {
            return fail(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
          }
          if (fate === "request") return fail(new ConnectionLost("the request was lost"));
          const exchange = new SimulatedExchange(request, world, network, owner, target.process, () => open.delete(exchange));
          exchange.response.then((response) => {
            if (fate === "answer") return fail(new ConnectionLost("the answer was lost"));
            settle(`${response.status}`, () => {
              forget();
              resolve(response);
            });
          }, fail);
          open.add(exchange);
          void target.serve(exchange);
        });
      });
    },
    reconnect() {},
    close() {
      for (const exchange of [...open]) exchange.destroy();
    },
    breakWatches() {
      for (const exchange of [...open]) exchange.break();
    },
  };
}

const eventPath = /\/namespaces\/[^/]+\/events(?:\/|$|\?)/;

/** The response as if the event had been stored. */
async function accepted({ method, body = "" }: TransportRequest): Promise<TransportResponse> {
  const headers = { "content-type": "application/json" };
  return { status: method === "POST" ? 201 : 200, headers, body: Readable.from([Buffer.from(body)]) };
}

/** A request to a simulated server; the chunks of a streamed response travel over the virtual time line, in order. */
class SimulatedExchange extends LoopbackExchange {
  readonly #world: World;
  readonly #network: ApiNetwork;
  readonly #client: SimulatedProcess;
  readonly #server: SimulatedProcess;
  /** Called when no more chunks will follow. */
  readonly #closed: () => void;
  readonly #sent: string;
  #isStream = false;
  /** Time at which the last chunk of a stream arrives, so that chunks do not overtake each other. */
  #last = 0;

  constructor(
    request: TransportRequest,
    world: World,
    network: ApiNetwork,
    client: SimulatedProcess,
    server: SimulatedProcess,
    closed: () => void,
  ) {
    super(request);
    this.#sent = String(request.body ?? "");
    this.#world = world;
    this.#network = network;
    this.#client = client;
    this.#server = server;
    const forget = server.onCrash(() => this.destroy(new ConnectionLost("the server has crashed")));
    this.#closed = () => {
      forget();
      closed();
    };
    this.onOver = () => this.#closed();
  }

  override respond(status: number, headers: OutgoingHttpHeaders, body: Buffer | string = ""): void {
    if (this.headersSent || !this.#server.alive) return;
    this.#closed();
    this.#network.observed?.answered(this.method, this.url, status, this.#sent, body);
    if (status < 300) this.#network.carriedOut?.(this.#client, this.method);
    super.respond(status, headers, body);
  }

  override stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    this.#isStream = true;
    const inner = super.stream(status, headers);
    const observed = this.url.includes("watch=true") ? this.#network.observed?.watching(this.url) : undefined;
    const later = (act: () => void): void => {
      if (!this.#server.alive) return;
      this.#last = Math.max(this.#world.now() + this.#network.delayMs(), this.#last + 1);
      this.#world.after(this.#last - this.#world.now(), `${this.#client.name}: hears ${this.url.split("?")[0]}`, () => {
        if (this.#client.alive) act();
      });
    };
    const send = (chunk: Buffer | string): void => {
      if (this.#server.alive) observed?.(chunk);
      const copy = Buffer.from(chunk);
      later(() => inner.write(copy));
    };
    return {
      write(chunk) {
        send(chunk);
        return true;
      },
      drained: () => Promise.resolve(),
      end: (chunk) => {
        if (chunk !== undefined) send(chunk);
        later(() => inner.end());
        this.#closed();
      },
    };
  }

  /** Closes the connection of a watch; does nothing for other requests. */
  break(): void {
    if (this.#isStream) this.destroy(new ConnectionLost("the watch was broken"));
  }
}
