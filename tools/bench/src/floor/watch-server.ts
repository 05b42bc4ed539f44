import { readFileSync } from "node:fs";
import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import { createServer } from "node:tls";
import { listeningPort } from "@coxswain/apimachinery/process/narrowing/listening-port";
import { newEtcdClient } from "@coxswain/apiserver/storage/etcd/client";

/**
 * `node watch-server.ts <key> <certificate> <bytes> <etcd>`: a bare HTTP/2 server of Node over TLS. GET /watch stays
 * open; each GET /change writes a line of the given size to all open ones, GET /change-stored does so after a write to etcd.
 * Prints its port when it listens.
 */
const [keyFile = "", certFile = "", bytes = "1", etcdUrl = ""] = process.argv.slice(2);
const etcd = newEtcdClient({ servers: [etcdUrl] });
/** Size of the stored pod of the watch rows. */
const stored = Buffer.alloc(5_000, "x");
const keyOf = (n: number): string => `/registry/pods/floor/${n}`;
/** Number of objects of the rows, because etcd's commit time depends on the size of its database. */
const objects = 5_000;
for (let n = 0; n < objects; n += 50) {
  await Promise.all(Array.from({ length: 50 }, (_, i) => etcd.put(keyOf(n + i), stored)));
}
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
    const report = (): void => {
      stream.end();
      for (const watch of watches) watch.write(line);
    };
    if (headers[":path"] === "/change-stored") void etcd.put(keyOf(0), stored).then(report);
    else report();
  });
});
server.listen(0, "127.0.0.1", () => console.log(listeningPort(server)));
