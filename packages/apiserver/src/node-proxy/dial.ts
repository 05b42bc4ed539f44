/** Connections to targets: address, client certificate, verification and timeouts. */
import { lookup } from "node:dns/promises";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import { isIP, connect as netConnect, type Socket } from "node:net";
import type { PeerCertificate } from "node:tls";
import { onUnsolicitedUpgrade } from "@coxswain/apimachinery/client/unsolicited-upgrade";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { badRequest, plainError, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { type Connect, type Connection, connectTls, serverIdentityFault } from "@coxswain/apimachinery/transport/connect";
import { request as httpRequest } from "@coxswain/apimachinery/transport/node-http";
import { tunnelledAgent, tunnelledPlainAgent } from "../egress/agents.ts";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import { checkKubelet, checkProxyable, isLocal } from "./proxyable-address.ts";

export interface NodeProxyConfig {
  /** PEM; --kubelet-client-certificate and -key. Read for each connection, so that a getter can rotate it. */
  readonly clientCertificate?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined;
  /** PEM; --kubelet-certificate-authority. Without it kubelet certificates are not verified, as upstream. */
  readonly certificateAuthority?: string | Buffer | undefined;
  /** Connect timeout in ms; --kubelet-timeout. */
  readonly dialTimeoutMs?: number;
  /** Rate limit of upgraded connections in each direction; --max-connection-bytes-per-sec. 0: unlimited. */
  readonly bytesPerSecond?: number;
  readonly clock?: Clock;
  readonly log: Logger;
  /** Port of this server, which may not be a target: its own client certificate could be accepted there. */
  readonly ownPort?: () => number;
  /** Dialer; undefined: direct. */
  readonly tunnel?: Connect | undefined;
  /** Resolves a host name to one address. Default: dns.lookup. */
  readonly lookup?: (name: string) => Promise<{ readonly address: string }>;
}

/** The checked address to dial, with the target's host name for TLS and headers. */
export interface Dial {
  /** IP address, or a kubelet's host name that is resolved at the far end of the tunnel. */
  readonly address: string;
  readonly port: number;
  readonly secure: boolean;
  readonly tls: {
    cert?: string | Buffer;
    key?: string | Buffer;
    ca?: string | Buffer;
    rejectUnauthorized: boolean;
    servername: string;
  };
  readonly timeoutMs: number;
  readonly tunnel?: Connect | undefined;
  /** Connections to kubelets that are left by earlier requests; undefined: each request makes its own. */
  readonly kept?: Agent | undefined;
}

/**
 * Error for a failed connection; its code depends on the kind of request.
 * @param upgraded the connection was meant for an upgrade
 */
export function unreachable(err: unknown, { as, url }: ConnectTarget, upgraded = as === "tunnel"): StatusError {
  const text = dialErrorText(err);
  if (upgraded) return plainError(`error dialing backend: ${text}`, { cause: err });
  if (as === "text") return plainError(`Get "${url.href}": ${text}`, { cause: err });
  return serviceUnavailable(`error trying to reach service: ${text}`);
}

/**
 * Resolves and checks the target. Names are resolved only once, so that the checked address is the one dialed (DNS rebinding).
 * @param upgraded the connection is for an upgrade
 * @throws BadRequest for a forbidden address; 500 or 503 for an unknown name
 */
export async function resolveTarget(target: ConnectTarget, config: NodeProxyConfig, upgraded?: boolean): Promise<Dial> {
  const { url } = target;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const address = await resolveHost(host, target, config).catch((err: unknown) => {
    throw err instanceof StatusError ? err : unreachable(err, target, upgraded);
  });
  const secure = url.protocol === "https:";
  const port = Number(url.port) || (secure ? 443 : 80);
  if (isIP(address) !== 0) checkAddress(address, port, target, config);
  const trusted = target.toNode && target.skipVerify !== true && config.certificateAuthority !== undefined;
  return {
    address,
    port,
    secure,
    tls: {
      ...(target.toNode && config.clientCertificate
        ? { cert: config.clientCertificate.cert, key: config.clientCertificate.key }
        : {}),
      ...(trusted && config.certificateAuthority ? { ca: config.certificateAuthority } : {}),
      rejectUnauthorized: trusted,
      servername: isIP(host) === 0 ? host : "",
    },
    timeoutMs: config.dialTimeoutMs ?? 5_000,
    tunnel: config.tunnel,
  };
}

function checkAddress(address: string, port: number, { as }: ConnectTarget, { ownPort }: NodeProxyConfig): void {
  if (as === "proxy") checkProxyable(address);
  else checkKubelet(address);
  if (port === ownPort?.() && isLocal(address)) throw badRequest("address not allowed");
}

/**
 * With a tunnel, kubelet names unknown here are resolved at its far end. Names chosen by users (proxy targets) must resolve
 * here, to check the address.
 */
async function resolveHost(host: string, target: ConnectTarget, config: NodeProxyConfig): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await (config.lookup ?? lookup)(host)).address;
  } catch (err) {
    if (config.tunnel !== undefined && target.as !== "proxy") return host;
    const text = `lookup ${host}: no such host`;
    // Upstream resolves proxy targets during validation (400), kubelet names when dialing (500).
    throw target.as === "proxy" && !target.toNode ? badRequest(text) : new Error(`dial tcp: ${text}`, { cause: err });
  }
}

type Request = Pick<RequestOptions, "method" | "path" | "signal"> & { headers: Record<string, string | string[]> };

/**
 * Starts a request; the caller sends headers and body.
 * @param kept undefined: on a new connection
 */
export function openRequest(dial: Dial, target: ConnectTarget, request: Request, kept?: Agent): ClientRequest {
  const { tunnel } = dial;
  const options: RequestOptions = { ...request, host: dial.address, port: dial.port };
  if (!dial.secure) return httpRequest({ ...options, agent: tunnel === undefined ? false : tunnelledPlainAgent(tunnel) });
  if (kept !== undefined) return httpsRequest({ ...options, ...dial.tls, agent: kept });
  const tls = { ...dial.tls, ...identity(dial, target) };
  return httpsRequest({ ...options, ...tls, agent: tunnel === undefined ? false : tunnelledAgent(tls, tunnel) });
}

/** The connections that a request without a body may be sent on; undefined: it gets its own. */
export function keptFor(dial: Dial, target: ConnectTarget): Agent | undefined {
  return target.toNode && dial.secure && dial.tunnel === undefined ? dial.kept : undefined;
}

/**
 * The response head of a request without a body, which is safe to repeat. It may be sent on a kept connection, and is repeated on a new one
 * when that was closed, as by a kubelet that was restarted.
 * @throws as `answerOf`
 */
export async function answerTo(dial: Dial, target: ConnectTarget, request: Request): Promise<IncomingMessage> {
  const sent = openRequest(dial, target, request, keptFor(dial, target)).end();
  try {
    return await answerOf(sent, dial);
  } catch (err) {
    if (!sent.reusedSocket || !closedCodes.has(errorCode(err)) || request.signal?.aborted === true) throw err;
  }
  return answerOf(openRequest(dial, target, request).end(), dial);
}

const closedCodes: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Waits for the response head. Rejects with the socket's error when the connection fails or times out, and with a
 * StatusError when the response is not HTTP.
 * @param request already sent or being sent
 */
export function answerOf(request: ClientRequest, dial: Dial): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const late = (): void => {
      if (!request.reusedSocket) return void request.destroy(new Error(`${dialled(dial)}: i/o timeout`));
      // The connection is open as far as this machine knows; the node may be gone.
      const { address: host, port } = dial;
      established(netConnect({ host, port }), "connect", dial).then(
        (socket) => socket.destroy(),
        (err: Error) => request.destroy(err),
      );
    };
    const timer = setTimeout(late, dial.timeoutMs);
    request.once("socket", (socket) => {
      if (request.reusedSocket) return; // the timer runs until the answer begins
      if (!dial.secure && !socket.connecting)
        clearTimeout(timer); // the tunnel has its own timeout
      else socket.once(dial.secure ? "secureConnect" : "connect", () => clearTimeout(timer));
    });
    request.once("response", (response) => {
      clearTimeout(timer);
      resolve(response);
    });
    onUnsolicitedUpgrade(request, ({ message }) => {
      clearTimeout(timer);
      reject(plainError(message));
    });
    request.once("error", (err) => {
      clearTimeout(timer);
      reject(err);
    });
  });
}

/** Opens a TCP or TLS connection. @throws 500 with upstream's text. */
export async function openSocket(dial: Dial, target: ConnectTarget): Promise<Connection> {
  const { address: host, port } = dial;
  const through = await dial.tunnel?.(host, port).catch((err: Error) => {
    throw unreachable(err, target, true);
  });
  if (through !== undefined && !dial.secure) return through;
  const connectOptions = through === undefined ? { host, port } : { socket: through };
  const socket: Socket = dial.secure
    ? connectTls({ ...connectOptions, ALPNProtocols: ["http/1.1"], ...dial.tls, ...identity(dial, target) })
    : netConnect({ host, port });
  await established(socket, dial.secure ? "secureConnect" : "connect", dial).catch((err: Error) => {
    throw unreachable(err, target, true);
  });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 30_000);
  return socket;
}

/** Waits for a connection. @throws Error of the socket, or after --kubelet-timeout; it is destroyed then */
function established(socket: Socket, event: "connect" | "secureConnect", dial: Dial): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`${dialled(dial)}: i/o timeout`)), dial.timeoutMs);
    const refuse = (err: Error): void => {
      clearTimeout(timer);
      reject(err);
    };
    socket.once(event, () => {
      clearTimeout(timer);
      socket.removeListener("error", refuse);
      resolve(socket);
    });
    socket.once("error", refuse);
  });
}

function dialled({ address, port }: Dial): string {
  return `dial tcp ${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
}

/** The server name counts, then the name in the URL; not the address that it resolved to. */
function identity({ tls }: Dial, target: ConnectTarget) {
  const host = tls.servername || target.url.hostname.replace(/^\[|\]$/g, "");
  return { checkServerIdentity: (_: string, peer: PeerCertificate) => serverIdentityFault(host, peer) };
}

/** Headers with the client's credentials, which must not be forwarded. */
export function isCredential(name: string): boolean {
  return (
    name === "authorization" || name === "proxy-authorization" || name.startsWith("impersonate-") || name.startsWith("x-remote-")
  );
}

/** The Host header as sent by the client, which the backend sees too. */
export function hostOf(exchange: Exchange, target: ConnectTarget): string {
  return exchange.headers.host ?? target.url.host;
}

/** X-Forwarded-For with the client's address appended. */
export function forwardedFor(exchange: Exchange): string {
  const earlier = exchange.headers["x-forwarded-for"];
  return [...(earlier === undefined ? [] : [earlier].flat()), exchange.remoteAddress].join(", ");
}
