import type { ClientHttp2Session } from "node:http2";

export interface Unread {
  readonly code: number;
  /** Length of the body. */
  readonly bytes: number;
}

/** Sends a request and discards the response's body, whose parsing in the thread under test would be measured, too. */
export function sendUnread(
  session: ClientHttp2Session,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: Buffer,
): Promise<Unread> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": method, ":path": path, ...headers });
    let code = 0;
    let bytes = 0;
    stream.on("response", (received) => {
      code = Number(received[":status"]);
    });
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    stream.on("end", () => resolve({ code, bytes }));
    stream.on("error", reject);
    stream.end(body);
  });
}
