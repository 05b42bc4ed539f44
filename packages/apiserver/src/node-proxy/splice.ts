/**
 * Upgraded connections: exec, attach, port-forward, WebSockets of proxied servers. Forwards the upgrade request; when the
 * backend accepts, bytes are copied in both directions without interpreting the streams. When it does not, the client gets the
 * backend's response and the connection is closed.
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go tryUpgrade
 */

import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { Connection } from "@coxswain/apimachinery/transport/connect";
import { validateHeaderValue } from "@coxswain/apimachinery/transport/node-http";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { type Dial, forwardedFor, hostOf, isCredential, type NodeProxyConfig, openSocket } from "./dial.ts";
import { mostRedirects, type Redirects, redirectTarget } from "./redirects.ts";
import { headEnd, longestHeadBytes, returnRefusal } from "./refusal.ts";
import { newThrottle } from "./throttle.ts";

const answerWithinMs = 30_000;

type OwnHeaders = Readonly<Record<string, string | string[]>>;

export interface SpliceOptions extends Pick<NodeProxyConfig, "log" | "bytesPerSecond" | "clock"> {
  /** undefined: redirects are not followed. */
  readonly redirects?: Redirects | undefined;
}

/**
 * Resolves when both sides have ended.
 * @param headers replace or extend the client's headers; lower-case names
 * @throws 500 when the connection fails, or the response is neither an upgrade nor an error.
 */
export async function splice(
  ctx: RequestContext,
  upgrade: { socket: Socket; head: Buffer },
  target: ConnectTarget,
  dial: Dial,
  { log, bytesPerSecond = 0, clock = realClock, redirects }: SpliceOptions,
  headers: OwnHeaders = {},
): Promise<void> {
  const { backend, first, code } = await answered(ctx.exchange, upgrade.socket, target, dial, headers, redirects);
  if (code !== 101 && code < 400) {
    backend.destroy();
    throw plainError(`invalid upgrade response: status code ${code}`);
  }
  const { socket, head } = upgrade;
  ctx.audit?.started(code);
  if (code !== 101) return returnRefusal(socket, backend, first);
  log.v(4)?.info("spliced an upgraded connection", { target: target.url.host, path: target.url.pathname, code });
  // Two pipelines together have more than the ten listeners from which on Node warns.
  if (bytesPerSecond > 0) for (const side of [socket, backend]) side.setMaxListeners(20);
  const through = (from: Connection, to: Connection): void => {
    if (bytesPerSecond > 0) pipeline(from, newThrottle(bytesPerSecond, clock), to, () => {});
    else from.pipe(to);
  };
  await joined(socket, head, backend, first, through);
}

type Backend = Awaited<ReturnType<typeof openSocket>>;

interface Answered {
  backend: Backend;
  /** Bytes of the response received so far: the head, and possibly more. */
  first: Buffer;
  code: number;
}

/** Sends the upgrade request, following redirects if enabled. */
async function answered(
  exchange: Exchange,
  client: Socket,
  target: ConnectTarget,
  dial: Dial,
  headers: OwnHeaders,
  redirects: Redirects | undefined,
): Promise<Answered> {
  let [at, dialer, { method }]: [ConnectTarget, Dial, { method: string }] = [target, dial, exchange];
  for (let followed = 0; followed <= mostRedirects; followed++) {
    const own = redirects === undefined ? headers : { ...headers, host: at.url.host };
    const request = upgradeRequest(exchange, method, at, own);
    const backend = await openSocket(dialer, at);
    const unbind = bindTo(client, backend);
    try {
      backend.write(request, "latin1");
      const first = await beginning(backend);
      const code = Number(/^HTTP\/1\.\d (\d{3})(?!\d)/.exec(first.toString("latin1", 0, statusBytes))?.[1] ?? 0);
      const end = headEnd(first);
      if (redirects === undefined || code !== 302 || end < 0) return { backend, first, code };
      at = redirectTarget(first.toString("latin1", 0, end), at, target.url, redirects.sameHost);
    } catch (err) {
      backend.destroy();
      throw plainError(messageOf(err), { cause: err });
    } finally {
      unbind();
    }
    backend.destroy();
    dialer = await redirects.dial(at);
    method = "GET";
  }
  throw plainError(`too many redirects (${mostRedirects + 1})`);
}

/** Destroys the backend's connection when the client disconnects, also while the backend has not answered. @returns removes the listener */
function bindTo(client: Socket, backend: Backend): () => void {
  const leave = (): void => void backend.destroy(new Error("the client has disconnected"));
  if (client.destroyed || client.readableEnded) leave();
  client.once("end", leave);
  client.once("close", leave);
  return () => {
    client.off("end", leave);
    client.off("close", leave);
  };
}

const statusBytes = "HTTP/1.1 101 ".length;

/** Reads until the head of the response is complete or too long. */
async function beginning(socket: Backend): Promise<Buffer> {
  let first = await firstBytes(socket, answerWithinMs);
  while (headEnd(first) < 0 && first.length <= longestHeadBytes) {
    first = Buffer.concat([first, await firstBytes(socket, answerWithinMs)]);
  }
  return first;
}

function upgradeRequest(exchange: Exchange, method: string, target: ConnectTarget, others: OwnHeaders): string {
  const { url } = target;
  const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`];
  // Connection may list any header, even ours; a backend that is a proxy itself would then drop it.
  const own = {
    host: hostOf(exchange, target),
    connection: "Upgrade",
    "x-forwarded-for": forwardedFor(exchange),
    ...others,
  };
  for (const [name, value] of Object.entries(exchange.headers)) {
    if (value === undefined || Object.hasOwn(own, name) || isCredential(name)) continue;
    for (const one of [value].flat()) lines.push(`${name}: ${withoutToken(name, one)}`);
  }
  for (const [name, value] of Object.entries(own)) {
    for (const one of [value].flat()) {
      validateHeaderValue(name, one);
      lines.push(`${name}: ${one}`);
    }
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Removes the bearer token that browsers send as a WebSocket subprotocol. */
function withoutToken(name: string, value: string): string {
  if (name !== "sec-websocket-protocol") return value;
  return value
    .split(",")
    .map((protocol) => protocol.trim())
    .filter((protocol) => !protocol.startsWith("base64url.bearer.authorization.k8s.io."))
    .join(", ");
}

function firstBytes(socket: Connection, timeoutMs: number): Promise<Buffer> {
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
    socket.resume(); // it may be paused since the head was read
  });
}

/** Pipes both directions until both sides have ended; an error on one side destroys the other. */
function joined(
  client: Socket,
  head: Buffer,
  backend: Connection,
  first: Buffer,
  through: (from: Connection, to: Connection) => void,
): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const closed = (other: Connection) => (): void => {
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
    through(client, backend);
    through(backend, client);
  });
}
