import type { Socket } from "node:net";
import { requestTunnel } from "@coxswain/apimachinery/client/http-connect";
import type { Connection } from "@coxswain/apimachinery/transport/connect";

/**
 * Requests a connection through an HTTP CONNECT proxy.
 * @param connection connection to the proxy; it becomes the connection to the target, or is closed on failure
 * @param target `10.0.0.7:443`
 * @throws Error with upstream's text
 * Source: k8s.io/apiserver pkg/server/egressselector/egress_selector.go tunnelHTTPConnect
 */
export async function connectThroughHttpProxy(
  connection: Socket,
  { name: proxy }: { name: string },
  target: string,
  signal: AbortSignal,
): Promise<Connection> {
  // A fixed Host header: Go servers reject a path, which the name of a unix socket would be.
  const { code, message } = await requestTunnel(connection, target, { host: "127.0.0.1" }, signal).catch(
    (err: NodeJS.ErrnoException) => {
      const why = err.code === "ECONNRESET" ? "unexpected EOF" : err.message;
      throw new Error(`reading HTTP response from CONNECT to ${target} via proxy ${proxy} failed: ${why}`, { cause: err });
    },
  );
  if (code === 200) return connection;
  connection.destroy();
  throw new Error(`proxy error from ${proxy} while dialing ${target}, code ${code}: ${code} ${message}`);
}
