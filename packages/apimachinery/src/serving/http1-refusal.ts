import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Time for the client to read the response: closing with unread input resets the connection, which discards it. */
const lingerMs = 500;

/**
 * Answers an unparsable HTTP/1.1 request as Go's server does. After a timeout nothing is sent.
 * @param isAnswered whether a response to it was already started
 * Source: Go net/http server.go, conn.serve
 */
export function refuseUnreadable({ code }: NodeJS.ErrnoException, socket: Duplex, isAnswered: boolean): void {
  if (socket.writableEnded) return; // already answered; the client keeps sending
  if (code === "ERR_HTTP_REQUEST_TIMEOUT" || isAnswered || !socket.writable) {
    socket.destroy();
    return;
  }
  const text = code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
  socket.end(`HTTP/1.1 ${text}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${text}`);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Answers a request that no handler may see, and closes its connection as Go's server does. */
export function refuseRequest(response: ServerResponse, code: 400 | 417, text: string): void {
  const type = { "Content-Type": "text/plain; charset=utf-8" };
  response.writeHead(code, { ...type, "Content-Length": Buffer.byteLength(text), Connection: "close" });
  response.end(text);
}
