import type { Duplex } from "node:stream";

/** So long the client may read what it is told: closed with bytes that nobody read, the connection would take that with it. */
const lingerMs = 500;

/**
 * What Go's server says of a request over HTTP/1.1 that cannot be read; of one that does not come in time it says nothing.
 * @param isAnswered an answer to it is under way already
 * Source: Go net/http server.go, conn.serve
 */
export function refuseUnreadable({ code }: NodeJS.ErrnoException, socket: Duplex, isAnswered: boolean): void {
  if (socket.writableEnded) return; // it has been told, and sends on
  if (code === "ERR_HTTP_REQUEST_TIMEOUT" || isAnswered || !socket.writable) {
    socket.destroy();
    return;
  }
  const text = code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
  socket.end(`HTTP/1.1 ${text}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${text}`);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
