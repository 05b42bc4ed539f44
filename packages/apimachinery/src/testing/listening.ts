import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/**
 * Starts a server on a free port of 127.0.0.1. At the end of the test the server and its open connections are closed;
 * errors of connections are ignored.
 * @returns the port
 */
export async function listening(t: { after(fn: () => void): void }, server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => open.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
