/** A hostile webhook, aggregated server or kubelet. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface BackendHandler {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade?(request: IncomingMessage, socket: Duplex): void;
}

export interface Backend {
  readonly port: number;
  close(): Promise<void>;
}

export async function startBackend(
  pair: { readonly cert: string; readonly key: string },
  handler: BackendHandler,
): Promise<Backend> {
  const server = createServer({ ...pair, keepAlive: true }, handler.request);
  const sockets = new Set<Socket>();
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  if (handler.upgrade) server.on("upgrade", handler.upgrade);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Sends bytes as fast as they are read, until the peer disconnects. */
export function pourInto(stream: Duplex | ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const pour = (): void => {
    while (!stream.destroyed && stream.write(chunk));
  };
  stream.on("drain", pour);
  stream.on("error", () => {});
  pour();
}
