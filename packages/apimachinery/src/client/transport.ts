import { readFile } from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { isIP } from "node:net";
import type { Readable } from "node:stream";
import tls from "node:tls";
import type { Clock, Timer } from "../clock/clock.ts";
import type { ClientConfig } from "./config.ts";
import { type Connect, connectingOver, connectTls, ownExpiry } from "./connect.ts";
import { connectOverProxy, parseProxyUrl, proxyFromEnvironment } from "./proxy.ts";
import { onUnaskedUpgrade } from "./unasked-upgrade.ts";

export interface TransportRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: http.IncomingHttpHeaders;
  /** Must be read to its end or destroyed. Reading slowly makes the server wait (flow control). */
  readonly body: Readable;
}

/**
 * Requests to one server. HTTP/2 when the server offers it over TLS: one connection for everything, asked every
 * 30 s whether it still lives while requests are open, replaced when it does not answer within 15 s, when the server
 * says GOAWAY, or when it broke. HTTP/1.1 with kept connections otherwise.
 * Rejects with Node's error (`code` is e.g. ECONNREFUSED), or with the signal's reason.
 * Source: golang.org/x/net/http2 ReadIdleTimeout and PingTimeout as k8s.io/apimachinery pkg/util/net/http.go sets them
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  /** New requests use a new connection (other certificates); open ones finish on the old. */
  reconnect(): void;
  /** Ends open requests too. */
  close(): void;
  /** What is wrong with the time of the client certificate that was shown last; undefined: nothing. */
  certificateFault?(): string | undefined;
}

export interface TransportOptions {
  readonly clock: Clock;
  /** A client certificate that a credential plugin gave; beats the configuration's. */
  readonly certificate?: (() => { cert: string; key: string } | undefined) | undefined;
  readonly pingIntervalMs?: number;
  readonly pingTimeoutMs?: number;
  /** How the host is reached, when not directly. */
  readonly connect?: Connect | undefined;
}

export function newTransport(config: ClientConfig, options: TransportOptions): Transport {
  const url = new URL(config.host);
  const connect = options.connect ?? overProxy(url, config);
  return url.protocol === "http:" ? newHttp1Transport(url, connect) : newTlsTransport(url, config, { ...options, connect });
}

function overProxy(url: URL, config: ClientConfig): Connect | undefined {
  const proxy = config.proxyUrl ? parseProxyUrl(config.proxyUrl) : proxyFromEnvironment(url);
  if (proxy === undefined) return undefined;
  return connectOverProxy(proxy, async () => {
    const ca = await pem(config.ca, config.caFile);
    return { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: config.insecure !== true };
  });
}

/** True when no server listened: the request was certainly not executed. */
export function isConnectionRefused(err: unknown): boolean {
  return errorCodeOf(err) === "ECONNREFUSED";
}

/** True when the request may be sent again although it is not idempotent: the server says that it did not look at it. */
export function wasNotProcessed(err: unknown): boolean {
  return err instanceof NotProcessed;
}

/** The connection broke under the request; it may have been executed. */
export function isConnectionLost(err: unknown): boolean {
  const code = errorCodeOf(err);
  return code !== undefined && lostCodes.has(code);
}

export async function readBody(body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    body.once("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    body.once("error", reject);
    body.once("close", () => reject(new ConnectionLost("the answer was cut off")));
  });
}

const lostCodes = new Set([
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_STREAM_PREMATURE_CLOSE",
  "UND_ERR_SOCKET",
  "CONNECTION_LOST",
]);

class ConnectionLost extends Error {
  readonly code = "CONNECTION_LOST";
}

class NotProcessed extends Error {
  readonly code = "NOT_PROCESSED";
}

function errorCodeOf(err: unknown): string | undefined {
  for (let cause = err, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return undefined;
}

// ---- HTTP/1.1 -------------------------------------------------------------------------------------------------------

function newHttp1Transport(url: URL, connect: Connect | undefined): Transport {
  const newAgent = (): http.Agent => over(new http.Agent({ keepAlive: true }), connect, false);
  let agent = newAgent();
  return {
    request: (request) => requestOverHttp1(http.request, url, { agent }, request),
    reconnect() {
      agent = newAgent();
    },
    close: () => agent.destroy(),
  };
}

function over<A extends http.Agent>(agent: A, connect: Connect | undefined, isSecure: boolean): A {
  return connect === undefined ? agent : connectingOver(agent, connect, isSecure);
}

function requestOverHttp1(
  send: typeof http.request | typeof https.request,
  url: URL,
  options: http.RequestOptions,
  request: TransportRequest,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const { method, path, headers, body, signal } = request;
    if (signal?.aborted) return reject(signal.reason);
    const outgoing = send({
      ...options,
      host: stripBrackets(url.hostname),
      port: url.port || undefined,
      method,
      path,
      headers: {
        ...(headers as http.OutgoingHttpHeaders),
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
    });
    let response: http.IncomingMessage | undefined;
    const onAbort = (): void => {
      reject(signal?.reason);
      outgoing.destroy();
      response?.destroy(asError(signal?.reason));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    outgoing.once("response", (incoming) => {
      response = incoming;
      incoming.once("close", () => signal?.removeEventListener("abort", onAbort));
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
    });
    const fail = (err: Error): void => {
      signal?.removeEventListener("abort", onAbort);
      reject(err);
    };
    outgoing.on("error", fail);
    onUnaskedUpgrade(outgoing, fail);
    outgoing.end(body);
  });
}

// ---- TLS: HTTP/2, or HTTP/1.1 with a server that has no HTTP/2 ---------------------------------------------------------

type Connection = { readonly http2: http2.ClientHttp2Session } | { readonly http1: https.Agent };

function newTlsTransport(url: URL, config: ClientConfig, options: TransportOptions): Transport {
  let current: Promise<Connection> | undefined;
  let usable: Connection | undefined;
  const all = new Set<http2.ClientHttp2Session | https.Agent>();
  let closed = false;

  /** The connection that everything uses now; one dial at a time however many wait for it. */
  const connection = (): Promise<Connection> => {
    if (closed) return Promise.reject(new Error("the client is closed"));
    if (current === undefined) {
      const dialled = dial();
      current = dialled;
      dialled.then(
        (made) => {
          if (current !== dialled) return;
          if ("http2" in made && made.http2.destroyed) forget();
          else usable = made;
        },
        () => {
          if (current === dialled) forget();
        },
      );
    }
    return current;
  };
  const forget = (): void => {
    current = undefined;
    usable = undefined;
  };

  let shown: tls.ConnectionOptions["cert"];
  const certFile = config.cert ? config.kubeconfigFile : config.certFile;

  const dial = async (): Promise<Connection> => {
    const secure = { ...(await tlsOptions(url, config, options.certificate?.())), certFile };
    shown = secure.cert;
    const socket = await connectHost(url, secure, options.connect);
    if (socket.alpnProtocol !== "h2") {
      socket.destroy();
      const plain = new https.Agent({ ...secure, ALPNProtocols: ["http/1.1"], keepAlive: true });
      const agent = over(plain, options.connect, true);
      all.add(agent);
      return { http1: agent };
    }
    const session = http2.connect(url.origin, {
      createConnection: () => socket,
      maxSessionMemory: 1000,
      settings: { initialWindowSize: streamWindowBytes, enablePush: false },
    });
    session.setLocalWindowSize(connectionWindowBytes);
    all.add(session);
    if (closed) session.destroy();
    const made = { http2: session };
    const background = [keepAsking(session, options), watchFiles(secure)];
    session.on("error", () => {}); // each request hears of it on its own stream
    session.on("goaway", () => {
      if (usable === made) forget();
    });
    session.on("close", () => {
      for (const timer of background) timer.cancel();
      all.delete(session);
      if (usable === made) forget();
    });
    return made;
  };

  /** Renewed certificates or authorities: open requests finish on the old connection, new ones show the new. */
  const watchFiles = (used: tls.ConnectionOptions): Timer => {
    if (!config.certFile && !config.caFile) return { cancel() {} };
    const compare = (now: tls.ConnectionOptions): void => {
      if (now.cert !== used.cert || now.key !== used.key || now.ca !== used.ca) reconnect();
    };
    return options.clock.every(60_000, () => {
      tlsOptions(url, config, options.certificate?.()).then(compare, () => {}); // half written: read again at the next tick
    });
  };

  const reconnect = (): void => {
    const old = usable;
    forget();
    if (old !== undefined && "http2" in old) old.http2.close();
  };

  return {
    async request(request) {
      request.signal?.throwIfAborted();
      const made = usable ?? (await untilAborted(connection(), request.signal));
      if ("http1" in made) return requestOverHttp1(https.request, url, { agent: made.http1 }, request);
      if (made.http2.destroyed || made.http2.closed) {
        if (usable === made) forget();
        throw new NotProcessed("the connection was closed before the request was sent");
      }
      return requestOverHttp2(made.http2, url, request);
    },
    reconnect,
    certificateFault: () => ownExpiry(shown, certFile, options.clock.now()),
    close() {
      closed = true;
      forget();
      for (const connection of all) connection.destroy();
      all.clear();
    },
  };
}

/** One slow watch must not hold up the others on the connection. Source: golang.org/x/net/http2 transport.go */
const streamWindowBytes = 4 << 20;
const connectionWindowBytes = 1 << 30;

async function tlsOptions(
  url: URL,
  config: ClientConfig,
  certificate: { cert: string; key: string } | undefined,
): Promise<tls.ConnectionOptions> {
  const [ca, cert, key] = await Promise.all([
    pem(config.ca, config.caFile),
    certificate?.cert ?? pem(config.cert, config.certFile),
    certificate?.key ?? pem(config.key, config.keyFile),
  ]);
  const name = config.serverName ?? stripBrackets(url.hostname);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
    rejectUnauthorized: config.insecure !== true,
    minVersion: "TLSv1.2",
    ...(isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_host, peer) => checkIdentity(name, peer),
  };
}

/** As Go's: the common name of a certificate is not looked at, which Node does where there are no other names. */
function checkIdentity(name: string, peer: tls.PeerCertificate): Error | undefined {
  if (peer.subjectaltname) return tls.checkServerIdentity(name, peer);
  return new Error("x509: certificate relies on legacy Common Name field, use SANs instead");
}

async function pem(text: string | undefined, file: string | undefined): Promise<string | undefined> {
  if (text !== undefined && text !== "") return text;
  return file === undefined || file === "" ? undefined : await readFile(file, "utf8");
}

async function connectHost(url: URL, secure: tls.ConnectionOptions, connect: Connect | undefined): Promise<tls.TLSSocket> {
  const to = { host: stripBrackets(url.hostname), port: url.port === "" ? 443 : Number(url.port) };
  const way = connect && { socket: await connect(to.host, to.port) };
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      ...secure,
      ...to,
      ...way,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    const deadline = setTimeout(() => socket.destroy(timedOut()), dialTimeoutMs);
    socket.once("secureConnect", () => {
      clearTimeout(deadline);
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", (err) => {
      clearTimeout(deadline);
      reject(err);
    });
  });
}

/** Source: client-go transport/cache.go, Dialer{Timeout: 30 * time.Second} */
const dialTimeoutMs = 30_000;

function timedOut(): Error {
  return Object.assign(new Error("timed out connecting to the server"), { code: "ETIMEDOUT" });
}

/** Destroys a session whose server no longer answers, so that watches on it end instead of hanging. */
function keepAsking(session: http2.ClientHttp2Session, options: TransportOptions): Timer {
  const { clock, pingIntervalMs = 30_000, pingTimeoutMs = 15_000 } = options;
  let waiting: Timer | undefined;
  const asking = clock.every(pingIntervalMs, () => {
    if (waiting !== undefined || session.destroyed) return;
    waiting = clock.after(pingTimeoutMs, () => session.destroy(new ConnectionLost("the server does not answer pings")));
    session.ping(() => {
      waiting?.cancel();
      waiting = undefined;
    });
  });
  return {
    cancel() {
      asking.cancel();
      waiting?.cancel();
    },
  };
}

function requestOverHttp2(session: http2.ClientHttp2Session, url: URL, request: TransportRequest): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const { method, path, headers, body, signal } = request;
    const stream = session.request(
      {
        ...(headers as http2.OutgoingHttpHeaders),
        ":method": method,
        ":path": path,
        ":authority": url.host,
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
      { endStream: body === undefined },
    );
    let answered = false;
    const onAbort = (): void => {
      reject(signal?.reason);
      stream.close(http2.constants.NGHTTP2_CANCEL);
      stream.destroy(asError(signal?.reason));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    stream.once("response", (received) => {
      answered = true;
      resolve({ status: Number(received[":status"]), headers: received, body: stream });
    });
    stream.on("error", (err) => {
      if (!answered) reject(refused(stream) ? new NotProcessed("the server refused the stream", { cause: err }) : err);
    });
    stream.once("close", () => {
      signal?.removeEventListener("abort", onAbort);
      if (answered) return;
      reject(
        refused(stream)
          ? new NotProcessed("the server refused the stream")
          : new ConnectionLost("the connection was closed before the answer"),
      );
    });
    if (body !== undefined) stream.end(body);
  });
}

function refused(stream: http2.ClientHttp2Stream): boolean {
  return stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM;
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}

/** `[::1]` in a URL is `::1` for a socket. */
function stripBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}
