import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { listeningPort } from "@coxswain/apimachinery/process/narrowing/listening-port";
import { inOrder, isToLeave, type KnownServer } from "./choose.ts";
import type { ApiProxyMetrics } from "./metrics.ts";
import { Probe } from "./probe.ts";

const tickMs = 200;
/** How long a server may take to accept a connection before the next one is tried. */
const connectMs = 1_000;
/** More than the programs of a node need; the limit also stops a proxy that connects to itself in a loop. */
const mostConnections = 1_000;

interface ApiProxyOptions {
  readonly port: number;
  /** The servers of the last run, or those that the machine was given when it joined. */
  readonly servers: readonly string[];
  /** CA for the probes' connections. Users of the proxy verify the server themselves. */
  readonly tls: (host: string) => Promise<ConnectionOptions>;
  /** Order of servers in the same state; random, so that nodes choose different ones. */
  readonly shuffle: (servers: readonly string[]) => string[];
  readonly metrics: ApiProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Passes connections to 127.0.0.1 on to an API server that works, and closes those to one that does not. */
export class ApiProxy {
  readonly #options: ApiProxyOptions;
  readonly #server: Server;
  readonly #probes = new Map<string, Probe>();
  /** By server; also of servers that are not in the list any more. */
  readonly #connections = new Map<string, Set<Socket>>();
  #servers: readonly string[];
  #current: string | undefined;
  #ticks: Timer | undefined;

  constructor(options: ApiProxyOptions) {
    this.#options = options;
    this.#servers = options.shuffle(options.servers);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    this.#server.maxConnections = mostConnections;
  }

  /** @returns the port @throws Error when it is taken */
  async start(): Promise<number> {
    this.#server.listen(this.#options.port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#adjustProbes();
    this.#ticks = this.#options.clock.every(tickMs, () => this.#tick());
    return listeningPort(this.#server);
  }

  get servers(): readonly string[] {
    return this.#servers;
  }

  /** @param servers at least one */
  setServers(servers: readonly string[]): void {
    const kept = this.#servers.filter((address) => servers.includes(address));
    this.#servers = [...kept, ...this.#options.shuffle(servers.filter((address) => !kept.includes(address)))];
    this.#adjustProbes();
  }

  /** @throws Error when no server works */
  check(): void {
    const states = this.states();
    if (states.some(({ state }) => state === "ready" || state === "unknown")) return;
    const reasons = states.map(({ address }) => `${address}: ${this.#probes.get(address)?.reason}`);
    throw new Error(`no API server is available: ${reasons.join("; ")}`);
  }

  close(): void {
    this.#ticks?.cancel();
    this.#server.close();
    for (const probe of this.#probes.values()) probe.close();
    for (const sockets of this.#connections.values()) for (const socket of sockets) socket.destroy();
  }

  /** Of the servers in the list. */
  states(): KnownServer[] {
    return this.#servers.map((address) => ({ address, state: this.#probes.get(address)?.state ?? "unknown" }));
  }

  #tick(): void {
    this.#adjustProbes();
    for (const probe of this.#probes.values()) probe.tick();
  }

  /** A server that has left the list, as on its shutdown, completes its requests: it is probed as long as it has connections. */
  #adjustProbes(): void {
    const wanted = new Set([...this.#servers, ...[...this.#connections.keys()]]);
    for (const [address, probe] of this.#probes) {
      if (wanted.has(address)) continue;
      probe.close();
      this.#probes.delete(address);
    }
    for (const address of wanted) {
      if (this.#probes.has(address)) continue;
      const { host, port } = partsOf(address);
      const probe = new Probe({ address, host, port, tls: () => this.#options.tls(host), changed: () => this.#changed(address) });
      this.#probes.set(address, probe);
    }
  }

  #changed(address: string): void {
    const probe = this.#probes.get(address);
    if (probe?.state === "dead" || probe?.state === "unready") {
      this.#options.log.error("an API server is unavailable", new Error(probe.reason), { server: address });
    }
    this.#options.metrics.setReady(this.states().filter(({ state }) => state === "ready").length);
    const listed = this.states();
    for (const [left, { state }] of this.#probes) {
      if (!isToLeave(state, listed)) continue;
      for (const socket of this.#connections.get(left) ?? []) socket.destroy();
    }
  }

  #accept(client: Socket): void {
    client.on("error", () => {}); // closed by its other side
    this.#tryNext(client, inOrder(this.states(), this.#current));
  }

  #tryNext(client: Socket, [address, ...others]: readonly string[]): void {
    if (address === undefined || client.destroyed) {
      if (address === undefined) this.#options.metrics.refused();
      client.destroy();
      return;
    }
    const socket = connect({ ...partsOf(address), noDelay: true, allowHalfOpen: true });
    const deadline = this.#options.clock.after(connectMs, () => socket.destroy());
    const failed = (): void => {
      deadline.cancel();
      this.#tryNext(client, others);
    };
    socket.on("error", () => {}); // "close" follows
    socket.once("close", failed);
    socket.once("connect", () => {
      deadline.cancel();
      socket.off("close", failed);
      this.#join(client, socket, address);
    });
  }

  #join(client: Socket, socket: Socket, address: string): void {
    const { metrics, log } = this.#options;
    if (this.#current !== address) {
      log.info("using an API server", { server: address });
      if (this.#current !== undefined) metrics.switched();
      this.#current = address;
    }
    metrics.connected(address);
    const open = this.#connections.get(address) ?? new Set();
    this.#connections.set(address, open.add(socket));
    socket.once("close", () => {
      open.delete(socket);
      if (open.size === 0 && this.#connections.get(address) === open) this.#connections.delete(address);
      client.destroy();
    });
    client.once("close", () => socket.destroy());
    if (client.destroyed) socket.destroy();
    client.pipe(socket);
    socket.pipe(client);
  }
}

const partsOf = (address: string): { host: string; port: number } => {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
};
