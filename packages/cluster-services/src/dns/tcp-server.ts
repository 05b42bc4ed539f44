import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { listeningPort } from "@coxswain/apimachinery/process/narrowing/listening-port";
import type { DnsMetrics } from "./metrics.ts";
import type { RequestHandler } from "./request-handler.ts";
import { newFrameReader, withLength } from "./stream-frames.ts";

export interface RunningServer {
  readonly port: number;
  close(): Promise<void>;
}

interface TcpServerOptions {
  readonly address: string;
  readonly port: number;
  readonly handle: RequestHandler;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: DnsMetrics;
}

const mostConnections = 1_000;
const mostPerClient = 50;
/** Size limit of a query; usual ones are below 400 bytes. */
const mostQueryBytes = 4_096;
/** Limit of unanswered queries for each connection. */
const mostOpenQueries = 32;
/** A connection is closed after this time without a complete query and without reading a response. Source: RFC 7766, section 6.2.3 */
const idleMs = 10_000;
/** Limit of responses that a client has not read, for each connection. */
const mostUnreadBytes = 256 * 1024;

/** Serves DNS over TCP. @throws Error when the address cannot be bound */
export async function startTcpServer({ address, port, handle, clock, log, metrics }: TcpServerOptions): Promise<RunningServer> {
  const perClient = new Map<string, number>();
  const sockets = new Set<Socket>();
  const serve = (socket: Socket, client: string): void => {
    let open = 0;
    let idle = clock.after(idleMs, () => socket.destroy());
    const active = (): void => {
      idle.cancel();
      idle = clock.after(idleMs, () => socket.destroy());
    };
    const respond = (response: Buffer | undefined): void => {
      if (response === undefined) return void socket.destroy();
      if (socket.destroyed) return;
      socket.write(withLength(response));
      if (socket.writableLength > mostUnreadBytes) socket.destroy();
    };
    const read = newFrameReader(mostQueryBytes, (message) => {
      active();
      if (open >= mostOpenQueries || socket.destroyed) return void socket.destroy();
      const response = handle(message, client, "tcp");
      if (!(response instanceof Promise)) return respond(response);
      open++;
      void response.then((late) => {
        open--;
        respond(late);
      });
    });
    socket.on("data", (bytes: Buffer) => {
      if (read(bytes)) return;
      metrics.dropped("size");
      socket.destroy();
    });
    socket.on("error", () => {}); // "close" follows
    socket.once("close", () => {
      idle.cancel();
      sockets.delete(socket);
      const left = (perClient.get(client) ?? 1) - 1;
      if (left > 0) perClient.set(client, left);
      else perClient.delete(client);
    });
  };
  const server = createServer((socket) => {
    const client = socket.remoteAddress ?? "";
    const own = perClient.get(client) ?? 0;
    if (sockets.size >= mostConnections || own >= mostPerClient || client === "") {
      metrics.dropped("connections");
      return void socket.on("error", () => {}).destroy();
    }
    perClient.set(client, own + 1);
    sockets.add(socket);
    serve(socket, client);
  });
  server.listen({ host: address, port, ipv6Only: true });
  await once(server, "listening");
  server.on("error", (err) => log.error("DNS over TCP", err));
  return {
    port: listeningPort(server),
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
