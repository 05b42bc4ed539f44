/** How a target is reached: over which address, with whose certificate, and how long that may take. */
import { lookup } from "node:dns/promises";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, connect as netConnect, type Socket } from "node:net";
import { type Connect, type Connection, connectTls } from "@coxswain/apimachinery/client/connect";
import { onUnaskedUpgrade } from "@coxswain/apimachinery/client/unasked-upgrade";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { dialErrorText } from "@coxswain/apimachinery/errors/dial-error";
import { badRequest, plainError, StatusError, serviceUnavailable } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { tunnelledAgent, tunnelledPlainAgent } from "../egress/agents.ts";
import type { ConnectTarget } from "../registry/generic/subresource.ts";
import { checkKubelet, checkProxyable, isLocal } from "./proxyable-address.ts";

export interface NodeProxyConfig {
  /** PEM; --kubelet-client-certificate and -key. Read for each connection: it may be a getter. */
  readonly clientCertificate?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined;
  /** PEM; --kubelet-certificate-authority. Without it a kubelet's certificate is not verified, as upstream does. */
  readonly certificateAuthority?: string | Buffer | undefined;
  /** Time limit of a connection's set-up; --kubelet-timeout. */
  readonly dialTimeoutMs?: number;
  /** Of an upgraded connection, each way; --max-connection-bytes-per-sec. 0: no limit. */
  readonly bytesPerSecond?: number;
  readonly clock?: Clock;
  readonly log: Logger;
  /** Where this server listens: nobody reaches it through itself, where its own client certificate might count. */
  readonly ownPort?: () => number;
  /** How to get out; undefined: directly. */
  readonly tunnel?: Connect | undefined;
  /** @returns one address of a host name. Default: the system's resolver. */
  readonly lookup?: (name: string) => Promise<{ readonly address: string }>;
}

/** The address stays the one that was checked, the names stay the target's. */
export interface Dial {
  /** Or the name of a kubelet that only the far end of the tunnel knows. */
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
}

/**
 * Nobody is there: what the client is told depends on what was to be sent.
 * @param upgraded the connection was to be handed over to the client
 */
export function unreachable(err: unknown, { as, url }: ConnectTarget, upgraded = as === "tunnel"): StatusError {
  const text = dialErrorText(err);
  if (upgraded) return plainError(`error dialing backend: ${text}`, { cause: err });
  if (as === "text") return plainError(`Get "${url.href}": ${text}`, { cause: err });
  return serviceUnavailable(`error trying to reach service: ${text}`);
}

/**
 * A name is looked up once: whatever it means a moment later, the address that was checked is the one that is dialled.
 * @param upgraded the connection is for an upgrade
 * @throws BadRequest for an address that nobody is to be sent to; 500 or 503 for a name that nobody has
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

/** Behind a tunnel there may be names that nobody has here: kubelets are asked for by them. Whom a user names has to be checked. */
async function resolveHost(host: string, target: ConnectTarget, config: NodeProxyConfig): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await (config.lookup ?? lookup)(host)).address;
  } catch (err) {
    if (config.tunnel !== undefined && target.as !== "proxy") return host;
    const text = `lookup ${host}: no such host`;
    // A name to be proxied to is looked up for the check of its addresses, that of a kubelet when it is dialled.
    throw target.as === "proxy" && !target.toNode ? badRequest(text) : new Error(`dial tcp: ${text}`, { cause: err });
  }
}

/** A request whose headers, and body if it has one, the caller sends. */
export function openRequest(
  dial: Dial,
  target: ConnectTarget,
  request: Pick<RequestOptions, "method" | "path" | "signal"> & { headers: Record<string, string | string[]> },
): ClientRequest {
  const { tunnel } = dial;
  const options: RequestOptions = { ...request, host: dial.address, port: dial.port };
  if (!dial.secure) return httpRequest({ ...options, agent: tunnel === undefined ? false : tunnelledPlainAgent(tunnel) });
  const tls = { ...dial.tls, ...identity(dial, target) };
  return httpsRequest({ ...options, ...tls, agent: tunnel === undefined ? false : tunnelledAgent(tls, tunnel) });
}

/**
 * Rejects with the socket's error when there is no connection in time, or none that answers, and with a StatusError
 * when the answer is another protocol.
 * @param request has been sent, or is on its way
 */
export function answerOf(request: ClientRequest, dial: Dial): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => request.destroy(new Error(`${dialled(dial)}: i/o timeout`)), dial.timeoutMs);
    request.once("socket", (socket) => {
      if (!dial.secure && !socket.connecting)
        clearTimeout(timer); // the tunnel's
      else socket.once(dial.secure ? "secureConnect" : "connect", () => clearTimeout(timer));
    });
    request.once("response", (response) => {
      clearTimeout(timer);
      resolve(response);
    });
    onUnaskedUpgrade(request, ({ message }) => {
      clearTimeout(timer);
      reject(plainError(message));
    });
    request.once("error", (err) => {
      clearTimeout(timer);
      reject(err);
    });
  });
}

/** @throws 500 in upstream's words. */
export async function openSocket(dial: Dial, target: ConnectTarget): Promise<Connection> {
  const { address: host, port } = dial;
  const through = await dial.tunnel?.(host, port).catch((err: Error) => {
    throw unreachable(err, target, true);
  });
  if (through !== undefined && !dial.secure) return through;
  return new Promise((resolve, reject) => {
    const way = through === undefined ? { host, port } : { socket: through };
    const socket: Socket = dial.secure
      ? connectTls({ ...way, ALPNProtocols: ["http/1.1"], ...dial.tls, ...identity(dial, target) })
      : netConnect({ host, port });
    const timer = setTimeout(() => socket.destroy(new Error(`${dialled(dial)}: i/o timeout`)), dial.timeoutMs);
    const refuse = (err: Error): void => {
      clearTimeout(timer);
      reject(unreachable(err, target, true));
    };
    socket.once(dial.secure ? "secureConnect" : "connect", () => {
      clearTimeout(timer);
      socket.removeListener("error", refuse);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, 30_000);
      resolve(socket);
    });
    socket.once("error", refuse);
  });
}

function dialled({ address, port }: Dial): string {
  return `dial tcp ${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
}

/** Without a server name node checks nothing against the certificate: check the address here. */
function identity(dial: Dial, target: ConnectTarget) {
  if (dial.tls.servername !== "") return {};
  const address = target.url.hostname.replace(/^\[|\]$/g, "");
  return {
    checkServerIdentity: (_host: string, certificate: { subjectaltname?: string }): Error | undefined => {
      const names = (certificate.subjectaltname ?? "").split(", ");
      if (names.includes(`IP Address:${address}`)) return undefined;
      return new Error(`x509: certificate is valid for ${names.join(", ")}, not ${address}`);
    },
  };
}

/** Who the client is to us is no business of the server behind. */
export function isCredential(name: string): boolean {
  return (
    name === "authorization" || name === "proxy-authorization" || name.startsWith("impersonate-") || name.startsWith("x-remote-")
  );
}

/** The name that the client knows the server by; what is proxied sees it too. */
export function hostOf(exchange: Exchange, target: ConnectTarget): string {
  return exchange.headers.host ?? target.url.host;
}

/** Every proxy on the way adds who it had the request from. */
export function forwardedFor(exchange: Exchange): string {
  const earlier = exchange.headers["x-forwarded-for"];
  return [...(earlier === undefined ? [] : [earlier].flat()), exchange.remoteAddress].join(", ");
}
