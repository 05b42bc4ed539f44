import { once } from "node:events";
import type { IncomingMessage, Server as PlainServer, ServerOptions } from "node:http";
import { createSecureServer, type Http2SecureServer, type Settings } from "node:http2";
import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import { listeningPort } from "@coxswain/apimachinery/process/narrowing/listening-port";
import { createServer } from "@coxswain/apimachinery/transport/node-http";
import { ClientLimits } from "./client-limits.ts";
import { addressOf, type ProxyOptions, type Request, type Response, ReverseProxy } from "./proxy.ts";
import { asksForWebSocket, upgrade } from "./upgrade.ts";

interface IngressServerOptions extends ProxyOptions {
  /** undefined: all addresses of the machine. */
  readonly address?: string;
  /** 0: any free port. */
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Certificate for the host that a client's hello names; undefined: the default one. */
  readonly contextOf: (name: string) => SecureContext | undefined;
  /** In PEM, for hosts that have none, and for clients that name no host. */
  readonly defaultCertificate: { readonly certPem: string; readonly keyPem: string };
  readonly connectionsPerClient: number;
}

export interface IngressServer {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Lets requests end for `graceMs`. */
  close(graceMs: number): Promise<void>;
}

const mostConnections = 20_000;
/** Of a request; 431 beyond. */
const mostHeaderBytes = 32 << 10;
const headersTimeoutMs = 15_000;
const keepAliveMs = 75_000;
const mostStreams = 128;
/**
 * Bytes of one stream's body, and of a connection's bodies together, that a client may send before the backend has taken them. With the
 * 64 KiB of the protocol's default, a client that is 100 ms away uploads no more than 640 kB/s.
 */
const streamWindow = 1 << 20;
const connectionWindow = 4 << 20;

/** Of HTTP/1.1, on both ports. Node's parser is strict: it refuses conflicting lengths, which would smuggle requests. */
const http1: ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean } = {
  insecureHTTPParser: false,
  requireHostHeader: true,
  maxHeaderSize: mostHeaderBytes,
  headersTimeout: headersTimeoutMs,
  // A body may take any time, as long as data keeps arriving.
  requestTimeout: 0,
  keepAliveTimeout: keepAliveMs,
  shouldUpgradeCallback: asksForWebSocket,
};

const http2: Settings = {
  initialWindowSize: streamWindow,
  maxConcurrentStreams: mostStreams,
  maxHeaderListSize: mostHeaderBytes,
  enableConnectProtocol: false,
};

/** Serves HTTP and HTTPS. @throws Error when a port cannot be had */
export async function startIngressServer(options: IngressServerOptions): Promise<IngressServer> {
  const { address, httpPort, httpsPort, contextOf, connectionsPerClient, idleTimeoutMs, metrics } = options;
  const proxy = new ReverseProxy(options);
  const limits = new ClientLimits({ perClient: connectionsPerClient, together: mostConnections });
  const sockets = new Set<Socket>();
  const answer = (request: Request, response: Response): void => {
    response.once("close", () => {
      if (!plain.listening) closeIdle(plain, secure);
    });
    void proxy.answer(request, response);
  };
  const plain = createServer(http1, answer);
  const secure = createSecureServer({
    allowHTTP1: true,
    ...http1,
    // A copy for the fallback, whose options are other than those of HTTP/2.
    http1Options: http1,
    minVersion: "TLSv1.2",
    handshakeTimeout: headersTimeoutMs,
    cert: options.defaultCertificate.certPem,
    key: options.defaultCertificate.keyPem,
    SNICallback: (name, done) => done(null, contextOf(name)),
    settings: http2,
    maxSessionMemory: 10,
  });
  // The fallback has its limits as properties.
  Object.assign(secure, { headersTimeout: headersTimeoutMs, requestTimeout: 0, keepAliveTimeout: keepAliveMs });
  secure.on("session", (session) => session.setLocalWindowSize(connectionWindow));
  secure.on("request", answer);
  for (const server of [plain, secure]) {
    server.setTimeout(idleTimeoutMs);
    server.on("connection", (socket: Socket) => {
      const client = addressOf(socket.remoteAddress);
      if (!limits.enter(client)) {
        metrics.refused.labels("connections").inc();
        socket.destroy();
        return;
      }
      sockets.add(socket);
      metrics.connections.inc();
      socket.once("close", () => {
        limits.left(client);
        sockets.delete(socket);
        metrics.connections.dec();
      });
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      upgrade({ ...options, destinationOf: (requested) => proxy.destinationOf(requested) }, request, socket, head),
    );
    server.on("clientError", (err: NodeJS.ErrnoException, socket: Duplex) => {
      metrics.refused.labels("malformed").inc();
      if (!socket.writable) return void socket.destroy();
      socket.end(`HTTP/1.1 ${refusals[err.code ?? ""] ?? "400 Bad Request"}\r\nConnection: close\r\n\r\n`, () =>
        socket.destroy(),
      );
    });
    server.on("tlsClientError", () => metrics.refused.labels("tls").inc());
    server.on("sessionError", () => metrics.refused.labels("malformed").inc());
  }
  const close = (graceMs: number): Promise<void> => end([plain, secure], sockets, graceMs).then(() => proxy.close());
  try {
    await listen(plain, httpPort, address);
    await listen(secure, httpsPort, address);
  } catch (err) {
    await close(0);
    throw err;
  }
  return {
    httpPort: listeningPort(plain),
    httpsPort: listeningPort(secure),
    close,
  };
}

/** Node closes connections that are idle when a server ends, and keeps those whose last request ends later. */
function closeIdle(plain: PlainServer, secure: Http2SecureServer): void {
  plain.closeIdleConnections();
  (secure as Http2SecureServer & Pick<PlainServer, "closeIdleConnections">).closeIdleConnections(); // cast: Node's types do not say that it has this
}

/** Lets requests end for `graceMs`, then cuts their connections off. */
async function end(servers: readonly Server[], sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  const ended = servers.filter((server) => server.listening).map((server) => once(server, "close"));
  for (const server of servers) server.close();
  const cutOff = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const late = setTimeout(cutOff, graceMs);
  if (graceMs === 0) cutOff();
  await Promise.all(ended);
  clearTimeout(late);
}

const refusals: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
};

async function listen(server: Server, port: number, host: string | undefined): Promise<void> {
  server.listen({ port, ...(host !== undefined && { host }), backlog: 4_096 });
  await once(server, "listening").catch((err: unknown) => {
    throw new Error(`cannot listen on port ${port}`, { cause: err });
  });
}
