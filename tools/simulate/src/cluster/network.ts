import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { ConnectionLost } from "@coxswain/apimachinery/client/transport-errors";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import { requestEntityTooLarge } from "@coxswain/apimachinery/errors/status-error";
import type { Exchange, ExchangeHandler, ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import type { Observed } from "../invariants/observed.ts";
import type { SimulatedProcess, World } from "../world/world.ts";

/** What may happen to requests on their way. */
export interface ApiNetwork {
  /** One way, in ms. */
  delayMs(): number;
  /** `request`: it never arrives; `answer`: it is carried out, and nobody hears of it. */
  loses(method: string, path: string): "request" | "answer" | undefined;
  /** Told when a server has carried out a request of a process, before the answer is on its way. */
  carriedOut?(process: SimulatedProcess, method: string): void;
  /** Sees what servers send. */
  observed?: Observed | undefined;
}

/** Where requests of a process go at present; undefined: nobody is there. */
export type Backend = () => { readonly serve: ExchangeHandler; readonly process: SimulatedProcess } | undefined;

export interface SimulatedTransport extends Transport {
  /** Breaks all watches, as a connection that goes away does. */
  breakWatches(): void;
}

/** A process's connections to an API server: bytes over the virtual time line instead of a socket. */
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
      const fate = network.loses(request.method, request.path);
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
          const exchange = new SimulatedExchange(request, world, network, owner, target.process, {
            answered: (response) => {
              if (fate === "answer") return fail(new ConnectionLost("the answer was lost"));
              settle(`${response.status}`, () => {
                forget();
                resolve(response);
              });
            },
            failed: fail,
            closed: () => open.delete(exchange),
          });
          open.add(exchange);
          void target.serve(exchange);
        });
      });
    },
    reconnect() {},
    close() {},
    breakWatches() {
      for (const exchange of [...open]) exchange.break();
    },
  };
}

interface Listener {
  answered(response: TransportResponse): void;
  failed(err: Error): void;
  closed(): void;
}

class SimulatedExchange implements Exchange {
  onUnread: Exchange["onUnread"];
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[] = [];
  readonly httpVersion = "2.0";
  readonly remoteAddress = "127.0.0.1";
  readonly tls = undefined;
  readonly upgrade = undefined;
  readonly signal: AbortSignal;
  status = 0;
  bytesWritten = 0;
  readonly #body: Buffer;
  readonly #abort = new AbortController();
  readonly #headers: IncomingHttpHeaders = {};
  readonly #world: World;
  readonly #network: ApiNetwork;
  readonly #client: SimulatedProcess;
  readonly #server: SimulatedProcess;
  readonly #listener: Listener;
  #stream: Readable | undefined;
  /** When the last part of a stream arrives: parts do not overtake each other. */
  #last = 0;

  constructor(
    request: TransportRequest,
    world: World,
    network: ApiNetwork,
    client: SimulatedProcess,
    server: SimulatedProcess,
    listener: Listener,
  ) {
    this.#world = world;
    this.#network = network;
    this.#client = client;
    this.#server = server;
    this.#listener = listener;
    this.method = request.method;
    this.url = request.path;
    this.headers = { host: "simulated", ...(request.headers as IncomingHttpHeaders) };
    this.#body = Buffer.isBuffer(request.body) ? request.body : Buffer.from(request.body ?? "");
    this.signal = request.signal === undefined ? this.#abort.signal : AbortSignal.any([request.signal, this.#abort.signal]);
    this.signal.addEventListener("abort", () => this.#end(this.signal.reason), { once: true });
  }

  get isGone(): boolean {
    return this.signal.aborted;
  }

  get headersSent(): boolean {
    return this.status !== 0;
  }

  async body(limitBytes: number): Promise<Buffer> {
    if (this.#body.length > limitBytes) throw requestEntityTooLarge(`limit is ${limitBytes}`);
    return this.#body;
  }

  bodyStream(): NodeJS.ReadableStream {
    return Readable.from([this.#body]);
  }

  setHeader(name: string, value: string | string[]): void {
    this.#headers[name.toLowerCase()] = value;
  }

  appendHeader(name: string, value: string): void {
    const before = this.#headers[name.toLowerCase()];
    this.#headers[name.toLowerCase()] = before === undefined ? value : `${before}, ${value}`;
  }

  respond(status: number, headers: OutgoingHttpHeaders, body: Buffer | string = ""): void {
    if (this.headersSent || !this.#server.alive) return;
    this.status = status;
    const bytes = Buffer.from(body);
    this.bytesWritten = bytes.length;
    const readable = new Readable({ read() {} });
    if (bytes.length > 0) readable.push(bytes);
    readable.push(null);
    this.#listener.closed();
    this.#network.observed?.answered(this.method, this.url, status, bytes);
    if (status < 300) this.#network.carriedOut?.(this.#client, this.method);
    this.#listener.answered({ status, headers: this.#merged(headers), body: readable });
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    this.status = status;
    const body = new Readable({ read() {} });
    this.#stream = body;
    body.once("close", () => this.#abort.abort(new Error("the reader went away")));
    body.on("error", () => {});
    this.#listener.answered({ status, headers: this.#merged(headers), body });
    const observed = this.url.includes("watch=true") ? this.#network.observed?.watching(this.url) : undefined;
    const send = (chunk: Buffer | string | null): void => {
      if (!this.#server.alive) return;
      if (chunk !== null) observed?.(chunk);
      this.#last = Math.max(this.#world.now() + this.#network.delayMs(), this.#last + 1);
      this.#world.after(this.#last - this.#world.now(), `${this.#client.name}: hears ${this.url.split("?")[0]}`, () => {
        if (this.#client.alive && !body.destroyed) body.push(chunk === null ? null : Buffer.from(chunk));
      });
    };
    return {
      write: (chunk) => {
        this.bytesWritten += chunk.length;
        send(chunk);
        return true;
      },
      drained: () => Promise.resolve(),
      end: (chunk) => {
        if (chunk !== undefined) send(chunk);
        send(null);
        this.#listener.closed();
      },
    };
  }

  destroy(): void {
    this.#abort.abort(new ConnectionLost("the request was broken off"));
  }

  /** The connection goes away under a watch; other requests are left alone. */
  break(): void {
    if (this.#stream !== undefined) this.destroy();
  }

  goAway(): void {}

  #merged(headers: OutgoingHttpHeaders): IncomingHttpHeaders {
    const merged: IncomingHttpHeaders = { ...this.#headers };
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) merged[name.toLowerCase()] = typeof value === "number" ? String(value) : value;
    }
    return merged;
  }

  #end(reason: Error): void {
    this.#listener.closed();
    if (this.#stream === undefined) this.#listener.failed(reason);
    else this.#stream.destroy(reason);
  }
}
