/** A process in place of an API server: HTTP/2 over TLS. SIGUSR1: unready from now on; SIGUSR2: it ends as an API server does. */
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";

const [, , cert = "", key = "", host = ""] = process.argv;
let isReady = true;
const sessions = new Set<ServerHttp2Session>();
const server = createSecureServer({ cert, key }, (request, response) => {
  if (request.url === "/slow") return void setTimeout(() => response.end(host), 1_000);
  response.statusCode = request.url === "/readyz" && !isReady ? 500 : 200;
  response.end(host);
});
server.on("session", (session) => {
  sessions.add(session);
  session.on("close", () => sessions.delete(session));
});
process.on("SIGUSR1", () => (isReady = false));
process.on("SIGUSR2", () => {
  server.close();
  for (const session of sessions) session.close();
});
server.listen(0, host, () => console.log((server.address() as AddressInfo).port));
