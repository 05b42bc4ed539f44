import type { Socket } from "node:net";
import { request } from "../transport/node-http.ts";

/**
 * Requests a tunnel from an HTTP proxy.
 * @param connection a connection to the proxy; after a 200 it is connected to the target
 * @param target `10.0.0.7:443`
 * @returns the status of the proxy's response
 * @throws Error of the connection, which is destroyed then; the signal's reason
 * Source: RFC 9110 9.3.6
 */
export function requestTunnel(
  connection: Socket,
  target: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ code: number; message: string }> {
  return new Promise((resolve, reject) => {
    const connect = request({ createConnection: () => connection, method: "CONNECT", path: target, headers });
    const giveUp = (): void => void connect.destroy(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    connect.once("error", (err) => {
      connection.destroy();
      reject(err);
    });
    connect.once("connect", ({ statusCode: code = 0, statusMessage: message = "" }, _socket, head) => {
      signal.removeEventListener("abort", giveUp);
      // The target may have sent data already.
      if (head.length > 0) connection.unshift(head);
      resolve({ code, message });
    });
    connect.end();
  });
}
