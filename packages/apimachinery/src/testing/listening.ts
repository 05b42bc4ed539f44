import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/**
 * Has a server listen on a free port of the loopback interface until the test ends, and its connections with it, whatever becomes of
 * them.
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
