/**
 * A request for a group version that another server serves: sent on under the name of who asked, answered as it is
 * answered there. Neither body waits to be whole, so that watches and uploads flow.
 * Source: kube-aggregator pkg/apiserver/handler_proxy.go, k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, transport.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { dialErrorText } from "@coxswain/apimachinery/errors/dial-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { forwardedBody } from "../node-proxy/body.ts";
import { forwardedHeaders, relay, returnedHeaders } from "../node-proxy/pipe.ts";
import { splice } from "../node-proxy/splice.ts";
import type { RequestContext } from "../request/context.ts";
import { type ApiService, isAvailable, nameOf } from "./api-services.ts";
import { type Backend, send } from "./backends.ts";
import { identityHeaders } from "./identity-headers.ts";
import { formatLocation, type Location, type ServiceResolver } from "./service-resolver.ts";

export interface ProxyOptions {
  readonly resolve: ServiceResolver;
  /** Told of each request that ends here without having reached the server. */
  readonly refused: (ctx: RequestContext, code: number) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** @param apiService as it stands now @param backend of it. Answers in every case. */
export type Proxy = (ctx: RequestContext, apiService: ApiService, backend: Backend) => Promise<void>;

/** Clients ask all servers before they do anything: a slow one must not hold them up. */
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
    ctx.watchStarted?.(); // what it costs from here on, it costs the other server
    try {
      if (ctx.exchange.upgrade === undefined) await forward(ctx, backend, location, clock);
      else await tunnel(ctx, ctx.exchange.upgrade, backend, location, log);
    } catch (err) {
      if (ctx.signal.aborted) throw ctx.signal.reason; // the deadline has an answer of its own
      if (ctx.exchange.headersSent) throw err;
      answerText(ctx.exchange, 503, `${(err as Error).message}\n`);
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
      // Whoever follows it would go with their credentials where a server wants them to (CVE-2022-3172).
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
  // `..` would lead to another path than the one that was authorized.
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

/** `/apis/group/version` and nothing below it. */
function isDiscovery({ info }: RequestContext): boolean {
  return !info.isResourceRequest && info.path.split("/").filter((part) => part !== "").length === 3;
}

/** The path that was authorized, and not what else the client's bytes could be taken for. */
function pathAndQuery(ctx: RequestContext): string {
  const query = new URLSearchParams(ctx.query);
  query.sort();
  const text = query.toString();
  return escapedPath(ctx.info.path) + (text === "" ? "" : `?${text}`);
}

/** As Go writes the path of a URL. Source: net/url URL.EscapedPath */
export function escapedPath(path: string): string {
  const bytes = Buffer.from(path, "utf8").toString("latin1");
  return bytes.replace(
    /[^A-Za-z0-9\-_.~$&+,/:;=@]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** What a connection failed with, in Go's words. */
export function failureText(err: unknown): string {
  const { name } = err as Error;
  return name === "AbortError" || name === "TimeoutError" ? "context deadline exceeded" : dialErrorText(err);
}

const plainText = { "content-type": "text/plain; charset=utf-8" };

function answerText(exchange: Exchange, code: number, text: string): void {
  exchange.respond(code, { ...plainText, "x-content-type-options": "nosniff" }, text);
}
