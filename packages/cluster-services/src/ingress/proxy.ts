import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { PassThrough, type Readable, Transform, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { Agent, type Dispatcher, errors } from "undici";
import type { Backends } from "./backends.ts";
import { requestHeaders, responseHeaders } from "./headers.ts";
import type { IngressMetrics } from "./metrics.ts";
import { hostNameOf, type Route, type RouteTable, routedPath } from "./routes.ts";

export type Request = IncomingMessage | Http2ServerRequest;
/** What the responses of HTTP/1.1 and HTTP/2 have in common, whose overloads the compiler cannot unite. */
export interface Response extends Writable {
  statusCode: number;
  readonly headersSent: boolean;
  writeHead(code: number, headers: OutgoingHttpHeaders): unknown;
}

export interface ProxyOptions {
  /** The rules now. */
  readonly routes: () => RouteTable;
  readonly backends: Backends;
  readonly connectTimeoutMs: number;
  /** Until the headers of a response. */
  readonly responseTimeoutMs: number;
  /** Longest silence of a body. */
  readonly idleTimeoutMs: number;
  /** 0: unlimited. */
  readonly mostBodyBytes: number;
  readonly metrics: IngressMetrics;
  readonly log: Logger;
}

/** The destination of a request: what rules and endpoints select, or the response that the ingress gives itself. */
export type Destination =
  | { readonly host: string; readonly path: string; readonly route: Route; readonly urls: readonly string[] }
  | { readonly code: number; readonly text: string; readonly route?: Route };

/** Header block of a response; one for requests is in `server.ts`. */
const mostHeaderBytes = 64 << 10;
const connectionsPerEndpoint = 1_024;
const withoutEffect: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
const connectionErrors: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "EPIPE", "ETIMEDOUT", "EADDRNOTAVAIL"],
  ...["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_SOCKET"],
]);

/** Sends requests on to endpoints and their responses back, both as streams. */
export class ReverseProxy {
  readonly #options: ProxyOptions;
  readonly #agent: Agent;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: connectionsPerEndpoint,
      connect: { timeout: options.connectTimeoutMs },
      headersTimeout: options.responseTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      maxHeaderSize: mostHeaderBytes,
      allowH2: false,
    });
  }

  /** Answers the request. Never rejects. */
  async answer(request: Request, response: Response): Promise<void> {
    const { metrics, log } = this.#options;
    const startedAt = performance.now();
    const destination = this.destinationOf(request);
    let by = "ingress";
    response.once("close", () => {
      const seconds = (performance.now() - startedAt) / 1000;
      metrics.requests.labels(String(response.headersSent ? response.statusCode : 499), by).inc();
      metrics.seconds.observe(seconds);
      const { ingress } = destination.route ?? {};
      const fields = { method: request.method, host: hostOf(request), path: request.url, ingress };
      log.v(4)?.info("request", { ...fields, code: response.statusCode, by, client: clientOf(request), seconds });
    });
    // The pipe that writes to it fails too, and its error is handled.
    response.on("error", () => {});
    if ("code" in destination) return refuse(request, response, destination.code, destination.text);
    try {
      const found = await this.#forward(request, response, destination);
      by = "backend";
      await relay(found, response);
    } catch (err) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { code, text } = failureOf(err);
      log.v(2)?.info("a backend did not answer", { ingress: destination.route.ingress, code, err: String(err) });
      refuse(request, response, code, text);
    }
  }

  destinationOf(request: Request): Destination {
    const { routes, backends } = this.#options;
    const requested = targetOf(request);
    if (requested === undefined) return { code: 400, text: "the request has no host or no path" };
    const route = routes().match(hostNameOf(requested.host), routedPath(requested.path));
    if (route === undefined) return { code: 404, text: "no rule for this host and path" };
    const endpoints = backends.endpointsOf(route.backend);
    if ("problem" in endpoints || route.backend === undefined)
      return { code: 503, text: "no endpoints for this host and path", route };
    return { ...requested, route, urls: backends.inTurn(route.backend, endpoints.urls) };
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** The first response; another endpoint is tried when the connection fails and the request may be sent twice. */
  async #forward(
    request: Request,
    response: Response,
    { host, path, urls }: Extract<Destination, { urls: unknown }>,
  ): Promise<Dispatcher.ResponseData> {
    const { mostBodyBytes, metrics } = this.#options;
    const left = new AbortController();
    response.once("close", () => left.abort(new Error("the client has gone")));
    const announced = Number(request.headers["content-length"] ?? 0);
    if (mostBodyBytes > 0 && announced > mostBodyBytes) throw new BodyTooLarge();
    const hasBody = bodyFollows(request);
    const mayRepeat = !hasBody && withoutEffect.has(request.method ?? "");
    const headers = requestHeaders(request.headers, { ...connectionOf(request), host });
    for (const [i, origin] of urls.entries()) {
      const body = hasBody ? bodyOf(request, mostBodyBytes) : null;
      const options = { origin, path, method: request.method!, headers, body, signal: left.signal };
      try {
        return await this.#agent.request(options);
      } catch (err) {
        const canTryNext = mayRepeat && i + 1 < urls.length && isConnectionError(err) && !left.signal.aborted;
        if (!canTryNext) throw body?.errored instanceof BodyTooLarge ? body.errored : err;
        metrics.retries.inc();
      }
    }
    throw new Error("there is no endpoint");
  }
}

/** With backpressure: the backend's connection is read only as fast as the client reads. */
async function relay({ statusCode, headers, body }: Dispatcher.ResponseData, response: Response): Promise<void> {
  body.on("error", () => {}); // pipeline reports it
  try {
    response.writeHead(statusCode, responseHeaders(headers));
  } catch (err) {
    body.destroy();
    throw err;
  }
  await pipeline(body, response);
}

class BodyTooLarge extends Error {}

/**
 * The body as a separate stream: the client that fails to send it on ends this one, and the request stays to be answered.
 */
function bodyOf(request: Request, most: number): Readable & { readonly errored: Error | null } {
  let bytes = 0;
  const body =
    most === 0
      ? new PassThrough()
      : new Transform({
          transform(chunk: Buffer, _, done) {
            bytes += chunk.length;
            done(bytes > most ? new BodyTooLarge() : null, chunk);
          },
        });
  body.on("error", () => request.unpipe(body));
  request.once("aborted", () => body.destroy(new Error("the client has gone")));
  request.pipe(body);
  return body;
}

function bodyFollows(request: Request): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const length = request.headers["content-length"];
  return request.headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) > 0);
}

/** @returns undefined when host or path are missing, contradict each other or are not valid */
function targetOf(request: Request): { readonly host: string; readonly path: string } | undefined {
  let [host, path] = [hostOf(request), request.url ?? ""];
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(path);
  // RFC 9112, 3.2.2: the host of the target counts.
  if (absolute !== null) [host, path] = [absolute[1]!, absolute[2]?.startsWith("/") ? absolute[2] : `/${absolute[2]}`];
  if (!path.startsWith("/") || !/^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?$/i.test(host)) return undefined;
  if (!("stream" in request) && countOf(request.rawHeaders, "host") > 1) return undefined;
  return { host, path };
}

const hostOf = (request: Request): string =>
  String(("authority" in request ? request.authority : undefined) || request.headers.host || "");

const countOf = (raw: readonly string[], name: string): number =>
  raw.filter((text, i) => i % 2 === 0 && text.toLowerCase() === name).length;

const clientOf = ({ socket }: Request): string => addressOf(socket.remoteAddress);

/** An IPv4 address as the kernel gives it for a socket of both families, as it is known. */
export const addressOf = (address = ""): string => address.replace(/^::ffff:(?=\d+\.)/, "");

/** Client address, protocol and local port of the request's connection. */
export function connectionOf(request: Request): { clientAddress: string; protocol: "http" | "https"; port: number } {
  const { socket } = request;
  const isTls = "encrypted" in socket && socket.encrypted === true;
  return { clientAddress: clientOf(request), protocol: isTls ? "https" : "http", port: socket.localPort ?? 0 };
}

const isConnectionError = (err: unknown): boolean => connectionErrors.has(errorCode(err) ?? "");

function failureOf(err: unknown): { readonly code: number; readonly text: string } {
  if (err instanceof BodyTooLarge) return { code: 413, text: "the body is too large" };
  const isLate =
    err instanceof errors.HeadersTimeoutError || err instanceof errors.ConnectTimeoutError || errorCode(err) === "ETIMEDOUT";
  return isLate ? { code: 504, text: "the backend did not answer in time" } : { code: 502, text: "the backend did not answer" };
}

const names: Readonly<Record<number, string>> = {
  400: "Bad Request",
  404: "Not Found",
  413: "Content Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export const refusalText = (code: number, text: string): string => `${code} ${names[code]}: ${text}\n`;

function refuse(request: Request, response: Response, code: number, text: string): void {
  const body = refusalText(code, text);
  const headers = { "content-type": "text/plain; charset=utf-8", "content-length": Buffer.byteLength(body) };
  // The rest of an unread body is not drained: the connection is closed.
  const closes = request.httpVersionMajor < 2 && bodyFollows(request);
  response.writeHead(code, { ...headers, ...(closes && { connection: "close" }) });
  response.end(request.method === "HEAD" ? undefined : body);
}
