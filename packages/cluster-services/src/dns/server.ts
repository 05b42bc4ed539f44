import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { newClients } from "./clients.ts";
import { newForwarder } from "./forwarder.ts";
import { newLoopDetector } from "./loop-detector.ts";
import type { DnsMetrics } from "./metrics.ts";
import { newRequestHandler } from "./request-handler.ts";
import type { Upstream } from "./resolv-conf.ts";
import { newResponder } from "./responder.ts";
import { type RunningServer, startTcpServer } from "./tcp-server.ts";
import { startUdpServer } from "./udp-server.ts";
import { type ClusterView, newZone, type ZoneOptions } from "./zone.ts";

interface DnsServerOptions {
  readonly addresses: readonly string[];
  /** 0: any free port, the same for all addresses. */
  readonly port: number;
  readonly zone: ZoneOptions;
  readonly view: ClusterView & { readonly isSynced: boolean };
  readonly upstreams: () => Promise<readonly Upstream[]>;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: DnsMetrics;
  readonly signal: AbortSignal;
}

export interface DnsServer {
  readonly port: number;
  /** Whether forwarding is off because queries come back. */
  readonly isLoop: boolean;
  allow(cidrs: readonly string[]): void;
  close(): Promise<void>;
}

/** A DNS server over UDP and TCP on each address. @throws Error when an address cannot be bound */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const { addresses, view, log, clock, metrics, signal } = options;
  const clients = newClients(clock);
  const loop = newLoopDetector({ clock, log, metrics });
  const forwarder = newForwarder({ upstreams: options.upstreams, clock, metrics, signal });
  const zone = newZone(view, options.zone);
  const respond = newResponder({ zone, isReady: () => view.isSynced, forwarder, loop, log });
  const handle = newRequestHandler({ clients, respond, metrics, clock, log });
  const listen = async (): Promise<readonly RunningServer[]> => {
    const running: RunningServer[] = [];
    let { port } = options;
    try {
      for (const address of addresses) {
        const tcp = await startTcpServer({ address, port, handle, clock, log, metrics });
        running.push(tcp);
        port = tcp.port;
        running.push(await startUdpServer(address, port, handle, log));
      }
      return running;
    } catch (err) {
      await closeAll(running);
      throw new Error(`cannot listen on ${addresses.join(", ")}, port ${port}`, { cause: err });
    }
  };
  const running = await (options.port === 0 ? listenAnywhere(listen) : listen());
  void loop.run(forwarder, signal);
  return {
    port: running[0]?.port ?? 0,
    get isLoop() {
      return loop.isLoop;
    },
    allow: clients.allow,
    close: () => closeAll(running),
  };
}

const closeAll = async (servers: readonly RunningServer[]): Promise<void> =>
  void (await Promise.all(servers.map((server) => server.close())));

/** Tries again when the port that was free for TCP is in use for UDP. */
async function listenAnywhere<T>(listen: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await listen();
    } catch (err) {
      const isTaken = err instanceof Error && errorCode(err.cause) === "EADDRINUSE";
      if (!isTaken || tries >= 10) throw err;
    }
  }
}
