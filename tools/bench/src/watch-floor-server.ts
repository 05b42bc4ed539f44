import { readFileSync } from "node:fs";
import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { createServer } from "node:tls";

/**
 * `node watch-floor-server.ts <key> <certificate> <bytes>`: node's HTTP/2 over TLS and nothing else. A GET of /watch stays
 * open; each GET of /change writes one line of so many bytes to all that are open. Prints its port when it listens.
 */
const [keyFile = "", certFile = "", bytes = "1"] = process.argv.slice(2);
const line = Buffer.alloc(Number(bytes), "x");
line[line.length - 1] = 0x0a;
const watches = new Set<ServerHttp2Stream>();

const server = createServer({ key: readFileSync(keyFile), cert: readFileSync(certFile), ALPNProtocols: ["h2"] });
server.on("secureConnection", (socket) => {
  const session = performServerHandshake(socket, { settings: { maxConcurrentStreams: 250, enablePush: false } });
  session.on("error", () => {});
  session.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200 });
    if (headers[":path"] === "/watch") {
      watches.add(stream);
      stream.once("close", () => watches.delete(stream));
      return;
    }
    stream.end();
    for (const watch of watches) watch.write(line);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
