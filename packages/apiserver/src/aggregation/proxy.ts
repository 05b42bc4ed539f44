/**
 * Proxies a request to the aggregated server of its group version, with the user in headers. Request and response bodies are
 * streamed, so that watches and uploads work.
 * Source: kube-aggregator pkg/apiserver/handler_proxy.go, k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, transport.go
 */

import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { forwardedBody } from "../node-proxy/body.ts";
import { forwardedHeaders, relay, returnedHeaders } from "../node-proxy/pipe.ts";
import { splice } from "../node-proxy/splice.ts";
import type { RequestContext } from "../request/context.ts";
import { type ApiService, isAvailable, nameOf } from "./api-services.ts";
import { type Backend, send } from "./backends.ts";
import { identityHeaders } from "./identity-headers.ts";
import { formatLocation, type Location, type ServiceResolver } from "./service-resolver.ts";

interface ProxyOptions {
  readonly resolve: ServiceResolver;
  /** Called for each request that fails here without reaching the server. */
  readonly refused: (ctx: RequestContext, code: number) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers the request in every case. @param apiService current version @param backend the backend of that APIService */
type Proxy = (ctx: RequestContext, apiService: ApiService, backend: Backend) => Promise<void>;

/** Clients query discovery of all groups first: a slow server must not block them. */
const discoveryTimeoutMs = 5_000;
const dialTimeoutMs = 30_000;

export function newProxy({ resolve, refused, clock, log }: ProxyOptions): Proxy {
  const refuse = (ctx: RequestContext, code: number, message: string): void => {
    answerText(ctx.exchange, code, `${message}\n`);
    refused(ctx, code);
  };
  return async (ctx, apiService, backend) => {
    if (!isAvailable(apiService)) return refuse(ctx, 503, "service unavailable");
    if (backend.problem !== undefined) return refuse(ctx, 500, backend.problem);
    const { namespace, name, port } = backend.service;
    let location: Location;
    try {
      location = resolve(namespace, name, port);
    } catch (err) {
      log.error("cannot resolve the service of an APIService", err, { apiService: nameOf(apiService) });
      return refuse(ctx, 503, "service unavailable");
    }
    ctx.watchStarted?.(); // the seats of priority and fairness are released: the cost is on the other server
    try {
      if (ctx.exchange.upgrade === undefined) await forward(ctx, backend, location, clock);
      else await tunnel(ctx, ctx.exchange.upgrade, backend, location, log);
    } catch (err) {
      if (ctx.signal.aborted) throw ctx.signal.reason; // the request timeout is answered by its own filter
      if (ctx.exchange.headersSent) throw err;
      answerText(ctx.exchange, 503, `${messageOf(err)}\n`);
    }
  };
}

async function forward(ctx: RequestContext, backend: Backend, location: Location, clock: Clock): Promise<void> {
  const { exchange } = ctx;
  const body = forwardedBody(exchange);
  const late = new AbortController();
  const timer = isDiscovery(ctx) ? clock.after(discoveryTimeoutMs, () => late.abort()) : undefined;
  try {
    const answer = await send(backend, location, {
      method: exchange.method,
      path: pathAndQuery(ctx),
      headers: { ...headersFor(ctx, location), ...body.headers },
      body: body.stream,
      signal: AbortSignal.any([ctx.signal, late.signal]),
    }).catch((err: unknown) => {
      throw new Error(`error trying to reach service: ${failureText(err)}`, { cause: err });
    });
    const code = answer.statusCode ?? 502;
    if (code === 101) {
      throw new Error(`backend tried to switch protocol ${goQuote(answer.headers.upgrade ?? "")} when "" was requested`);
    }
    if (code >= 300 && code <= 399 && answer.headers.location) {
      // Clients that follow the redirect would send their credentials to a host chosen by the backend (CVE-2022-3172).
      answer.destroy();
      return exchange.respond(502, plainText, "the backend attempted to redirect this request, which is not permitted");
    }
    await relay(ctx, answer, code, returnedHeaders(answer));
  } finally {
    timer?.cancel();
  }
}

async function tunnel(
  ctx: RequestContext,
  upgrade: NonNullable<Exchange["upgrade"]>,
  backend: Backend,
  location: Location,
  log: Logger,
): Promise<void> {
  const target = {
    url: new URL(`https://${formatLocation(location)}${pathAndQuery(ctx)}`),
    toNode: false,
    as: "tunnel",
  } as const;
  // `..` would resolve to another path than the authorized one.
  if (target.url.pathname !== escapedPath(ctx.info.path)) throw new Error("invalid path");
  const dial = {
    address: location.host,
    port: location.port,
    secure: true,
    tls: backend.tls,
    timeoutMs: dialTimeoutMs,
    tunnel: backend.tunnel,
  };
  await splice(ctx, upgrade, target, dial, { log }, { host: formatLocation(location), ...identityHeaders(ctx.user) });
}

function headersFor(ctx: RequestContext, location: Location): Record<string, string | string[]> {
  return {
    ...forwardedHeaders(ctx.exchange),
    host: formatLocation(location),
    "x-forwarded-uri": escapedPath(ctx.info.path),
    "x-forwarded-host": formatLocation(location),
    "x-forwarded-proto": "https",
    "audit-id": ctx.auditId,
    ...identityHeaders(ctx.user),
  };
}

/** True for `/apis/group/version` without anything below. */
function isDiscovery({ info }: RequestContext): boolean {
  return !info.isResourceRequest && info.path.split("/").filter((part) => part !== "").length === 3;
}

/** Built from the path that was authorized, not from the raw request target. */
function pathAndQuery(ctx: RequestContext): string {
  const query = new URLSearchParams(ctx.query);
  query.sort();
  const text = query.toString();
  return escapedPath(ctx.info.path) + (text === "" ? "" : `?${text}`);
}

/** Encodes a path like Go. Source: net/url URL.EscapedPath */
export function escapedPath(path: string): string {
  const bytes = Buffer.from(path, "utf8").toString("latin1");
  return bytes.replace(
    /[^A-Za-z0-9\-_.~$&+,/:;=@]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** Text of a connection error in Go's wording. */
export function failureText(err: unknown): string {
  const { name } = errorOf(err);
  return name === "AbortError" || name === "TimeoutError" ? "context deadline exceeded" : dialErrorText(err);
}

const plainText = { "content-type": "text/plain; charset=utf-8" };

function answerText(exchange: Exchange, code: number, text: string): void {
  exchange.respond(code, { ...plainText, "x-content-type-options": "nosniff" }, text);
}
