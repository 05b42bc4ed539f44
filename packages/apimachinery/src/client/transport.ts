import type http from "node:http";
import https from "node:https";
import type { Readable } from "node:stream";
import type tls from "node:tls";
import type { Clock, Timer } from "../process/clock/clock.ts";
import { type Connect, connectingOver, ownExpiry } from "../transport/connect.ts";
import type { ClientConnection } from "../transport/http2/client/connection.ts";
import { Agent, request as requestHttp } from "../transport/node-http.ts";
import type { ClientConfig } from "./config.ts";
import { connectHost, pem, tlsOptions } from "./dial.ts";
import { requestOverHttp1 } from "./http1-request.ts";
import { InFlight, requestOverHttp2 } from "./http2-request.ts";
import { openSession } from "./http2-session.ts";
import { connectOverProxy, parseProxyUrl, proxyFromEnvironment } from "./proxy.ts";
import { newStreamPool, type PoolEvents, type PoolObserver } from "./stream-pool.ts";
import { ConnectionLost } from "./transport-errors.ts";
import type { TransportRequest, TransportResponse } from "./transport-messages.ts";

/**
 * Sends requests to one server. HTTP/2 if the server offers it over TLS: one connection while it has free streams, further ones
 * when it has none (`stream-pool.ts`). Each connection is pinged every 30 s and replaced when it does not respond within 15 s, on
 * GOAWAY, and on errors. Otherwise HTTP/1.1 with keep-alive.
 * Rejects with Node's error (`code` is e.g. ECONNREFUSED), or with the signal's reason.
 * Source: golang.org/x/net/http2 ReadIdleTimeout and PingTimeout as k8s.io/apimachinery pkg/util/net/http.go sets them
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  /** Uses new connections for new requests (after a change of certificates); open requests finish on the old ones. */
  reconnect(): void;
  /** Closes all connections and aborts open requests. */
  close(): void;
  /** Describes the client certificate last used if it is outside its validity period; undefined otherwise. */
  certificateFault?(): string | undefined;
}

interface TransportOptions {
  readonly clock: Clock;
  /** Client certificate of a credential plugin; the configuration's takes precedence. */
  readonly certificate?: (() => { cert: string; key: string } | undefined) | undefined;
  /** Connections other than the last one are closed after this time without requests. */
  readonly idleMs?: number;
  /** Custom dialer; default a direct connection or the configured proxy. */
  readonly connect?: Connect | undefined;
  readonly observer?: PoolObserver | undefined;
}

/** @throws Error for an invalid proxy setting */
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

/** Reads the whole body of a response. @throws ConnectionLost when it is incomplete */
export function readBody(response: TransportResponse): Promise<Buffer> {
  return response.bytes?.() ?? readStream(response.body);
}

function readStream(body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    let isWhole = false;
    body.once("end", () => {
      isWhole = true;
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    body.once("error", reject);
    // Every body emits `close`; creating an error for each would cost a stack trace.
    body.once("close", () => {
      if (!isWhole) reject(new ConnectionLost("the answer was cut off"));
    });
  });
}

function newHttp1Transport(url: URL, connect: Connect | undefined): Transport {
  const agents = newAgents<http.Agent>();
  const newAgent = (): http.Agent => over(new Agent({ keepAlive: true }), connect, false);
  let agent = newAgent();
  return {
    request: (request) => requestOverHttp1(requestHttp, url, { agent: agents.using(agent) }, request),
    reconnect() {
      agents.retire(agent);
      agent = newAgent();
    },
    close: () => agents.destroy(),
  };
}

/** The agents of a transport: the current one, and earlier ones with open requests. */
interface Agents<A extends http.Agent> {
  /** Must be called for each request. @returns the agent */
  using(agent: A): A;
  /** Closes the agent's idle connections, and the others when their requests end. */
  retire(agent: A): void;
  /** Closes all connections and aborts open requests. */
  destroy(): void;
}

function newAgents<A extends http.Agent>(): Agents<A> {
  const agents = new Set<A>();
  const retired = new Set<A>();
  const isIdle = ({ sockets, requests }: A): boolean => Object.keys(sockets).length === 0 && Object.keys(requests).length === 0;
  return {
    using(agent) {
      agents.add(agent);
      return agent;
    },
    retire(agent) {
      agent.maxFreeSockets = 0;
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      retired.add(agent);
      for (const one of retired) {
        if (!isIdle(one)) continue;
        retired.delete(one);
        agents.delete(one);
      }
    },
    destroy() {
      for (const agent of agents) agent.destroy();
      agents.clear();
    },
  };
}

function over<A extends http.Agent>(agent: A, connect: Connect | undefined, isSecure: boolean): A {
  return connect === undefined ? agent : connectingOver(agent, connect, isSecure);
}

/** The result of a TLS dial: an HTTP/2 session, or an agent for HTTP/1.1 connections. */
interface Connection {
  readonly use: { readonly session: ClientConnection } | { readonly agent: https.Agent };
  maxStreams(): number;
  close(): void;
  destroy(): void;
}

function newTlsTransport(url: URL, config: ClientConfig, options: TransportOptions): Transport {
  const agents = newAgents<https.Agent>();
  let shown: tls.ConnectionOptions["cert"];
  const certFile = config.cert ? config.kubeconfigFile : config.certFile;
  const dial = async (events: PoolEvents): Promise<Connection> => {
    const secure = { ...(await tlsOptions(url, config, options.certificate?.())), certFile };
    shown = secure.cert;
    const socket = await connectHost(url, secure, options.connect, config.connectTimeoutMs);
    if (socket.alpnProtocol === "h2") {
      const watching = watchFiles(secure);
      return sessionConnection(await openSession(socket, options, events, () => watching.cancel()));
    }
    socket.destroy();
    const plain = new https.Agent({ ...secure, ALPNProtocols: ["http/1.1"], keepAlive: true });
    const agent = over(plain, options.connect, true);
    const watching = watchFiles(secure);
    return {
      use: { agent },
      maxStreams: () => Number.POSITIVE_INFINITY,
      close() {
        watching.cancel();
        agents.retire(agent);
        events.ended();
      },
      destroy: () => watching.cancel(),
    };
  };
  const pool = newStreamPool<Connection>({ ...options, dial });
  const inFlight = new InFlight();

  /** Checks the certificate files once a minute and renews the pool when they changed. */
  const watchFiles = (used: tls.ConnectionOptions): Timer => {
    if (!config.certFile && !config.caFile && !config.kubeconfigFile) return { cancel() {} };
    const compare = (now: tls.ConnectionOptions): void => {
      if (now.cert !== used.cert || now.key !== used.key || now.ca !== used.ca) pool.renew();
    };
    return options.clock.every(60_000, () => {
      tlsOptions(url, config, options.certificate?.()).then(compare, () => {}); // partially written; retried at the next tick
    });
  };

  return {
    async request(request) {
      request.signal?.throwIfAborted();
      const { connection, release } = await pool.acquire(request.signal);
      if ("session" in connection.use) return requestOverHttp2(connection.use.session, url, request, inFlight, release);
      release();
      return requestOverHttp1(https.request, url, { agent: agents.using(connection.use.agent) }, request);
    },
    reconnect: () => pool.renew(),
    certificateFault: () => ownExpiry(shown, certFile, options.clock.now()),
    close() {
      pool.close();
      agents.destroy();
    },
  };
}

function sessionConnection(session: ClientConnection): Connection {
  return {
    use: { session },
    maxStreams: () => session.maxStreams,
    close: () => session.close(),
    destroy: () => session.destroy(new Error("the client is closed")),
  };
}
