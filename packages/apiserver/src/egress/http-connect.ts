import { request } from "node:http";
import type { Socket } from "node:net";
import type { Connection } from "@coxswain/apimachinery/client/connect";

/**
 * Asks an HTTP proxy for a connection to somebody else.
 * @param way a connection to the proxy; it becomes the one to the target, or ends
 * @param target `10.0.0.7:443`
 * @throws Error in the words of upstream
 * Source: k8s.io/apiserver pkg/server/egressselector/egress_selector.go tunnelHTTPConnect; RFC 9110 9.3.6
 */
export function askHttpConnect(
  way: Socket,
  { name: proxy }: { name: string },
  target: string,
  signal: AbortSignal,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const fail = (message: string, cause?: Error): void => {
      way.destroy();
      reject(new Error(message, { cause }));
    };
    // Go's own servers refuse a Host that is a path, as the name of a unix socket would be.
    const connect = request({ createConnection: () => way, method: "CONNECT", path: target, headers: { host: "127.0.0.1" } });
    const giveUp = (): void => void connect.destroy(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    connect.once("error", (err: NodeJS.ErrnoException) => {
      const why = err.code === "ECONNRESET" ? "unexpected EOF" : err.message;
      fail(`reading HTTP response from CONNECT to ${target} via proxy ${proxy} failed: ${why}`, err);
    });
    connect.once("connect", ({ statusCode: code, statusMessage }, _socket, head) => {
      signal.removeEventListener("abort", giveUp);
      if (code !== 200) return fail(`proxy error from ${proxy} while dialing ${target}, code ${code}: ${code} ${statusMessage}`);
      // A server that speaks first may have been heard already.
      if (head.length > 0) way.unshift(head);
      resolve(way);
    });
    connect.end();
  });
}
