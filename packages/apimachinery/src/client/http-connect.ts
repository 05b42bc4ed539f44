import { request } from "node:http";
import type { Socket } from "node:net";

/**
 * Asks an HTTP proxy for a connection to somebody else.
 * @param way a connection to the proxy; with an answer of 200 it is the one to the target from here on
 * @param target `10.0.0.7:443`
 * @returns what the proxy answered
 * @throws Error of the way, which is destroyed then; the signal's reason
 * Source: RFC 9110 9.3.6
 */
export function requestTunnel(
  way: Socket,
  target: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ code: number; message: string }> {
  return new Promise((resolve, reject) => {
    const connect = request({ createConnection: () => way, method: "CONNECT", path: target, headers });
    const giveUp = (): void => void connect.destroy(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    connect.once("error", (err) => {
      way.destroy();
      reject(err);
    });
    connect.once("connect", ({ statusCode: code = 0, statusMessage: message = "" }, _socket, head) => {
      signal.removeEventListener("abort", giveUp);
      // A server that speaks first may have been heard already.
      if (head.length > 0) way.unshift(head);
      resolve({ code, message });
    });
    connect.end();
  });
}
