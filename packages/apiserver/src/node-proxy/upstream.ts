/**
 * Requests that another process answers: log, exec, attach and port-forward of a kubelet, proxies to nodes, pods and
 * services. Upgrades are spliced as bytes, plain requests are piped; nothing of the streams is interpreted.
 *
 * The address that was checked is the address that is dialled. The API server's client certificate goes to kubelets
 * alone, and credentials of the client go nowhere.
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, k8s.io/apiserver pkg/registry/generic/rest/streamer.go
 */
import { lookup } from "node:dns/promises";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, connect as netConnect, type Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { badRequest, genericServerResponse, internalError } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { GroupResource } from "@coxswain/apimachinery/meta/group-version";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { ConnectTarget } from "../registry/generic/subresource.ts";
import type { RequestContext } from "../request/context.ts";
import { checkProxyable } from "./proxyable-address.ts";

export interface NodeProxyConfig {
  /** PEM; --kubelet-client-certificate and -key. */
  readonly clientCertificate?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined;
  /** PEM; --kubelet-certificate-authority. Without it a kubelet's certificate is not verified, as upstream does. */
  readonly certificateAuthority?: string | Buffer | undefined;
  /** Time limit of a connection's set-up; --kubelet-timeout. */
  readonly dialTimeoutMs?: number;
  readonly log: Logger;
}

export interface NodeProxy {
  /**
   * Does what the target says with the present request and answers it.
   * @param resource who is asked for, for error texts
   * @throws BadRequest when an upgrade is needed and was not asked for, or the address is not allowed; the kubelet's
   *   refusals as a Status; InternalError when it cannot be reached.
   */
  forward(ctx: RequestContext, target: ConnectTarget, resource: GroupResource & { name: string }): Promise<void>;
}

export function newNodeProxy(config: NodeProxyConfig): NodeProxy {
  return {
    async forward(ctx, target, resource) {
      const dial = await resolveTarget(target, config);
      const { exchange } = ctx;
      if (exchange.upgrade !== undefined) return splice(ctx, exchange.upgrade, target, dial, config);
      if (target.upgradeRequired) throw badRequest("Upgrade request required");
      return target.passHeaders ? pipe(ctx, target, dial) : streamText(ctx, target, dial, resource);
    },
  };
}

/** How to reach the target: the address stays the one that was checked, the names stay the target's. */
interface Dial {
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
}

async function resolveTarget(target: ConnectTarget, config: NodeProxyConfig): Promise<Dial> {
  const { url } = target;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const address = await resolveHost(host);
  if (target.passHeaders && !target.upgradeRequired) checkProxyable(address);
  const secure = url.protocol === "https:";
  const trusted = target.toNode && config.certificateAuthority !== undefined;
  return {
    address,
    port: Number(url.port) || (secure ? 443 : 80),
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
  };
}

async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await lookup(host)).address;
  } catch (err) {
    throw internalError(new Error(`dial tcp: lookup ${host}: no such host`, { cause: err }));
  }
}

function pathOf(target: ConnectTarget): string {
  return target.url.pathname + target.url.search;
}

// Plain requests

function open(ctx: RequestContext, target: ConnectTarget, dial: Dial, headers: Record<string, string | string[]>): ClientRequest {
  const options: RequestOptions = {
    host: dial.address,
    port: dial.port,
    method: target.method ?? ctx.exchange.method,
    path: pathOf(target),
    headers: { ...headers, host: target.url.host },
    signal: ctx.signal,
    agent: false,
  };
  if (!dial.secure) return httpRequest(options);
  const { servername, ...tls } = dial.tls;
  return httpsRequest({
    ...options,
    ...tls,
    servername,
    ...(servername === "" ? { checkServerIdentity: identityOf(target.url.hostname) } : {}),
  });
}

/** Without a server name node checks nothing against the certificate: check the address here. */
function identityOf(hostname: string) {
  const address = hostname.replace(/^\[|\]$/g, "");
  return (_host: string, certificate: { subjectaltname?: string }): Error | undefined => {
    const names = (certificate.subjectaltname ?? "").split(", ");
    if (names.includes(`IP Address:${address}`)) return undefined;
    return new Error(`x509: certificate is valid for ${names.join(", ")}, not ${address}`);
  };
}

function answerOf(request: ClientRequest, target: ConnectTarget, dial: Dial): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => request.destroy(new Error("i/o timeout")), dial.timeoutMs);
    request.once("socket", (socket) => {
      const connected = (): void => clearTimeout(timer);
      socket.once(dial.secure ? "secureConnect" : "connect", connected);
    });
    request.once("response", (response) => {
      clearTimeout(timer);
      resolve(response);
    });
    request.once("error", (err) => {
      clearTimeout(timer);
      reject(internalError(new Error(`error dialing backend: ${target.url.host}: ${err.message}`, { cause: err })));
    });
  });
}

/** Log: the body as text, in pieces as they come; a refusal by the kubelet becomes a Status. */
async function streamText(
  ctx: RequestContext,
  target: ConnectTarget,
  dial: Dial,
  resource: GroupResource & { name: string },
): Promise<void> {
  const request = open(ctx, target, dial, { "accept-encoding": "identity" });
  request.end();
  const answer = await answerOf(request, target, dial);
  const code = answer.statusCode ?? 500;
  if (code < 200 || code > 206) throw refusal(code, await readText(answer, maxRefusalBytes), resource);
  await relay(ctx, answer, ctx.exchange.stream(200, { "content-type": "text/plain" }));
}

const maxRefusalBytes = 50_000;

function refusal(code: number, text: string, resource: GroupResource & { name: string }): Error {
  if (code === 500) return internalError(new Error(text));
  if (code === 400) return badRequest(text);
  return genericServerResponse(code, "", resource, resource.name, text, 0, false);
}

async function readText(answer: IncomingMessage, limitBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > limitBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes).toString();
}

/** Proxy: method, headers and body go there, status, headers and body come back. */
async function pipe(ctx: RequestContext, target: ConnectTarget, dial: Dial): Promise<void> {
  const { exchange } = ctx;
  const request = open(ctx, target, dial, forwardedHeaders(exchange));
  const body = exchange.bodyStream();
  body.on("error", (err) => request.destroy(err));
  body.pipe(request);
  const answer = await answerOf(request, target, dial);
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !hopByHop.has(name)) headers[name] = value;
  }
  const code = answer.statusCode ?? 502;
  // A redirect of a proxied server must not lead the client's credentials elsewhere under our name.
  const location = answer.headers.location;
  if (location !== undefined) headers["location"] = rewriteLocation(location, exchange, target);
  await relay(ctx, answer, exchange.stream(code, headers));
}

/** A path of the target's own host stays below the proxy's path; anything else is left as it is. */
function rewriteLocation(location: string, exchange: Exchange, target: ConnectTarget): string {
  let url: URL;
  try {
    url = new URL(location, target.url);
  } catch {
    return location;
  }
  if (url.host !== target.url.host) return location;
  const requested = exchange.url.split("?")[0] ?? "";
  const proxied = target.url.pathname;
  const prefix = requested.endsWith(proxied)
    ? requested.slice(0, requested.length - proxied.length)
    : requested.replace(/\/$/, "");
  return prefix + url.pathname + url.search + url.hash;
}

async function relay(ctx: RequestContext, answer: IncomingMessage, response: ReturnType<Exchange["stream"]>): Promise<void> {
  try {
    for await (const chunk of answer) {
      if (!response.write(chunk as Buffer)) await response.drained();
    }
    response.end();
  } catch {
    answer.destroy();
    ctx.exchange.destroy(); // cut off: the client must not take what came for the whole
  }
}

const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Who the client is to us is no business of the server behind. */
function isCredential(name: string): boolean {
  return (
    name === "authorization" || name === "proxy-authorization" || name.startsWith("impersonate-") || name.startsWith("x-remote-")
  );
}

function forwardedHeaders(exchange: Exchange): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(exchange.headers)) {
    if (value !== undefined && !hopByHop.has(name) && !isCredential(name) && name !== "host") headers[name] = value;
  }
  const earlier = headers["x-forwarded-for"];
  headers["x-forwarded-for"] = [...(earlier === undefined ? [] : [earlier].flat()), exchange.remoteAddress].join(", ");
  headers["x-forwarded-host"] = String(exchange.headers.host ?? "");
  headers["x-forwarded-proto"] = exchange.tls === undefined ? "http" : "https";
  headers["x-forwarded-uri"] = exchange.url.split("?")[0] ?? "";
  return headers;
}

// Upgrades

/** Sends the client's upgrade request on, and from the answer's first byte on only copies. */
async function splice(
  ctx: RequestContext,
  upgrade: { socket: Socket; head: Buffer },
  target: ConnectTarget,
  dial: Dial,
  config: NodeProxyConfig,
): Promise<void> {
  const { exchange } = ctx;
  const backend = await connectTo(target, dial);
  backend.write(upgradeRequest(exchange, target));
  let first: Buffer;
  try {
    first = await firstBytes(backend, 30_000);
  } catch (err) {
    backend.destroy();
    throw internalError(new Error(`error dialing backend: ${(err as Error).message}`, { cause: err }));
  }
  const code = Number(/^HTTP\/1\.\d (\d{3})/.exec(first.toString("latin1", 0, 32))?.[1] ?? 0);
  if (code !== 101 && code < 400) {
    backend.destroy();
    throw internalError(new Error(`invalid upgrade response: status code ${code}`));
  }
  const { socket, head } = upgrade;
  ctx.audit?.started(code);
  config.log.v(4)?.info("spliced an upgraded connection", { target: target.url.host, path: target.url.pathname, code });
  await joined(socket, head, backend, first);
}

function connectTo(target: ConnectTarget, dial: Dial): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { servername, ...tls } = dial.tls;
    const socket: Socket = dial.secure
      ? tlsConnect({
          host: dial.address,
          port: dial.port,
          ALPNProtocols: ["http/1.1"],
          ...tls,
          ...(servername === "" ? { checkServerIdentity: identityOf(target.url.hostname) } : { servername }),
        })
      : netConnect({ host: dial.address, port: dial.port });
    const timer = setTimeout(() => socket.destroy(new Error("i/o timeout")), dial.timeoutMs);
    socket.once(dial.secure ? "secureConnect" : "connect", () => {
      clearTimeout(timer);
      socket.removeListener("error", refuse);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, 30_000);
      resolve(socket);
    });
    const refuse = (err: Error): void => {
      clearTimeout(timer);
      reject(
        internalError(new Error(`error dialing backend: dial tcp ${dial.address}:${dial.port}: ${err.message}`, { cause: err })),
      );
    };
    socket.once("error", refuse);
  });
}

function upgradeRequest(exchange: Exchange, target: ConnectTarget): string {
  const lines = [`${target.method ?? exchange.method} ${pathOf(target)} HTTP/1.1`, `Host: ${target.url.host}`];
  for (const [name, value] of Object.entries(exchange.headers)) {
    if (value === undefined || name === "host" || isCredential(name)) continue;
    for (const one of [value].flat()) lines.push(`${name}: ${withoutToken(name, one)}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A browser's bearer token travels as a WebSocket protocol. */
function withoutToken(name: string, value: string): string {
  if (name !== "sec-websocket-protocol") return value;
  return value
    .split(",")
    .map((protocol) => protocol.trim())
    .filter((protocol) => !protocol.startsWith("base64url.bearer.authorization.k8s.io."))
    .join(", ");
}

function firstBytes(socket: Socket, timeoutMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(new Error("i/o timeout"))), timeoutMs);
    const finish = (settle: () => void): void => {
      clearTimeout(timer);
      socket.removeListener("data", onData);
      socket.removeListener("error", onError);
      socket.removeListener("close", onClose);
      settle();
    };
    const onData = (chunk: Buffer): void => {
      socket.pause();
      finish(() => resolve(chunk));
    };
    const onError = (err: Error): void => finish(() => reject(err));
    const onClose = (): void => finish(() => reject(new Error("unexpected EOF")));
    socket.on("data", onData);
    socket.on("error", onError);
    socket.on("close", onClose);
  });
}

/** Both ways until both sides have ended; a broken side breaks the other. */
function joined(client: Socket, head: Buffer, backend: Socket, first: Buffer): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const closed = (other: Socket) => (): void => {
      if (--open === 0) resolve();
      else other.destroySoon();
    };
    client.on("error", () => backend.destroy());
    backend.on("error", () => client.destroy());
    client.once("close", closed(backend));
    backend.once("close", closed(client));
    if (client.destroyed || backend.destroyed) {
      client.destroy();
      backend.destroy();
      return resolve();
    }
    client.write(first);
    if (head.length > 0) backend.write(head);
    client.pipe(backend);
    backend.pipe(client);
  });
}
