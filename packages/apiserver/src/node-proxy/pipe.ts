/**
 * Proxies plain (not upgraded) requests to a pod, a service or a node. Links and redirects in responses are rewritten to lead
 * back through the proxy.
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, transport.go
 */
import type { IncomingMessage } from "node:http";
import { posix } from "node:path";
import { promisify } from "node:util";
import { deflateRaw, gunzip, gzip, inflateRaw } from "node:zlib";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { forwardedBody } from "./body.ts";
import { answerOf, answerTo, type Dial, forwardedFor, hostOf, isCredential, keptFor, openRequest, unreachable } from "./dial.ts";
import { rewriteLinks } from "./html-links.ts";

/** Links are not rewritten in larger pages: one tag may take all of it, and is read in one event-loop turn. */
const longestPageBytes = 4 * 1024 * 1024;

/** @throws ServiceUnavailable when the backend is unreachable; 500 when the response is not HTTP. */
export async function pipe(ctx: RequestContext, target: ConnectTarget, dial: Dial, turns: Turns): Promise<void> {
  const { exchange } = ctx;
  const answer = await answered(ctx, target, dial).catch((err: unknown) => {
    throw err instanceof StatusError ? err : unreachable(err, target);
  });
  const code = answer.statusCode ?? 502;
  const headers = returnedHeaders(answer);
  const throughProxy = linkRewriter(exchange, target);
  const coding = exchange.method === "HEAD" ? undefined : pageCoding(answer);
  let returned: AsyncIterable<Buffer> = answer;
  if (headers["location"] !== undefined) headers["location"] = throughProxy(String(headers["location"]));
  else if (coding !== undefined) {
    returned = rewrittenPage(answer, coding, throughProxy, turns);
    delete headers["content-length"];
  }
  await relay(ctx, returned, code, headers);
}

function answered({ exchange, signal }: RequestContext, target: ConnectTarget, dial: Dial): Promise<IncomingMessage> {
  const { method } = exchange;
  const body = forwardedBody(exchange);
  const headers = { ...forwardedHeaders(exchange), ...body.headers, host: hostOf(exchange, target) };
  const head = { method, path: target.url.pathname + queryOf(exchange), headers, signal };
  if (body.stream === undefined && repeatable.has(method)) return answerTo(dial, target, head);
  // As upstream, others are not repeated when a kept connection fails: whether the kubelet has acted on them is unknown.
  if (body.stream === undefined) return answerOf(openRequest(dial, target, head, keptFor(dial, target)).end(), dial);
  const request = openRequest(dial, target, head);
  body.stream.on("error", (err) => request.destroy(err));
  body.stream.pipe(request);
  return answerOf(request, dial);
}

const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD"]);

type Headers = Record<string, string | string[]>;

/** The raw query string as sent by the client. */
function queryOf({ url }: Exchange): string {
  const at = url.indexOf("?");
  return at < 0 ? "" : url.slice(at);
}

/** Hop-by-hop headers; `expect` is handled by this server. */
const hopByHop = new Set([
  "connection",
  "expect",
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

/** Request headers without hop-by-hop and credential headers, with X-Forwarded-* added. */
export function forwardedHeaders(exchange: Exchange): Headers {
  const headers: Headers = {};
  const ofConnection = namedByConnection(exchange.headers.connection);
  for (const [name, value] of Object.entries(exchange.headers)) {
    if (value === undefined || hopByHop.has(name) || ofConnection.includes(name) || isCredential(name)) continue;
    headers[name] = value;
  }
  headers["x-forwarded-for"] = forwardedFor(exchange);
  headers["x-forwarded-uri"] = pathOf(exchange);
  return headers;
}

/** Headers listed in Connection are hop-by-hop (RFC 9110, 7.6.1). */
function namedByConnection(connection: string | undefined): string[] {
  return (connection ?? "").split(",").map((name) => name.trim().toLowerCase());
}

function pathOf({ url }: Exchange): string {
  return url.split("?", 1)[0] ?? "";
}

/** CORS is the responsibility of this server: such response headers of the backend are dropped. */
const withheld = new Set([
  ...hopByHop,
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-allow-origin",
]);

/** Response headers for the client: without hop-by-hop and CORS headers. */
export function returnedHeaders(answer: IncomingMessage): Headers {
  const headers: Headers = {};
  const ofConnection = namedByConnection(answer.headers.connection);
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !withheld.has(name) && !ofConnection.includes(name)) headers[name] = value;
  }
  return headers;
}

const linkParts = /^(?<scheme>[A-Za-z][A-Za-z0-9+.-]*:)?(?:\/\/(?<host>[^/?#]*))?(?<path>[^?#]*)(?<rest>.*)$/s;

/** Maps `/page` of the backend to `/api/v1/namespaces/x/pods/y/proxy/page`; links to other hosts are unchanged. */
export function linkRewriter(exchange: Exchange, target: ConnectTarget): (link: string) => string {
  const requested = pathOf(exchange);
  const proxied = target.url.pathname;
  const prefix = requested.endsWith(proxied) ? requested.slice(0, requested.length - proxied.length) : requested;
  const requests = hostOf(exchange, target);
  return (link) => {
    const { scheme = "", host = "", path = "", rest = "" } = linkParts.exec(link)?.groups ?? {};
    if (!path.startsWith("/") || (host !== "" && host !== target.url.host && host !== requests)) return link;
    const origin = host !== "" && host === requests ? `${scheme}//${host}` : "";
    return origin + (path.startsWith(prefix) ? path : posix.join(prefix, path)) + rest;
  };
}

/** Streams the response; when the backend aborts, the client's response is aborted too. */
export async function relay(ctx: RequestContext, body: AsyncIterable<Buffer>, code: number, headers: Headers): Promise<void> {
  const response = ctx.exchange.stream(code, headers);
  try {
    for await (const chunk of body) {
      if (!response.write(chunk)) await response.drained();
    }
    response.end();
  } catch {
    ctx.exchange.destroy(); // truncated: the client must notice that the response is incomplete
  }
}

interface Coding {
  decode(body: Buffer): Buffer | Promise<Buffer>;
  encode(body: Buffer): Buffer | Promise<Buffer>;
}

const limit = { maxOutputLength: longestPageBytes };
const codings: Readonly<Record<string, Coding>> = {
  "": { decode: (body) => body, encode: (body) => body },
  gzip: { decode: (body) => promisify(gunzip)(body, limit), encode: (body) => promisify(gzip)(body, {}) },
  deflate: { decode: (body) => promisify(inflateRaw)(body, limit), encode: (body) => promisify(deflateRaw)(body, {}) },
};

/** @returns undefined when the response is not HTML or has an unsupported content coding. */
function pageCoding({ headers }: IncomingMessage): Coding | undefined {
  const type = (headers["content-type"] ?? "").split(";", 1)[0]?.trim();
  const coding = headers["content-encoding"] ?? "";
  return type === "text/html" && Object.hasOwn(codings, coding) ? codings[coding] : undefined;
}

/** The page with rewritten links; unchanged when it is too large or cannot be decoded. */
async function* rewrittenPage(
  answer: AsyncIterable<Buffer>,
  coding: Coding,
  rewrite: (link: string) => string,
  turns: Turns,
): AsyncGenerator<Buffer> {
  let read: Buffer[] | undefined = [];
  let size = 0;
  for await (const chunk of answer) {
    if (read === undefined) {
      yield chunk;
      continue;
    }
    read.push(chunk);
    size += chunk.length;
    if (size <= longestPageBytes) continue;
    yield Buffer.concat(read);
    read = undefined;
  }
  if (read === undefined || size === 0) return;
  const page = Buffer.concat(read);
  let next: Buffer = page;
  try {
    const text = (await coding.decode(page)).toString("latin1");
    next = await coding.encode(Buffer.from(await turns.run(rewriteLinks(text, rewrite)), "latin1"));
  } catch {}
  yield next;
}
