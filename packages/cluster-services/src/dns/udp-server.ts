import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { RequestHandler } from "./request-handler.ts";
import type { RunningServer } from "./tcp-server.ts";

/** Receive buffer for queries that arrive while the event loop is busy; the kernel may grant less. */
const receiveBufferBytes = 4 * 1024 * 1024;

/** Answers go to addresses. Node's own lookup waits for the next tick also where the host is one. */
const lookup = (host: string, _: unknown, found: (err: null, address: string, family: number) => void): void =>
  found(null, host, isIPv6(host) ? 6 : 4);

/** @throws Error when the address cannot be bound */
export async function startUdpServer(address: string, port: number, handle: RequestHandler, log: Logger): Promise<RunningServer> {
  const isV6 = isIPv6(address);
  const socket = createSocket({ type: isV6 ? "udp6" : "udp4", ipv6Only: isV6, recvBufferSize: receiveBufferBytes, lookup });
  // Without a callback, which would cost a tick for each answer: that a client is gone is not noticed.
  socket.on("message", (message: Buffer, from: RemoteInfo) => {
    const response = handle(message, from.address, "udp");
    if (response instanceof Promise) {
      void response.then((late) => {
        if (late !== undefined && !isClosed) socket.send(late, from.port, from.address);
      });
    } else if (response !== undefined) socket.send(response, from.port, from.address);
  });
  let isClosed = false;
  const bound = once(socket, "listening");
  socket.bind({ address, port, exclusive: true });
  await bound;
  socket.on("error", (err) => log.error("DNS over UDP", err));
  return {
    port: socket.address().port,
    async close() {
      if (isClosed) return;
      isClosed = true;
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
}
